import type { Erasure } from '../domain/erasure.ts';
import { parseUuid, type Uuid } from '../domain/id.ts';
import type { LogHead } from '../store/audit/log_reading.ts';
import type { LogKeys } from './log_keys.ts';

/** The position and tag of a log. */
export interface LogPosition {
  readonly log: Uuid;
  readonly position: number;
  /** Hexadecimal. */
  readonly tag: string;
  readonly entries: number;
}

/** The position of a log at some time, recorded outside of the database. */
export interface Checkpoint extends LogPosition, CheckpointContext {}

/** When a checkpoint was written, and the retention in force. */
export interface CheckpointContext {
  /** Milliseconds since the epoch. */
  readonly at: number;
  /** Entries older than this number of days were removed. */
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

/** The content of a line. */
export type CheckpointFileRecord =
  | { readonly kind: 'checkpoint'; readonly logs: readonly Checkpoint[] }
  | ({ readonly kind: 'erasure' } & Erasure)
  | ({ readonly kind: 'restore' } & Restoration)
  /** Written by a later release. */
  | { readonly kind: 'other' };

/**
 * A line as read. `malformed`: not a checkpoint line, or truncated. Lines that these keys did not sign are
 * reported and never trusted.
 */
export type CheckpointFileLine =
  | (CheckpointFileRecord & { readonly isSigned: boolean })
  | { readonly kind: 'malformed' };

/**
 * A checkpoint line: JSON with an Ed25519 signature over all preceding members. Signing dominates the cost,
 * so one line may cover several logs. Logs without an entry are omitted.
 */
export function checkpointLine(
  heads: readonly LogHead[],
  { at, retentionDays }: CheckpointContext,
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

/** A restore line. */
export function restoreLine({ at, takenAt }: Restoration, keys: Pick<LogKeys, 'sign'>): string {
  const taken_at = takenAt === undefined ? null : new Date(takenAt).toISOString();
  return signLine({ kind: 'restore', at: new Date(at).toISOString(), taken_at }, keys);
}

function signLine(record: object, keys: Pick<LogKeys, 'sign'>): string {
  const text = JSON.stringify(record);
  return `${text.slice(0, -1)},"signature":"${keys.sign(text)}"}`;
}

/** Parses a line and verifies its signature. */
export function readLine(text: string, keys: Pick<LogKeys, 'isSigned'>): CheckpointFileLine {
  const { signature, ...rest } = parseObject(text) ?? {};
  const record = readRecord(rest);
  if (!record) return { kind: 'malformed' };
  const isSigned = typeof signature === 'string' && keys.isSigned(JSON.stringify(rest), signature);
  return { ...record, isSigned };
}

type Members = Readonly<Record<string, unknown>>;

function readRecord(line: Members): CheckpointFileRecord | undefined {
  if (typeof line.kind !== 'string') return undefined;
  if (line.kind === 'checkpoint') return readCheckpoints(line);
  if (line.kind === 'erasure') return readErasure(line);
  return line.kind === 'restore' ? readRestoration(line) : { kind: 'other' };
}

function readRestoration({ at: record, taken_at }: Members): CheckpointFileRecord | undefined {
  const [at, takenAt] = [readInstant(record), readInstant(taken_at)];
  const isAbsent = taken_at === null || taken_at === undefined;
  return at === undefined || (takenAt === undefined && !isAbsent)
    ? undefined
    : { kind: 'restore', at, takenAt };
}

function readCheckpoints(line: Members): CheckpointFileRecord | undefined {
  const { logs: record, retention_days: retentionDays } = line;
  const at = readInstant(line.at);
  if (!Array.isArray(record) || at === undefined || typeof retentionDays !== 'number') return undefined;
  const logs = record.map((each) => readCheckpoint(each, { at, retentionDays }));
  const isWhole = logs.every((each) => each !== undefined);
  return isWhole ? { kind: 'checkpoint', logs } : undefined;
}

function readCheckpoint(record: unknown, context: CheckpointContext): Checkpoint | undefined {
  if (typeof record !== 'object' || record === null) return undefined;
  const { log: name, position, tag, entries } = record as Members;
  const log = readUuid(name);
  if (!log || typeof position !== 'number' || typeof tag !== 'string' || typeof entries !== 'number')
    return undefined;
  return { log, position, tag, entries, ...context };
}

function readErasure({ realm_id, user_id, at }: Members): CheckpointFileRecord | undefined {
  const [realm, user, instant] = [readUuid(realm_id), readUuid(user_id), readInstant(at)];
  return realm && user && instant !== undefined ? { kind: 'erasure', realm, user, at: instant } : undefined;
}

function readUuid(value: unknown): Uuid | undefined {
  return typeof value === 'string' ? parseUuid(value) : undefined;
}

const INSTANT = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z$/;

function readInstant(value: unknown): number | undefined {
  const instant = typeof value === 'string' && INSTANT.test(value) ? Date.parse(value) : Number.NaN;
  return Number.isNaN(instant) ? undefined : instant;
}

function parseObject(text: string): Members | undefined {
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === 'object' && value !== null ? (value as Members) : undefined;
  } catch {
    return undefined;
  }
}
