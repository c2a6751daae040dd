import type { Clock } from './id.ts';
import { LIMITS } from './limits.ts';

/** The trace that a request is part of (W3C Trace Context, level 1). */
export interface TraceContext {
  /** 32 hex digits, lower case. */
  readonly traceId: string;
  /** The sampled flag, propagated unchanged. */
  readonly isSampled: boolean;
  /** `tracestate`, propagated unchanged: only its receiver parses it. Undefined if it is absent or too long. */
  readonly state: string | undefined;
}

/** Later versions may have more after the flags (section 3.2.4, "Versioning of traceparent"). */
const PARENT = /^([0-9a-f]{2})-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})(-.*)?$/;
const NO_VERSION = 'ff';
const ALL_ZERO = /^0+$/;
const SAMPLED = 1;

/** What any header can carry. */
const STATE = /^[\t\x20-\x7e]+$/;

/** Parses `traceparent`. A malformed one is ignored, and `tracestate` with it. */
export function readTraceContext(headers: Pick<Headers, 'get'>): TraceContext | undefined {
  const parent = headers.get('traceparent');
  if (parent === null) return undefined;
  const [, version, traceId = '', parentId = '', flags = '', more] = PARENT.exec(parent) ?? [];
  if (version === undefined || version === NO_VERSION) return undefined;
  if (version === '00' && more !== undefined) return undefined;
  if (ALL_ZERO.test(traceId) || ALL_ZERO.test(parentId)) return undefined;
  const state = headers.get('tracestate') ?? '';
  return {
    traceId,
    isSampled: (Number.parseInt(flags, 16) & SAMPLED) !== 0,
    state: STATE.test(state) && state.length <= LIMITS.traceStateCharactersMax ? state : undefined,
  };
}

/** The headers that make an outbound request part of the trace. */
export function traceHeaders(
  { traceId, isSampled, state }: TraceContext,
  { randomBytes }: Pick<Clock, 'randomBytes'>,
): Readonly<Record<string, string>> {
  const parentId = Buffer.from(randomBytes(8)).toString('hex');
  const traceparent = `00-${traceId}-${parentId}-${isSampled ? '01' : '00'}`;
  return state === undefined ? { traceparent } : { traceparent, tracestate: state };
}
