import type { Clock } from './id.ts';
import { LIMITS } from './limits.ts';

/** The trace that a request is part of (W3C Trace Context, level 1). */
export interface TraceContext {
  /** 32 hex digits, lower case. */
  readonly traceId: string;
  /** The sampled flag, propagated unchanged. */
  readonly isSampled: boolean;
  /** `tracestate`, propagated unchanged; undefined if it is absent or invalid. */
  readonly state: string | undefined;
}

/** Later versions may have more after the flags (section 3.2.4, "Versioning of traceparent"). */
const PARENT = /^([0-9a-f]{2})-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})(-.*)?$/;
const NO_VERSION = 'ff';
const ALL_ZERO = /^0+$/;
const SAMPLED = 1;

/** Parses `traceparent` and `tracestate`. A malformed one is ignored; without the first, so is the second. */
export function readTraceContext(headers: Pick<Headers, 'get'>): TraceContext | undefined {
  const parent = headers.get('traceparent');
  if (parent === null) return undefined;
  const [, version, traceId = '', parentId = '', flags = '', more] = PARENT.exec(parent) ?? [];
  if (version === undefined || version === NO_VERSION) return undefined;
  if (version === '00' && more !== undefined) return undefined;
  if (ALL_ZERO.test(traceId) || ALL_ZERO.test(parentId)) return undefined;
  return {
    traceId,
    isSampled: (Number.parseInt(flags, 16) & SAMPLED) !== 0,
    state: readState(headers.get('tracestate')),
  };
}

/** Section 3.3.1: 1 to 32 members with distinct keys. */
const KEY = /^(?:[a-z][a-z0-9_\-*/]{0,255}|[a-z0-9][a-z0-9_\-*/]{0,240}@[a-z][a-z0-9_\-*/]{0,13})$/;
const VALUE = /^[\x20-\x2b\x2d-\x3c\x3e-\x7e]{0,255}[\x21-\x2b\x2d-\x3c\x3e-\x7e]$/;

function readState(raw: string | null): string | undefined {
  if (raw === null || raw.length > LIMITS.traceStateCharactersMax) return undefined;
  const members = raw
    .split(',')
    .map((member) => member.replace(/^[ \t]+|[ \t]+$/g, ''))
    .filter((member) => member !== '');
  if (members.length === 0 || members.length > LIMITS.traceStateMembersMax) return undefined;
  const keys = members.map((member) => member.slice(0, Math.max(0, member.indexOf('='))));
  const areValid = members.every(
    (member, index) =>
      KEY.test(keys[index] as string) && VALUE.test(member.slice((keys[index] as string).length + 1)),
  );
  return areValid && new Set(keys).size === keys.length ? members.join(',') : undefined;
}

/** A new trace, not sampled. */
export function startTrace(clock: Pick<Clock, 'randomBytes'>): TraceContext {
  return { traceId: randomHex(16, clock), isSampled: false, state: undefined };
}

/** The headers that make an outbound request part of the trace. */
export function traceHeaders(
  { traceId, isSampled, state }: TraceContext,
  clock: Pick<Clock, 'randomBytes'>,
): Readonly<Record<string, string>> {
  const traceparent = `00-${traceId}-${randomHex(8, clock)}-${isSampled ? '01' : '00'}`;
  return state === undefined ? { traceparent } : { traceparent, tracestate: state };
}

/** Never all zeros, which is an invalid ID. */
function randomHex(bytes: number, { randomBytes }: Pick<Clock, 'randomBytes'>): string {
  for (;;) {
    const hex = Buffer.from(randomBytes(bytes)).toString('hex');
    if (!ALL_ZERO.test(hex)) return hex;
  }
}
