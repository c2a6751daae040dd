import { z } from 'zod';
import { attempt } from '../model/attempt.ts';
import { parseUuid, type Uuid } from '../model/id.ts';
import type { Erasure } from '../model/log/erasure.ts';
import { parseInstant } from '../model/text/instant.ts';
import type { JsonObject } from '../model/text/json_object.ts';
import { parsedBy } from '../model/text/text.ts';
import type { LogKeys } from './keys.ts';
import type { LogHead } from './store/reading.ts';

/** The position and tag of a log. */
export interface LogPosition {
  readonly log: Uuid;
  readonly position: number;
  /** Hexadecimal. */
  readonly tag: string;
  readonly entries: number;
}

/** The position of a log at some time, recorded outside of the database. */
export interface Checkpoint extends LogPosition {
  /** When it was written, in milliseconds since the epoch. */
  readonly at: number;
  /** The retention in force: entries older than this number of days were removed. */
  readonly retentionDays: number;
}

/**
 * A restore of a backup, in milliseconds since the epoch. Checkpoints since `takenAt` belong to the replaced
 * database; undefined if unknown.
 */
export interface Restoration {
  readonly at: number;
  readonly takenAt: number | undefined;
}

/**
 * A line as read. `malformed`: not a checkpoint line, or truncated; `other`: written by a later release. Lines that these keys did
 * not sign are reported and never trusted.
 */
export type CheckpointFileLine =
  | ((z.output<(typeof RECORDS)[keyof typeof RECORDS]> | { readonly kind: 'other' }) & {
      readonly isSigned: boolean;
    })
  | { readonly kind: 'malformed' };

/**
 * A checkpoint line: JSON with an Ed25519 signature over all preceding members. Signing dominates the cost,
 * so one line may cover several logs. Logs without an entry are omitted.
 */
export function checkpointLine(
  heads: readonly LogHead[],
  { at, retentionDays }: Pick<Checkpoint, 'at' | 'retentionDays'>,
  keys: Pick<LogKeys, 'sign'>,
): string {
  const logs = heads.flatMap((head) => logPositionOf(head) ?? []);
  const record = { kind: 'checkpoint', at: new Date(at).toISOString(), retention_days: retentionDays, logs };
  return signLine(record, keys);
}

/** The position of a log; undefined if it has no entry, or its ID is invalid and could not be read back. */
export function logPositionOf({ log, chain }: LogHead): LogPosition | undefined {
  if (!chain || !parseUuid(log)) return undefined;
  const { seq, tag, entries } = chain.end;
  return { log, position: seq, tag: Buffer.from(tag).toString('hex'), entries };
}

const LAST_INSTANT = Date.parse('9999-12-31T23:59:59.999Z');

/** A valid instant whatever the stored value is: the row may have been edited by hand. */
function instantOf(at: number): string {
  return new Date(Math.min(Math.max(at, 0), LAST_INSTANT)).toISOString();
}

/** An erasure line: realm ID, user ID and time, nothing else. */
export function erasureLine({ realm, user, at }: Erasure, keys: Pick<LogKeys, 'sign'>): string {
  return signLine({ kind: 'erasure', realm_id: realm, user_id: user, at: instantOf(at) }, keys);
}

export function restoreLine({ at, takenAt }: Restoration, keys: Pick<LogKeys, 'sign'>): string {
  const taken_at = takenAt === undefined ? null : new Date(takenAt).toISOString();
  return signLine({ kind: 'restore', at: new Date(at).toISOString(), taken_at }, keys);
}

function signLine(record: object, keys: Pick<LogKeys, 'sign'>): string {
  const text = JSON.stringify(record);
  return `${text.slice(0, -1)},"signature":"${keys.sign(text)}"}`;
}

const instant = parsedBy(parseInstant, 'must be an instant');
const id = parsedBy(parseUuid, 'must be an ID');
const position = z.object({ log: id, position: z.number(), tag: z.string(), entries: z.number() });

/** The lines by their kind, without signature. */
const RECORDS = {
  checkpoint: z
    .object({ at: instant, retention_days: z.number(), logs: z.array(position) })
    .transform(({ at, retention_days: retentionDays, logs }) => ({
      kind: 'checkpoint' as const,
      logs: logs.map((log): Checkpoint => ({ ...log, at, retentionDays })),
    })),
  erasure: z
    .object({ realm_id: id, user_id: id, at: instant })
    .transform(({ realm_id: realm, user_id: user, at }) => ({ kind: 'erasure' as const, realm, user, at })),
  restore: z.object({ at: instant, taken_at: instant.nullish() }).transform(({ at, taken_at: takenAt }) => ({
    kind: 'restore' as const,
    at,
    takenAt: takenAt ?? undefined,
  })),
};

/** Parses a line and verifies its signature. */
export function readLine(text: string, keys: Pick<LogKeys, 'isSigned'>): CheckpointFileLine {
  const { signature, ...rest }: JsonObject = attempt(() => ({ ...JSON.parse(text) })) ?? {};
  const { kind } = rest;
  if (typeof kind !== 'string') return { kind: 'malformed' };
  const record = Object.hasOwn(RECORDS, kind)
    ? RECORDS[kind as keyof typeof RECORDS].safeParse(rest).data
    : { kind: 'other' as const };
  if (!record) return { kind: 'malformed' };
  const isSigned = typeof signature === 'string' && keys.isSigned(JSON.stringify(rest), signature);
  return { ...record, isSigned };
}
