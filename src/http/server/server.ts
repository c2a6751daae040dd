import type { Settings } from '../../app/config/parse.ts';
import { Fault, overloaded, Refusal } from '../../model/fault.ts';
import type { IpAddress } from '../../model/ip_address.ts';
import { LIMITS } from '../../model/limits.ts';
import { withTimeout } from '../../model/timeout.ts';
import type { Meter } from '../../ops/metrics/meter.ts';
import type { Log } from '../../ops/process/log.ts';
import { isBodyComplete, isClosedAfterTask } from '../pipeline/body.ts';
import { type Call, type CallHandler, openCall } from '../pipeline/call.ts';
import { openCallerAddress } from './caller_address.ts';
import { openCors } from './cors.ts';
import { type CountCall, type RateLimits, UNLIMITED } from './rate_limits.ts';
import { faultReply, OVERLOADED, REQUEST_ID, type Reply } from './reply.ts';
import { type Endpoint, openRequestLog, type RequestLog } from './request_log.ts';
import { allowedMethods, coveredMethods, type Method, openRouter, pathOf, type Route } from './router.ts';
import { urlOf } from './url.ts';

/** Port 0 chooses a free one. */
export interface ServerSettings
  extends Pick<Settings, 'host' | 'port' | 'trustedProxies' | 'corsOrigins' | 'requestLogging'> {
  readonly tls: { readonly cert: string; readonly key: string } | undefined;
  /** Several processes listen on one port. */
  readonly isShared: boolean;
  /** The flag that names both host and port, for messages. */
  readonly flag?: '--metrics';
}

export type Server = Awaited<ReturnType<typeof startServer>>;

/** The part of `Bun.serve` that is used here. */
type NativeHandler = (request: Request & { params?: Record<string, string> }) => Response | Promise<Response>;

/** Called with every call before its response is sent, which waits for the promise. */
type CallListener = (call: Call) => Promise<void> | undefined;

/** What runs before and after the stages of a call. */
interface CallHooks {
  addressOf(request: Request): IpAddress | undefined;
  /** Counts the call by its address. */
  readonly count: CountCall | undefined;
  readonly listener: CallListener | undefined;
  isDraining(): boolean;
  /** Sets after how many seconds without traffic the connection is closed; 0: never. */
  setIdleTimeout(request: Request, seconds: number): void;
}

const DRAIN_POLL_MS = 5;
/** The route that requests to unknown paths are logged as. */
const UNKNOWN_ROUTE: Route = { pattern: '*', answers: {} };
const CALLER_REQUEST_ID = new RegExp(`^[A-Za-z0-9._-]{1,${LIMITS.requestIdCharactersMax}}$`);

/** The option `close` in a list of connection options. */
const CLOSE = /(?:^|,)[ \t]*close[ \t]*(?:,|$)/i;

/** Optional parts of a server. */
interface ServerOptions {
  readonly limits?: RateLimits;
  readonly meter?: Meter | undefined;
  readonly listener?: CallListener;
  /** Receives trusted proxies that do not send a readable client address. */
  readonly onUnreadableProxy?: (proxy: IpAddress) => void;
}

/**
 * Serves the routes: the only code that uses `Bun.serve` and writes responses. The routes may need the chosen address, so
 * they are made after the port is bound.
 */
export async function startServer(
  settings: ServerSettings,
  log: Pick<Log, 'write'>,
  makeRoutes: (url: string, isDraining: () => boolean) => Promise<readonly Route[]>,
  { limits = UNLIMITED, meter, listener, onUnreadableProxy }: ServerOptions = {},
) {
  const notReady: NativeHandler = (request) =>
    respond(faultReply('unavailable'), { request, requestId: 'early', rateHeaders: undefined });
  const server = listen(settings, notReady);
  const url = urlOf(settings.host, server.port ?? settings.port, settings.tls !== undefined);
  const callerAddress = openCallerAddress(settings.trustedProxies, onUnreadableProxy);
  let hasDrainBegun = false;
  const isDraining = () => hasDrainBegun;
  const hooks: CallHooks = {
    addressOf: (request) => callerAddress(request.headers, server.requestIP(request)?.address),
    count: limits.address,
    listener,
    isDraining,
    setIdleTimeout: (request, seconds) => server.timeout(request, seconds),
  };
  const requestLog = openRequestLog(settings.requestLogging, log, meter);
  const { routes, fetch } = requestHandlers(await makeRoutes(url, isDraining), settings, requestLog, hooks);
  server.reload({ routes, fetch });
  return {
    /** `http://host:port`, with the chosen port. */
    url,
    /** The number of requests in progress. */
    pending: () => server.pendingRequests,
    /** For so many seconds, and at the stop, each answer closes its connection and the service is not ready. */
    async drain(seconds: number): Promise<void> {
      hasDrainBegun = true;
      await Bun.sleep(seconds * 1_000);
    },
    /** Resolves when all requests have ended, or at the drain limit. */
    async stop(): Promise<void> {
      hasDrainBegun = true;
      const deadline = performance.now() + LIMITS.drainMsMax;
      await closeListener(server, fetch);
      while (server.pendingRequests > 0 && performance.now() < deadline) await Bun.sleep(DRAIN_POLL_MS);
      await server.stop(true);
    },
  };
}

/**
 * Closes the listener. The runtime closes idle connections at the same time, and with them requests that are on their way. So requests wait
 * until the listener is closed: their connections are not idle meanwhile. Callers whose connections were closed before, also by another
 * process, may still connect, so each interval with a request is followed by another one.
 */
async function closeListener(server: Bun.Server<undefined>, fetch: NativeHandler): Promise<void> {
  const closed = Promise.withResolvers<void>();
  let requests = 0;
  const hold: NativeHandler = (request) => {
    requests += 1;
    return closed.promise.then(() => fetch(request));
  };
  server.reload({ routes: {}, fetch: hold });
  const deadline = performance.now() + LIMITS.drainHoldMsMax;
  let before: number;
  do {
    before = requests;
    await Bun.sleep(LIMITS.drainHoldMs);
    // A process that was suspended has accepted connections in this turn, and reads their requests in the next one.
    await Bun.sleep(DRAIN_POLL_MS);
  } while (requests > before && performance.now() < deadline);
  server.stop();
  // Another process without requests, which began at the same time, has closed its listener by then: callers connect to neither.
  await Bun.sleep(LIMITS.drainHoldMs / 2);
  closed.resolve();
}

/**
 * Checks that the port is free, which processes with a shared port would not notice. Throws Refusal.
 */
export async function assertPortFree(settings: ServerSettings): Promise<void> {
  const probe = listen({ ...settings, isShared: false }, () => new Response(null, { status: 503 }));
  await probe.stop(true);
}

/** Throws Refusal if the address cannot be bound or the certificate cannot be read. */
function listen(settings: ServerSettings, fetch: NativeHandler): Bun.Server<undefined> {
  try {
    return Bun.serve({
      hostname: settings.host,
      port: settings.port,
      reusePort: settings.isShared,
      idleTimeout: LIMITS.idleSecondsMax,
      // Bodies are limited where they are read; unread ones are not buffered.
      maxRequestBodySize: Number.MAX_SAFE_INTEGER,
      // The runtime's development error pages would show errors.
      development: false,
      ...(settings.tls ? { tls: settings.tls } : {}),
      fetch,
    });
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException;
    const { host, port, flag = '--host or --port' } = settings;
    const advice = /^(EADDR|EACCES)/.test(code ?? '')
      ? `. Pass an address of this machine and a free port with ${flag}`
      : '';
    throw new Refusal(`cannot listen on ${host} port ${port}: ${code ?? message}${advice}`, { cause: error });
  }
}

function requestHandlers(
  table: readonly Route[],
  settings: ServerSettings,
  requestLog: RequestLog,
  hooks: CallHooks,
) {
  const cors = settings.corsOrigins.length > 0 ? openCors(settings.corsOrigins) : undefined;
  const mintRequestId = requestIds();
  const match = openRouter(table);
  const { failureReply, record, recordShed, endpointOf, isTimed } = requestLog;
  let inFlight = 0;

  function write(call: Call, reply: Reply, { isOwn }: Route): Response {
    const corsHeaders = isOwn ? undefined : cors?.headersFor(call.request.headers.get('origin'));
    const response = respond(reply, call, corsHeaders);
    if (hooks.isDraining()) response.headers.set('Connection', 'close');
    return response;
  }

  /** Rejects calls above the concurrency limit or the rate limit; health checks are exempt. */
  function refuse(call: Call, route: Route): Reply | undefined {
    if (route.isUncounted) return undefined;
    if (inFlight >= LIMITS.requestsAtOnceMax) throw overloaded('CONCURRENCY_LIMIT');
    return hooks.count?.(call);
  }

  /** Answers one matched request; an error becomes the reply of its fault. */
  function handleAtOnce(request: Request, params: Record<string, string>, endpoint: Endpoint) {
    const call = openCall(request, params, requestIdOf(request) ?? mintRequestId(), hooks.addressOf);
    const start = isTimed ? performance.now() : 0;
    try {
      const outcome = refuse(call, endpoint.route) ?? endpoint.answer(call);
      return outcome instanceof Promise
        ? settle(outcome, call, endpoint, start)
        : finish(outcome, call, endpoint, start);
    } catch (error) {
      return finish(failureReply(error, call, endpoint), call, endpoint, start);
    }
  }

  function finish(reply: Reply, call: Call, endpoint: Endpoint, start: number) {
    if (reply === OVERLOADED) recordShed('QUEUE_FULL');
    if (isTimed) record(call, endpoint, reply, start);
    const logged = hooks.listener?.(call);
    return logged === undefined
      ? write(call, reply, endpoint.route)
      : logged.then(() => write(call, reply, endpoint.route));
  }

  async function settle(outcome: Promise<Reply>, call: Call, endpoint: Endpoint, start: number) {
    inFlight += 1;
    const { isLong } = endpoint.route;
    if (isLong) hooks.setIdleTimeout(call.request, 0);
    const answer = isLong ? outcome : withTimeout(outcome, LIMITS.answerMsMax, answerTimeout);
    const fail = (error: unknown) => failureReply(error, call, endpoint);
    const reply = await answer.catch(fail);
    reply.streamed?.catch(fail);
    if (isLong) hooks.setIdleTimeout(call.request, LIMITS.idleSecondsMax);
    inFlight -= 1;
    return finish(reply, call, endpoint, start);
  }

  const handle = closingAfterChunks(handleAtOnce);
  const unknownRoute = endpointOf(UNKNOWN_ROUTE, undefined, () => faultReply('unknown_route'));

  /** Requests that no native route matched: another spelling of a path, another method, or an unknown path. */
  const fetch: NativeHandler = (request) => {
    const found = match(pathOf(request.url));
    if (!found) return handle(request, {}, unknownRoute);
    const { route, params } = found;
    const method = request.method === 'HEAD' ? 'GET' : (request.method as Method);
    const answer = route.answers[method];
    const known = answer ? method : undefined;
    return handle(request, params, endpointOf(route, known, answer ?? otherMethod(route, cors)));
  };

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

/** A preflight, or a method that the path does not have. */
function otherMethod(route: Route, cors: ReturnType<typeof openCors> | undefined): CallHandler {
  return ({ request }) => {
    const methods = Object.keys(route.answers) as Method[];
    const preflight = route.isOwn ? undefined : cors?.preflight(request, methods);
    return preflight
      ? { status: 204, headers: preflight, body: null }
      : faultReply('method_not_allowed', { Allow: allowedMethods(route) });
  };
}

type Handle = (
  request: Request,
  params: Record<string, string>,
  endpoint: Endpoint,
) => Response | Promise<Response>;

/**
 * The runtime takes trailers of a chunked body for a second request, answers it 400, and closes the connection: at once for
 * trailers that arrive with the request, so that it is not handled then. Later ones find a closed connection, unless the body is not
 * complete at the response: a caller that still sends would not read it.
 */
function closingAfterChunks(handle: Handle): Handle {
  async function handleChunked(...[request, params, endpoint]: Parameters<Handle>): Promise<Response> {
    if (await isClosedAfterTask(request)) return new Response(null, { status: 400 });
    const response = await handle(request, params, endpoint);
    if (await isBodyComplete(request, response)) response.headers.set('Connection', 'close');
    return response;
  }
  return (request, params, endpoint) =>
    request.headers.has('transfer-encoding')
      ? handleChunked(request, params, endpoint)
      : handle(request, params, endpoint);
}

/** The one function that writes a response. */
function respond(
  { status, headers, body }: Reply,
  { request, requestId, rateHeaders: rates }: Pick<Call, 'request' | 'requestId' | 'rateHeaders'>,
  corsHeaders?: Readonly<Record<string, string>>,
): Response {
  // A reply made for this call has its request ID, and its headers are extended in place: a copy costs more than the rest.
  const isOwn = headers[REQUEST_ID] === requestId && corsHeaders === undefined;
  const all: Record<string, string> = isOwn
    ? headers
    : { ...headers, ...corsHeaders, [REQUEST_ID]: requestId };
  if (headers.Vary !== undefined && corsHeaders?.Vary !== undefined)
    all.Vary = `${headers.Vary}, ${corsHeaders.Vary}`;
  if (rates !== undefined) {
    all['RateLimit-Policy'] = rates['RateLimit-Policy'];
    all.RateLimit = rates.RateLimit;
  }
  // The runtime closes the connection, and does not announce it (RFC 9112, 9.6).
  const connection = request.headers.get('connection');
  if (connection !== null && CLOSE.test(connection)) all.Connection = 'close';
  return new Response(body, { status, headers: all });
}

/** The caller's own request ID, if it is valid. */
function requestIdOf(request: Request): string | undefined {
  const given = request.headers.get('x-request-id');
  return given !== null && CALLER_REQUEST_ID.test(given) ? given : undefined;
}

/** Unique request IDs: a random prefix for the process, then a counter. */
function requestIds(): () => string {
  const prefix = crypto.randomUUID().replaceAll('-', '').slice(0, 20);
  let count = 0;
  return () => {
    count += 1;
    return `${prefix}-${count.toString(36)}`;
  };
}

function answerTimeout(): never {
  const cause = Object.assign(new Error('no answer in time'), { code: 'ANSWER_TIMEOUT' });
  throw new Fault('unavailable', [], cause);
}
