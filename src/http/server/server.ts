import { Fault, overloaded, Refusal } from '../../domain/fault.ts';
import type { IpAddress, Network } from '../../domain/ip_address.ts';
import { LIMITS } from '../../domain/limits.ts';
import type { Meter } from '../../metrics/meter.ts';
import type { Log, RequestLogging } from '../../platform/log.ts';
import { withTimeout } from '../../platform/timeout.ts';
import { type Answer, type Call, openCall, type RateHeaders } from '../pipeline/call.ts';
import { type ForwardedHeader, openCallerAddress } from './caller_address.ts';
import { openCors } from './cors.ts';
import type { Listener } from './listener.ts';
import { type Count, type RateLimits, UNLIMITED } from './rate_limits.ts';
import { CROWDED, faultReply, REQUEST_ID, type Reply } from './reply.ts';
import { type Endpoint, type Notes, openNotes } from './request_notes.ts';
import { allowedMethods, coveredMethods, type Method, openRouter, pathOf, type Route } from './router.ts';
import { urlOf } from './url.ts';

export interface ServerSettings {
  readonly host: string;
  /** 0 takes a free one. */
  readonly port: number;
  readonly tls: { readonly cert: string; readonly key: string } | undefined;
  /** Several processes listen on one port. */
  readonly isShared: boolean;
  /** Whose word about the address of a caller is taken. */
  readonly trustedProxies: readonly Network[];
  readonly forwardedHeader: ForwardedHeader;
  readonly corsOrigins: readonly string[];
  readonly requestLogging: RequestLogging;
}

export interface Server {
  /** `http://host:port`, with the port that was taken. */
  readonly url: string;
  /** How many requests wait for their answer. */
  pending(): number;
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
  readonly listener: Listener | undefined;
}

const DRAIN_POLL_MS = 5;
/** What the log calls the path of a request that is none of ours. */
const NOWHERE: Route = { pattern: '*', answers: {} };
const CALLERS_OWN = new RegExp(`^[A-Za-z0-9._-]{1,${LIMITS.requestIdCharactersMax}}$`);

/** Who keeps an eye on requests, where anybody does. */
interface Watch {
  readonly limits?: RateLimits;
  readonly meter?: Meter | undefined;
  readonly listener?: Listener;
}

/**
 * Serves the routes: the only code that knows `Bun.serve`, and the only one that writes answers. The routes may need
 * the address that was taken, so they are asked for once it is.
 */
export async function startServer(
  settings: ServerSettings,
  log: Pick<Log, 'write'>,
  makeRoutes: (url: string) => Promise<readonly Route[]>,
  { limits = UNLIMITED, meter, listener }: Watch = {},
): Promise<Server> {
  const early: NativeHandler = () => respond(faultReply('unavailable'), 'early', undefined);
  const server = listen(settings, early);
  const url = urlOf(settings.host, server.port ?? settings.port, settings.tls !== undefined);
  const callerAddress = openCallerAddress(settings.trustedProxies, settings.forwardedHeader);
  const door: Door = {
    addressOf: (request) => callerAddress(request.headers, server.requestIP(request)?.address),
    count: limits.address,
    listener,
  };
  const notes = openNotes(settings.requestLogging, log, meter);
  const { routes, fetch } = handlersOf(await makeRoutes(url), settings, notes, door);
  server.reload({ routes, fetch });
  return {
    url,
    pending: () => server.pendingRequests,
    async stop() {
      const deadline = performance.now() + LIMITS.drainMsMax;
      server.stop();
      while (server.pendingRequests > 0 && performance.now() < deadline) await Bun.sleep(DRAIN_POLL_MS);
      // What is left are idle connections that their callers keep open.
      await server.stop(true);
      notes.flush();
    },
  };
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

function handlersOf(table: readonly Route[], settings: ServerSettings, notes: Notes, door: Door) {
  const cors = openCors(settings.corsOrigins);
  const mintRequestId = requestIds();
  const match = openRouter(table);
  const isCorsOn = settings.corsOrigins.length > 0;
  const { failed, note, shed, endpointOf, isTimed } = notes;

  let underWay = 0;

  function write({ request, requestId, rateHeaders }: Call, reply: Reply, { isOwn }: Route): Response {
    if (!isCorsOn || isOwn) return respond(reply, requestId, rateHeaders);
    return respond(reply, requestId, rateHeaders, cors.headersFor(request.headers.get('origin')));
  }

  /** Who asks for too much, or comes while too much is under way, is not let in; whoever watches over us is. */
  function refuse(call: Call, route: Route): Reply | undefined {
    if (route.isUncounted) return undefined;
    if (underWay >= LIMITS.requestsAtOnceMax) throw overloaded('CONCURRENCY_LIMIT');
    return door.count?.(call);
  }

  /** Answers one matched request; whatever is thrown becomes the answer of its fault. */
  function handle(request: Request, params: Record<string, string>, endpoint: Endpoint) {
    const call = openCall(request, params, requestIdOf(request) ?? mintRequestId(), door.addressOf);
    const start = isTimed ? performance.now() : 0;
    try {
      const outcome = refuse(call, endpoint.route) ?? endpoint.answer(call);
      return outcome instanceof Promise
        ? settle(outcome, call, endpoint, start)
        : finish(outcome, call, endpoint, start);
    } catch (error) {
      return finish(failed(error, call, endpoint), call, endpoint, start);
    }
  }

  function finish(reply: Reply, call: Call, endpoint: Endpoint, start: number): Response {
    if (reply === CROWDED) shed('QUEUE_FULL');
    if (isTimed) note(call, endpoint, reply, start);
    door.listener?.(call);
    return write(call, reply, endpoint.route);
  }

  function settle(outcome: Promise<Reply>, call: Call, endpoint: Endpoint, start: number) {
    underWay += 1;
    return withTimeout(outcome, LIMITS.answerMsMax, unavailable)
      .catch((error: unknown) => failed(error, call, endpoint))
      .then((reply) => {
        underWay -= 1;
        return finish(reply, call, endpoint, start);
      });
  }

  const nowhere = endpointOf(NOWHERE, undefined, () => faultReply('unknown_route'));

  /** What no native route took: another spelling of a path, another method, or nothing of ours. */
  const fetch: NativeHandler = (request) => {
    const found = match(pathOf(request.url));
    if (!found) return handle(request, {}, nowhere);
    const { route, params } = found;
    const method = request.method === 'HEAD' ? 'GET' : (request.method as Method);
    const answer = route.answers[method];
    const known = answer ? method : undefined;
    return handle(request, params, endpointOf(route, known, answer ?? otherMethod(route)));
  };

  /** A preflight, or a method that this path does not have. */
  function otherMethod(route: Route): Answer {
    return ({ request }) => {
      const methods = Object.keys(route.answers) as Method[];
      const preflight = route.isOwn ? undefined : cors.preflight(request, methods);
      return preflight
        ? { status: 204, headers: preflight, body: null }
        : faultReply('method_not_allowed', { Allow: allowedMethods(route) });
    };
  }

  const routes: Record<string, Record<string, NativeHandler>> = {};
  for (const route of table) {
    const methods: Record<string, NativeHandler> = {};
    for (const [method, answer] of Object.entries(route.answers)) {
      const endpoint = endpointOf(route, method, answer);
      methods[method] = (request) => handle(request, request.params ?? {}, endpoint);
    }
    for (const method of coveredMethods(route, table)) methods[method] = fetch;
    routes[route.pattern] = methods.GET ? { ...methods, HEAD: methods.GET } : methods;
  }
  return { routes, fetch };
}

/** The one function that writes an answer. */
function respond(
  { status, headers, body }: Reply,
  requestId: string,
  rates: RateHeaders | undefined,
  corsHeaders?: Readonly<Record<string, string>>,
): Response {
  // A reply made for this call has its request ID, and takes what else is told: to copy its headers costs more than all else.
  const isOwn = headers[REQUEST_ID] === requestId && corsHeaders === undefined;
  const all: Record<string, string> = isOwn
    ? headers
    : { ...headers, ...corsHeaders, [REQUEST_ID]: requestId };
  if (rates !== undefined) {
    all['RateLimit-Policy'] = rates['RateLimit-Policy'];
    all.RateLimit = rates.RateLimit;
  }
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

function unavailable(): never {
  throw new Fault('unavailable');
}
