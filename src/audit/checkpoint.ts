import { parseUuid, type Uuid } from '../domain/id.ts';
import type { LogKeys } from './keys.ts';
import type { Erasure, LogHead } from './port.ts';

/** How far a log was at some time, said outside of the database. */
export interface Checkpoint {
  readonly log: Uuid;
  readonly position: number;
  /** Hexadecimal. */
  readonly tag: string;
  readonly entries: number;
}

/** A line of a file of checkpoints, read. `unsigned`: it is not, or not by this installation. */
export type Line =
  | ({ readonly kind: 'checkpoint' } & Checkpoint)
  | ({ readonly kind: 'erasure' } & Erasure)
  /** A backup was put in the place of the database: what was said before is of another one. */
  | { readonly kind: 'restore'; readonly at: number }
  | { readonly kind: 'unsigned' };

/** A line that says how far a log is: JSON, with an Ed25519 signature over what stands before it. */
export function checkpointLine(
  { log, chain }: LogHead,
  at: number,
  keys: Pick<LogKeys, 'sign'>,
): string | undefined {
  if (!chain) return undefined;
  const { seq, tag, entries } = chain.end;
  return signed(
    {
      kind: 'checkpoint',
      log,
      position: seq,
      tag: Buffer.from(tag).toString('hex'),
      entries,
      at: new Date(at).toISOString(),
    },
    keys,
  );
}

/** A line that says who was erased: identifiers and a time, and nothing else. */
export function erasureLine({ realm, user, at }: Erasure, keys: Pick<LogKeys, 'sign'>): string {
  return signed({ kind: 'erasure', realm_id: realm, user_id: user, at: new Date(at).toISOString() }, keys);
}

/** A line that says that a backup was put in the place of the database. */
export function restoreLine(at: number, keys: Pick<LogKeys, 'sign'>): string {
  return signed({ kind: 'restore', at: new Date(at).toISOString() }, keys);
}

function signed(said: Readonly<Record<string, unknown>>, keys: Pick<LogKeys, 'sign'>): string {
  return JSON.stringify({ ...said, signature: keys.sign(JSON.stringify(said)) });
}

/** Reads a line. What was not signed by these keys, whole and as it stands, is told apart and never trusted. */
export function readLine(text: string, keys: Pick<LogKeys, 'isSigned'>): Line {
  const said = parseObject(text);
  const { signature, ...rest } = said ?? {};
  if (typeof signature !== 'string' || !keys.isSigned(JSON.stringify(rest), signature)) {
    return { kind: 'unsigned' };
  }
  const log = parseUuid(String(rest.log));
  if (rest.kind === 'checkpoint' && log) {
    const { position, tag, entries } = rest;
    return {
      kind: 'checkpoint',
      log,
      position: Number(position),
      tag: String(tag),
      entries: Number(entries),
    };
  }
  if (rest.kind === 'restore') return { kind: 'restore', at: Date.parse(String(rest.at)) };
  const [realm, user] = [parseUuid(String(rest.realm_id)), parseUuid(String(rest.user_id))];
  if (rest.kind === 'erasure' && realm && user) {
    return { kind: 'erasure', realm, user, at: Date.parse(String(rest.at)) };
  }
  return { kind: 'unsigned' };
}

function parseObject(text: string): Record<string, unknown> | undefined {
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === 'object' && value !== null ? (value as Record<string, unknown>) : undefined;
  } catch {
    return undefined;
  }
}
