import type { Clock } from './id.ts';
import { LIMITS } from './limits.ts';

/** The trace that a request is part of (W3C Trace Context, level 1). */
export interface TraceContext {
  /** 32 hex digits, lower case. */
  readonly traceId: string;
  /** Whether others record it; passed on as it came. */
  readonly isSampled: boolean;
  /** What other systems keep with it, as it came; undefined where there is nothing, or nothing that can be read. */
  readonly state: string | undefined;
}

/** Later versions may have more behind the flags (section 3.2.4, "Versioning of traceparent"). */
const PARENT = /^([0-9a-f]{2})-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})(-.*)?$/;
const NO_VERSION = 'ff';
const ALL_ZERO = /^0+$/;
const SAMPLED = 1;

/** Reads `traceparent` and `tracestate`. One that is malformed is ignored, as if it had not come; the second with the first. */
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

/** Section 3.3.1: one to 32 members, a key once. */
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
  const areRead = members.every(
    (member, place) =>
      KEY.test(keys[place] as string) && VALUE.test(member.slice((keys[place] as string).length + 1)),
  );
  return areRead && new Set(keys).size === keys.length ? members.join(',') : undefined;
}

/** A trace that begins here. Nobody records it as far as we know. */
export function startTrace(clock: Pick<Clock, 'randomBytes'>): TraceContext {
  return { traceId: randomHex(16, clock), isSampled: false, state: undefined };
}

/** The headers by which a request of ours to somebody else is a part of the trace. */
export function traceHeaders(
  { traceId, isSampled, state }: TraceContext,
  clock: Pick<Clock, 'randomBytes'>,
): Readonly<Record<string, string>> {
  const traceparent = `00-${traceId}-${randomHex(8, clock)}-${isSampled ? '01' : '00'}`;
  return state === undefined ? { traceparent } : { traceparent, tracestate: state };
}

/** Never all zero, which would be no identifier. */
function randomHex(bytes: number, { randomBytes }: Pick<Clock, 'randomBytes'>): string {
  for (;;) {
    const hex = Buffer.from(randomBytes(bytes)).toString('hex');
    if (!ALL_ZERO.test(hex)) return hex;
  }
}
