import { errorTrace } from '../../model/error_trace.ts';
import { Fault, OVERLOAD_CAUSES } from '../../model/fault.ts';
import { readTraceContext } from '../../model/trace_context.ts';
import type { Meter, OperationMeter } from '../../ops/metrics/meter.ts';
import type { Log, RequestLogging } from '../../ops/process/log.ts';
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
  function recordFault(fault: Fault, { request, requestId }: Call, { route }: Endpoint): void {
    const { cause, frames } = errorTrace(fault.cause ?? fault);
    meter?.countError(cause);
    if (fault.code === 'overloaded' && isShed(fault.cause)) {
      log.write({ event: 'overloaded', cause, count: 1 });
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
      log.write({ event: 'overloaded', cause, count: 1 });
    },
  };
}

/** The trace ID of the request for its log line, if the caller sent one. */
function traceIdOf({ headers }: Request): { readonly trace_id?: string } {
  const trace = readTraceContext(headers);
  return trace ? { trace_id: trace.traceId } : {};
}

/** Causes of unfinished work that are no shed load, but a fault like any other: a process died, or did not start. */
const FAULT_CAUSES = new Set(['WORKER_START_FAILED', 'WORKER_EXITED', 'POOL_CLOSED']);

function isShed(cause: unknown): boolean {
  const { code = '' } = (cause ?? {}) as { readonly code?: string };
  return code in OVERLOAD_CAUSES && !FAULT_CAUSES.has(code);
}
