import { errorTrace } from '../../domain/error_trace.ts';
import { Fault } from '../../domain/fault.ts';
import { readTraceContext } from '../../domain/trace_context.ts';
import type { Meter, OperationMeter } from '../../metrics/meter.ts';
import type { Log, RequestLogging } from '../../platform/log.ts';
import type { Call, CallHandler } from '../pipeline/call.ts';
import { type Reply, replyOf } from './reply.ts';
import { labelOf, type Route } from './router.ts';

/** The handler of a route and method, and its meter. */
export interface Endpoint {
  readonly route: Route;
  readonly answer: CallHandler;
  readonly meter: OperationMeter | undefined;
}

export type RequestLog = ReturnType<typeof openRequestLog>;

/** The metric label of a method that the path does not have. */
const OTHER_METHOD = 'other';
const SAMPLED_ONE_IN = 100;

/** Logs and counts requests, and turns errors into replies. */
export function openRequestLog(
  requestLogging: RequestLogging,
  log: Pick<Log, 'write'>,
  meter: Meter | undefined,
) {
  const logShed = (cause: string) => log.write({ event: 'overloaded', cause, count: 1 });

  function recordFault(fault: Fault, { request, requestId }: Call, { route }: Endpoint): void {
    const { cause, frames } = errorTrace(fault.cause ?? fault);
    meter?.countError(cause);
    if (fault.code === 'overloaded' && isShed(fault.cause)) {
      logShed(cause);
      return;
    }
    log.write({
      event: 'fault',
      request_id: requestId,
      route: labelOf(route),
      code: fault.code,
      cause,
      ...(fault.code === 'internal' ? { frames } : {}),
      count: 1,
      ...traceIdOf(request),
    });
  }

  function logRequest(
    { request, requestId, principal }: Call,
    { route }: Endpoint,
    { status }: Reply,
    milliseconds: number,
  ): void {
    if (requestLogging === 'sampled' && Math.random() * SAMPLED_ONE_IN >= 1) return;
    log.write({
      event: 'request',
      request_id: requestId,
      method: request.method,
      route: labelOf(route),
      status,
      duration_ms: Math.round(milliseconds * 1000) / 1000,
      ...(principal ? { client_id: principal.clientId } : {}),
      ...traceIdOf(request),
    });
  }

  return {
    /** `method` is undefined if the path does not have it. */
    endpointOf: (route: Route, method: string | undefined, answer: CallHandler): Endpoint => ({
      route,
      answer,
      meter: meter?.operation(method ?? OTHER_METHOD, labelOf(route)),
    }),
    /** Whether `record` needs the start time of requests; otherwise it need not be called. */
    isTimed: requestLogging !== 'off' || meter !== undefined,
    /** Turns a thrown error into the HTTP error response; logs it if the status is 500 or above. */
    failureReply(error: unknown, call: Call, endpoint: Endpoint): Reply {
      const fault = error instanceof Fault ? error : new Fault('internal', [], error);
      const reply = replyOf(fault);
      if (reply.status >= 500) recordFault(fault, call, endpoint);
      return reply;
    },
    record(call: Call, endpoint: Endpoint, reply: Reply, start: number): void {
      const milliseconds = performance.now() - start;
      endpoint.meter?.count(reply.status, milliseconds, reply.fault);
      if (requestLogging !== 'off') logRequest(call, endpoint, reply, milliseconds);
    },
    /** Counts load that was shed without a fault. */
    recordShed(cause: string): void {
      meter?.countError(cause);
      logShed(cause);
    },
  };
}

/** The trace ID of the request for its log line, if the caller sent one. */
function traceIdOf({ headers }: Request): { readonly trace_id?: string } {
  const trace = readTraceContext(headers);
  return trace ? { trace_id: trace.traceId } : {};
}

/** Causes of shed load. A process that died or did not start is a fault like any other. */
const SHED_CAUSES = new Set([
  'QUEUE_FULL',
  'CONCURRENCY_LIMIT',
  'DEADLINE_EXCEEDED',
  'WORKER_TIMEOUT',
  'WORKER_START_TIMEOUT',
  'REVOCATION_LIMIT',
]);

function isShed(cause: unknown): cause is { readonly code: string } {
  return cause instanceof Error && 'code' in cause && SHED_CAUSES.has(cause.code as string);
}
