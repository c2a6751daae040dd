import { parseUuid, type Uuid } from './id.ts';

/** That a user was erased, and when: all that is left of one. */
export interface Erasure {
  readonly realm: Uuid;
  readonly user: Uuid;
  /** Milliseconds since the epoch. */
  readonly at: number;
}

/** What a line of a ledger comes to: an erasure, a line about something else, or none that was written whole. */
export type LedgerLine = Erasure | 'other' | 'malformed';

const INSTANT = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z$/;

/** Reads a line of a ledger. What it says beyond an erasure is not looked at. */
export function parseLedgerLine(text: string): LedgerLine {
  const line = objectIn(text);
  if (typeof line?.kind !== 'string') return 'malformed';
  if (line.kind !== 'erasure') return 'other';
  const { realm_id, user_id, at } = line;
  const [realm, user] = [realm_id, user_id].map((id) => (typeof id === 'string' ? parseUuid(id) : undefined));
  const instant = typeof at === 'string' && INSTANT.test(at) ? Date.parse(at) : Number.NaN;
  if (!realm || !user || Number.isNaN(instant)) return 'malformed';
  return { realm, user, at: instant };
}

function objectIn(text: string): Readonly<Record<string, unknown>> | undefined {
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === 'object' && value !== null ? (value as Record<string, unknown>) : undefined;
  } catch {
    return undefined;
  }
}
