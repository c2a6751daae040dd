import { Fault, overloaded, Refusal } from '../domain/fault.ts';
import type { IpAddress, Network } from '../domain/ip_address.ts';
import { LIMITS } from '../domain/limits.ts';
import { type Log, type RequestLogging, traceOf } from '../observe/log.ts';
import { type Answer, type Call, openCall } from './call.ts';
import { openCallerAddress } from './caller_address.ts';
import { openCors } from './cors.ts';
import { type Count, type RateLimits, UNLIMITED } from './rate_limits.ts';
import { faultReply, REQUEST_ID, type Reply, replyOf } from './reply.ts';
import { allowedMethods, type Method, openRouter, pathOf, type Route } from './router.ts';

export interface ServerSettings {
  readonly host: string;
  /** 0 takes a free one. */
  readonly port: number;
  readonly tls: { readonly cert: string; readonly key: string } | undefined;
  /** Several processes listen on one port. */
  readonly isShared: boolean;
  /** Whose word about the address of a caller is taken. */
  readonly trustedProxies: readonly Network[];
  readonly corsOrigins: readonly string[];
  readonly requestLogging: RequestLogging;
}

export interface Server {
  /** `http://host:port`, with the port that was taken. */
  readonly url: string;
  /** Ends when requests in flight have ended, or the drain limit is reached. */
  stop(): Promise<void>;
}

/** The part of `Bun.serve` that is used here. */
type NativeHandler = (request: Request & { params?: Record<string, string> }) => Response | Promise<Response>;

/** What is asked of a request before its path is walked. */
interface Door {
  addressOf(request: Request): IpAddress | undefined;
  /** Counts the call by its address. */
  readonly count: Count | undefined;
}

const SAMPLED_ONE_IN = 100;
const DRAIN_POLL_MS = 5;
const SHEDS_TOLD_EACH_MS = 1_000;
/** What the log calls the path of a request that is none of ours. */
const NOWHERE: Route = { pattern: '*', answers: {} };
const CALLERS_OWN = new RegExp(`^[A-Za-z0-9._-]{1,${LIMITS.requestIdCharactersMax}}$`);

/**
 * Serves the routes: the only code that knows `Bun.serve`, and the only one that writes answers. The routes may need
 * the address that was taken, so they are asked for once it is.
 */
export async function startServer(
  settings: ServerSettings,
  log: Log,
  makeRoutes: (url: string) => Promise<readonly Route[]>,
  limits: RateLimits = UNLIMITED,
): Promise<Server> {
  const early: NativeHandler = () => respond(faultReply('unavailable'), 'early', {});
  const server = listen(settings, early);
  const url = urlOf(settings.host, server.port ?? settings.port, settings.tls !== undefined);
  const callerAddress = openCallerAddress(settings.trustedProxies);
  const door: Door = {
    addressOf: (request) => callerAddress(request.headers, server.requestIP(request)?.address),
    count: limits.address,
  };
  const { routes, fetch, flush } = handlersOf(await makeRoutes(url), settings, log, door);
  server.reload({ routes, fetch });
  return {
    url,
    async stop() {
      const deadline = performance.now() + LIMITS.drainMsMax;
      server.stop();
      while (server.pendingRequests > 0 && performance.now() < deadline) await Bun.sleep(DRAIN_POLL_MS);
      // What is left are idle connections that their callers keep open.
      await server.stop(true);
      flush();
    },
  };
}

/** The URL of an address. */
export function urlOf(host: string, port: number, isTls: boolean): string {
  return `${isTls ? 'https' : 'http'}://${host.includes(':') ? `[${host}]` : host}:${port}`;
}

/**
 * Makes sure that nobody else has the port, which processes that share theirs would not notice. Throws Refusal.
 */
export async function assertFree(settings: ServerSettings): Promise<void> {
  const probe = listen({ ...settings, isShared: false }, () => new Response(null, { status: 503 }));
  await probe.stop(true);
}

/** Throws Refusal where the address cannot be taken or the certificate cannot be read. */
function listen(settings: ServerSettings, fetch: NativeHandler): Bun.Server<undefined> {
  try {
    return Bun.serve({
      hostname: settings.host,
      port: settings.port,
      reusePort: settings.isShared,
      idleTimeout: LIMITS.idleSecondsMax,
      // A body is bounded where it is read; one that nobody reads is not buffered.
      maxRequestBodySize: Number.MAX_SAFE_INTEGER,
      // The runtime's own error pages would show what was thrown.
      development: false,
      ...(settings.tls ? { tls: settings.tls } : {}),
      fetch,
    });
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException;
    throw new Refusal(`cannot listen on ${settings.host} port ${settings.port}: ${code ?? message}`, {
      cause: error,
    });
  }
}

function handlersOf(table: readonly Route[], settings: ServerSettings, log: Log, door: Door) {
  const cors = openCors(settings.corsOrigins);
  const mintRequestId = requestIds();
  const match = openRouter(table);
  const isCorsOn = settings.corsOrigins.length > 0;
  const { failed, note, flush } = openNotes(settings, log);

  let underWay = 0;

  function write({ request, requestId, rateHeaders }: Call, reply: Reply): Response {
    if (!isCorsOn) return respond(reply, requestId, rateHeaders);
    return respond(reply, requestId, { ...cors.headersFor(request.headers.get('origin')), ...rateHeaders });
  }

  /** Who asks for too much, or comes while too much is under way, is not let in; whoever watches over us is. */
  function refuse(call: Call, route: Route): Reply | undefined {
    if (route.isUncounted) return undefined;
    if (underWay >= LIMITS.requestsAtOnceMax) throw overloaded('PLACES_TAKEN');
    return door.count?.(call);
  }

  /** Answers one matched request; whatever is thrown becomes the answer of its fault. */
  function handle(request: Request, params: Record<string, string>, route: Route, answer: Answer) {
    const call = openCall(request, params, requestIdOf(request) ?? mintRequestId(), door.addressOf);
    const start = settings.requestLogging === 'off' ? 0 : performance.now();
    try {
      const outcome = refuse(call, route) ?? answer(call);
      return outcome instanceof Promise
        ? settle(outcome, call, route, start)
        : finish(outcome, call, route, start);
    } catch (error) {
      return finish(failed(error, call.requestId, route), call, route, start);
    }
  }

  function finish(reply: Reply, call: Call, route: Route, start: number): Response {
    if (settings.requestLogging !== 'off') note(call, route, reply, start);
    return write(call, reply);
  }

  function settle(outcome: Promise<Reply>, call: Call, route: Route, start: number): Promise<Response> {
    underWay += 1;
    return inTime(outcome)
      .catch((error: unknown) => failed(error, call.requestId, route))
      .then((reply) => {
        underWay -= 1;
        return finish(reply, call, route, start);
      });
  }

  /** What no native route took: another spelling of a path, another method, or nothing of ours. */
  const fetch: NativeHandler = (request) => {
    const found = match(pathOf(request.url));
    if (!found) return handle(request, {}, NOWHERE, () => faultReply('route_unknown'));
    const { route, params } = found;
    const method = request.method === 'HEAD' ? 'GET' : (request.method as Method);
    return handle(request, params, route, route.answers[method] ?? otherMethod(route));
  };

  /** A preflight, or a method that this path does not have. */
  function otherMethod(route: Route): Answer {
    return ({ request }) => {
      const preflight = cors.preflight(request, Object.keys(route.answers) as Method[]);
      return preflight
        ? { status: 204, headers: preflight, body: null }
        : faultReply('method_unknown', { Allow: allowedMethods(route) });
    };
  }

  const routes: Record<string, Record<string, NativeHandler>> = {};
  for (const route of table) {
    const methods: Record<string, NativeHandler> = {};
    for (const [method, answer] of Object.entries(route.answers)) {
      const native: NativeHandler = (request) => handle(request, request.params ?? {}, route, answer);
      methods[method] = native;
      if (method === 'GET') methods.HEAD = native;
    }
    routes[route.pattern] = methods;
  }
  return { routes, fetch, flush };
}

/** What is told to the log about requests, and the answer of a failed one. */
function openNotes({ requestLogging }: ServerSettings, log: Log) {
  const sheds = openSheds(log);

  function failed(error: unknown, requestId: string, route: Route): Reply {
    const fault = error instanceof Fault ? error : new Fault('internal', [], error);
    const reply = replyOf(fault);
    if (fault.code === 'overloaded' && isShed(fault.cause)) sheds.note(fault.cause.code);
    else if (reply.status >= 500) {
      const trace = traceOf(fault.cause ?? fault);
      log.write({ event: 'fault', request_id: requestId, route: route.pattern, code: fault.code, ...trace });
    }
    return reply;
  }

  function note(
    { request, requestId, principal }: Call,
    route: Route,
    { status }: Reply,
    start: number,
  ): void {
    if (requestLogging === 'sampled' && Math.random() * SAMPLED_ONE_IN >= 1) return;
    log.write({
      event: 'request',
      request_id: requestId,
      method: request.method,
      route: route.pattern,
      status,
      ms: Math.round((performance.now() - start) * 1000) / 1000,
      ...(principal ? { client_id: principal.clientId } : {}),
    });
  }

  return { failed, note, flush: sheds.flush };
}

/** What is refused for overload is counted: a line for each would cost more than the refusal. */
function openSheds(log: Log) {
  const counts = new Map<string, number>();
  const flush = () => {
    for (const [cause, count] of counts) log.write({ event: 'overloaded', cause, count });
    counts.clear();
  };
  return {
    note(cause: string): void {
      if (counts.size === 0) setTimeout(flush, SHEDS_TOLD_EACH_MS).unref();
      counts.set(cause, (counts.get(cause) ?? 0) + 1);
    },
    flush,
  };
}

/** Work that waits in vain; a process that died or could not start is a fault like any other. */
const SHED_CAUSES = new Set(['QUEUE_FULL', 'PLACES_TAKEN', 'NO_TIME_LEFT', 'CHILD_LATE']);

function isShed(cause: unknown): cause is { readonly code: string } {
  return cause instanceof Error && 'code' in cause && SHED_CAUSES.has(cause.code as string);
}

/** The one function that writes an answer. */
function respond(reply: Reply, requestId: string, more?: Readonly<Record<string, string>>): Response {
  const { status, headers, body } = reply;
  // A reply made for one call carries its request ID; copying its headers would cost more than all else here.
  const all =
    more === undefined && REQUEST_ID in headers ? headers : { ...headers, ...more, [REQUEST_ID]: requestId };
  return new Response(body, { status, headers: all });
}

/** The caller's own request ID, if it is one header of plain characters. */
function requestIdOf(request: Request): string | undefined {
  const given = request.headers.get('x-request-id');
  return given !== null && CALLERS_OWN.test(given) ? given : undefined;
}

/** Request IDs unlike those of any other process: random once, then counted. */
function requestIds(): () => string {
  const prefix = crypto.randomUUID().replaceAll('-', '').slice(0, 20);
  let count = 0;
  return () => {
    count += 1;
    return `${prefix}-${count.toString(36)}`;
  };
}

async function inTime(outcome: Promise<Reply>): Promise<Reply> {
  const { promise, reject } = Promise.withResolvers<never>();
  const timer = setTimeout(() => reject(new Fault('unavailable')), LIMITS.answerMsMax);
  try {
    return await Promise.race([outcome, promise]);
  } finally {
    clearTimeout(timer);
  }
}
