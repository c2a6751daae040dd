import type { Load, Loader, LoadOutcome, Store } from '../directory/store.ts';
import { Fault } from '../domain/fault.ts';
import { LIMITS } from '../domain/limits.ts';
import type { AnyRecord, Key, ReferenceCondition, Resource } from '../domain/resource.ts';
import {
  CONDITION_TARGETS,
  type EmailCondition,
  fixedOf,
  type LineParser,
  type ParsedLine,
} from './import_line.ts';
import type { SourceLine } from './line_reader.ts';
import { isUnavailable, retryWhileUnavailable } from './retry.ts';

/** What became of the lines so far. */
export interface ImportCounts {
  readonly imported: number;
  readonly unchanged: number;
  readonly replaced: number;
  readonly refused: number;
}

export interface ImportOptions {
  readonly store: Pick<Store, 'get'> & Loader;
  readonly read: LineParser;
  /** Ends the import at the first refused line; what stands before it stays. */
  readonly stopAtFirst: boolean;
  /** Lines before this one are passed over. */
  readonly fromLine: number;
  /** Ends the import after the commit that is under way. */
  readonly signal: AbortSignal;
  /** Told in the order of the lines within a commit. The reason holds no value of the line. */
  onRefused(line: number, reason: string): void;
  /** Told after every commit, with how far into the file the import is. */
  onProgress(tally: ImportCounts, bytes: number): void;
}

export interface ImportResult {
  readonly counts: ImportCounts;
  /** The first line that is not done; undefined where all of them are. An import may go on from here. */
  readonly resumeLine: number | undefined;
  /** Why the database took no more, where that ended the import. */
  readonly error: Fault | undefined;
}

interface Rejection {
  readonly line: number;
  readonly reason: string;
}

/** A line whose parent or profile was not there, and what was missing. Its bytes are its own copy. */
interface DeferredLine extends Rejection {
  readonly source: SourceLine;
}

interface ImportBatch {
  readonly sources: SourceLine[];
  readonly loads: Load[];
  /** Those of the loads that a condition can ask about. */
  readonly conditionTargets: Load[];
  readonly refusals: Rejection[];
  /** What stored records said to conditions since the last commit. */
  readonly conditionResults: Map<string, boolean>;
  bytes: number;
}

/** An import that is under way. */
interface Run {
  readonly plan: ImportOptions;
  readonly counts: { -readonly [K in keyof ImportCounts]: ImportCounts[K] };
  batch: ImportBatch;
  deferred: DeferredLine[];
  deferredBytes: number;
  /** For each record that a line was set aside for: the last line about it that is done, 0 for none. */
  readonly lastDoneLine: Map<string, number>;
  /** How far the source was read. */
  bytes: number;
  nextLine: number;
  /** The first line that is not done. */
  resumeLine: number | undefined;
  /** The first refused line was told, and is the last one. */
  isStopped: boolean;
}

/**
 * Imports lines in order, `importCommitLines` to a commit. A line whose parent or profile is not there is set aside
 * and tried again at the end, until no more of them find theirs.
 */
export async function importLines(
  source: AsyncIterable<readonly SourceLine[]>,
  plan: ImportOptions,
): Promise<ImportResult> {
  const run = begin(plan);
  let trouble: Fault | undefined;
  try {
    await importSource(run, source);
    if (!isOver(run)) await flush(run);
    while (!isOver(run) && (await retryDeferred(run)));
    if (!isOver(run)) rejectDeferred(run);
  } catch (error) {
    if (!isUnavailable(error)) throw error;
    trouble = error;
  }
  if (isOver(run) || trouble) markRestUndone(run);
  return { counts: run.counts, resumeLine: run.resumeLine, error: trouble };
}

function begin(plan: ImportOptions): Run {
  return {
    plan,
    counts: { imported: 0, unchanged: 0, replaced: 0, refused: 0 },
    batch: emptyBatch(),
    deferred: [],
    deferredBytes: 0,
    lastDoneLine: new Map(),
    bytes: 0,
    nextLine: plan.fromLine,
    resumeLine: undefined,
    isStopped: false,
  };
}

function emptyBatch(): ImportBatch {
  return {
    sources: [],
    loads: [],
    conditionTargets: [],
    refusals: [],
    conditionResults: new Map(),
    bytes: 0,
  };
}

function isOver(run: Run): boolean {
  return run.isStopped || run.plan.signal.aborted;
}

/** Remembers that a line is not done. */
function markUndone(run: Run, line: number): void {
  run.resumeLine = Math.min(run.resumeLine ?? line, line);
}

/** Refused lines of a batch that was not committed were not told: they are met again as well. */
function markRestUndone(run: Run): void {
  for (const { number } of run.batch.sources) markUndone(run, number);
  for (const { line } of run.batch.refusals) markUndone(run, line);
  for (const { line } of run.deferred) markUndone(run, line);
  run.resumeLine ??= run.nextLine;
}

async function importSource(run: Run, source: AsyncIterable<readonly SourceLine[]>): Promise<void> {
  for await (const lines of source) {
    await importEach(run, lines);
    const last = lines.at(-1);
    run.bytes = last?.end ?? run.bytes;
    run.nextLine = Math.max(run.nextLine, (last?.number ?? 0) + 1);
    if (isOver(run)) return;
  }
}

/** Takes lines until the import is over; the first one that was not taken is where it may go on. */
async function importEach(run: Run, lines: readonly SourceLine[]): Promise<void> {
  for (const line of lines) {
    if (line.number < run.plan.fromLine) continue;
    if (isOver(run)) return markUndone(run, line.number);
    try {
      const work = importLine(run, line);
      if (work) await work;
    } catch (error) {
      markUndone(run, line.number);
      throw error;
    }
  }
}

/** Puts a line into the batch. Answers a promise only where there is something to wait for. */
function importLine(run: Run, line: SourceLine): Promise<void> | undefined {
  const reading = parseLine(run, line);
  if ('reason' in reading) return refuse(run, reading);
  return reading.conditions.every((condition) => isKnownNotToApply(run.batch, condition))
    ? accept(run, line, reading.load)
    : importConditional(run, line, reading);
}

function parseLine({ plan }: Run, { number, bytes }: SourceLine): ParsedLine | Rejection {
  if (bytes === undefined) {
    return { line: number, reason: `is longer than ${LIMITS.importLineBytesMax} bytes` };
  }
  try {
    return plan.read(bytes);
  } catch (error) {
    if (!(error instanceof Fault) || error.code !== 'invalid') throw error;
    const complaints = error.complaints.map(({ field, rule }) => `${field} ${rule}`.trim());
    return { line: number, reason: complaints.join('; ') };
  }
}

async function importConditional(
  run: Run,
  line: SourceLine,
  { load, conditions }: ParsedLine,
): Promise<void> {
  for (const condition of conditions) {
    const isBroken = await breaks(run, load, condition);
    if (isOver(run)) return markUndone(run, line.number);
    if (!isBroken) continue;
    const reason = `${condition.name} must be an e-mail address, as its ${condition.resource.name} says`;
    return refuse(run, { line: line.number, reason });
  }
  return accept(run, line, load);
}

/** Whether neither the stored record, as last read, nor one in the batch requires an e-mail address. */
function isKnownNotToApply(batch: ImportBatch, condition: EmailCondition): boolean {
  return batch.conditionResults.get(conditionName(condition)) === false && !appliesInBatch(batch, condition);
}

function conditionName({ resource, key, condition }: EmailCondition): string {
  return `${recordName({ resource, key })} ${condition.member}`;
}

function recordName({ resource, key }: Pick<Load['write'], 'resource' | 'key'>): string {
  return `${resource.table} ${key.join(' ')}`;
}

function appliesInBatch(batch: ImportBatch, { resource, key, condition }: EmailCondition): boolean {
  return batch.conditionTargets.some(
    ({ write }) => isRecord(write, resource, key) && holds(write.record, condition),
  );
}

function holds(record: AnyRecord | undefined, { member, equals }: ReferenceCondition): boolean {
  return record?.[member] === equals;
}

/**
 * Whether the line breaks a condition of the record it references. If that record may be in the batch, the batch is committed
 * first. A profile's condition holds for later records (docs/wire.md#password-profiles): neither for a value that is stored
 * already, nor for a record older than the profile's last change.
 */
async function breaks(run: Run, { write }: Load, emailCondition: EmailCondition): Promise<boolean> {
  const { name, condition, resource, key } = emailCondition;
  const stored = (of: Resource, at: Key): Promise<AnyRecord | undefined> =>
    retryWhileUnavailable(run.plan.signal, () => run.plan.store.get(of, at));
  const { conditionResults, conditionTargets } = run.batch;
  conditionResults.set(conditionName(emailCondition), holds(await stored(resource, key), condition));
  if (isKnownNotToApply(run.batch, emailCondition)) return false;
  if (conditionTargets.some((load) => isRecord(load.write, resource, key))) await flush(run);
  const target = await stored(resource, key);
  if (!holds(target, condition) || write.record.updated_at < (target?.updated_at ?? 0)) return false;
  return (await stored(write.resource, write.key))?.[name] !== write.record[name];
}

function isRecord(write: Load['write'], resource: Resource, key: Key): boolean {
  return write.resource === resource && key.every((id, at) => write.key[at] === id);
}

function accept(run: Run, line: SourceLine, load: Load): Promise<void> | undefined {
  const { batch } = run;
  batch.sources.push(line);
  batch.loads.push(isSuperseded(run, line, load) ? keepingStored(load) : load);
  batch.bytes += line.bytes?.length ?? 0;
  if (CONDITION_TARGETS.has(load.write.resource)) batch.conditionTargets.push(load);
  return isFull(batch) ? flush(run) : undefined;
}

/** Whether this line was set aside, and a later one about the same record is done. */
function isSuperseded({ lastDoneLine }: Run, { number }: SourceLine, { write }: Load): boolean {
  return lastDoneLine.size > 0 && (lastDoneLine.get(recordName(write)) ?? 0) > number;
}

/** A load that leaves other content where it is: lines count in the order of the file. */
function keepingStored(load: Load): Load {
  return {
    ...load,
    compare(stored) {
      const judged = load.compare(stored);
      return judged.comparison === 'replace' ? { ...judged, comparison: 'same' } : judged;
    },
  };
}

function refuse(run: Run, refusal: Rejection): Promise<void> | undefined {
  run.batch.refusals.push(refusal);
  return run.plan.stopAtFirst || isFull(run.batch) ? flush(run) : undefined;
}

function isFull({ sources, refusals, bytes }: ImportBatch): boolean {
  return sources.length + refusals.length >= LIMITS.importCommitLines || bytes >= LIMITS.importCommitBytesMax;
}

/** Commits the batch and tells what became of its lines. */
async function flush(run: Run): Promise<void> {
  const { plan, batch } = run;
  const { sources, loads, refusals } = batch;
  const load = () => plan.store.load(loads, plan.stopAtFirst);
  const outcomes = loads.length === 0 ? [] : await retryWhileUnavailable(plan.signal, load);
  run.batch = emptyBatch();
  for (let at = 0; at < outcomes.length; at += 1) {
    const refusal = recordOutcome(
      run,
      sources[at] as SourceLine,
      loads[at] as Load,
      outcomes[at] as LoadOutcome,
    );
    if (refusal) refusals.push(refusal);
  }
  reportRejected(run, refusals);
  plan.onProgress(run.counts, run.bytes);
}

const COUNT_OF = { written: 'imported', same: 'unchanged', replaced: 'replaced' } as const;

/** Counts an outcome, or sets its line aside. Answers the refusal, if it is one. */
function recordOutcome(
  run: Run,
  source: SourceLine,
  { write }: Load,
  outcome: LoadOutcome,
): Rejection | undefined {
  switch (outcome.kind) {
    case 'written':
    case 'same':
    case 'replaced':
      run.counts[COUNT_OF[outcome.kind]] += 1;
      if (run.lastDoneLine.size > 0) recordDone(run, recordName(write), source.number);
      return undefined;
    case 'not_found':
      return defer(run, source, write, `its ${write.resource.parent?.name} is not there`);
    case 'foreign_key':
      return defer(run, source, write, `${outcome.member} names a record that the realm does not have`);
    case 'unique': {
      const names = outcome.members.join(' and ');
      return { line: source.number, reason: `another record of the realm has the same ${names}` };
    }
    case 'differs':
      return { line: source.number, reason: differenceOf(write.resource, outcome.members) };
    default:
      throw new Error(`nothing that is loaded is ${outcome.kind}`);
  }
}

function recordDone({ lastDoneLine }: Run, name: string, line: number): void {
  const last = lastDoneLine.get(name);
  if (last !== undefined) lastDoneLine.set(name, Math.max(last, line));
}

function differenceOf(resource: Resource, members: readonly string[]): string {
  const fixed = fixedOf(resource, members);
  const never = fixed.length > 0 ? `; ${fixed.join(', ')} never changes` : '';
  return `differs from the stored record in ${members.join(', ')}${never}`;
}

function defer(run: Run, source: SourceLine, write: Load['write'], reason: string): Rejection | undefined {
  const { number, bytes } = source;
  const size = bytes?.length ?? 0;
  const isTooMuch =
    run.deferred.length >= LIMITS.importDeferredLinesMax ||
    run.deferredBytes + size > LIMITS.importDeferredBytesMax;
  if (isTooMuch) return { line: number, reason: `${reason}, and too many lines before it wait for theirs` };
  const name = recordName(write);
  if (!run.lastDoneLine.has(name)) run.lastDoneLine.set(name, 0);
  run.deferred.push({ line: number, reason, source: { ...source, bytes: bytes?.slice() } });
  run.deferredBytes += size;
  return undefined;
}

/** Tells refusals in the order of their lines; where the first one ends the import, no other. */
function reportRejected(run: Run, refusals: readonly Rejection[]): void {
  const sorted = refusals.toSorted((left, right) => left.line - right.line);
  for (const { line, reason } of run.plan.stopAtFirst ? sorted.slice(0, 1) : sorted) {
    run.counts.refused += 1;
    run.plan.onRefused(line, reason);
    if (!run.plan.stopAtFirst) continue;
    markUndone(run, line);
    run.isStopped = true;
  }
}

/** Tries once more what was set aside. Answers whether trying again may help. */
async function retryDeferred(run: Run): Promise<boolean> {
  const before = run.deferred;
  run.deferred = [];
  run.deferredBytes = 0;
  const sources = before.map(({ source }) => source);
  await importEach(run, sources);
  if (!isOver(run)) await flush(run);
  return run.deferred.length > 0 && run.deferred.length < before.length;
}

/** Nothing that could still come brings the missing records. */
function rejectDeferred(run: Run): void {
  for (const { line, reason } of run.deferred) {
    run.counts.refused += 1;
    run.plan.onRefused(line, reason);
    if (run.plan.stopAtFirst) markUndone(run, line);
  }
  run.deferred = [];
}
