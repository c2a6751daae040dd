import { errorTrace } from '../model/error_trace.ts';
import type { LogRecord } from '../ops/process/log.ts';

/** The log record of an unexpected error outside of requests; `route` names the work. */
export function backgroundFault(route: string, error: unknown): LogRecord {
  return { event: 'fault', request_id: '', route, code: 'internal', ...errorTrace(error), count: 1 };
}
