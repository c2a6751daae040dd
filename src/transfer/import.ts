import type { Load, Loader, LoadOutcome, Store } from '../directory/store.ts';
import { Fault } from '../domain/fault.ts';
import { LIMITS } from '../domain/limits.ts';
import type { AnyRecord, Key, Resource, Saying } from '../domain/resource.ts';
import type { Line } from './line_reader.ts';
import { ASKED, type Condition, fixedOf, type LineReader, type Reading } from './lines.ts';
import { isUnavailable, patiently } from './retry.ts';

/** What became of the lines so far. */
export interface Tally {
  readonly imported: number;
  readonly unchanged: number;
  readonly replaced: number;
  readonly refused: number;
}

export interface Plan {
  readonly store: Pick<Store, 'get'> & Loader;
  readonly read: LineReader;
  /** Ends the import at the first refused line; what stands before it stays. */
  readonly stopAtFirst: boolean;
  /** Lines before this one are passed over. */
  readonly fromLine: number;
  /** Ends the import after the commit that is under way. */
  readonly signal: AbortSignal;
  /** Told in the order of the lines within a commit. The reason holds no value of the line. */
  onRefused(line: number, reason: string): void;
  /** Told after every commit, with how far into the file the import is. */
  onProgress(tally: Tally, bytes: number): void;
}

export interface Report {
  readonly tally: Tally;
  /** The first line that is not done; undefined where all of them are. An import may go on from here. */
  readonly resumeLine: number | undefined;
  /** Why the database took no more, where that ended the import. */
  readonly trouble: Fault | undefined;
}

interface Refusal {
  readonly line: number;
  readonly reason: string;
}

/** A line whose parent or profile was not there, and what was missing. Its bytes are its own copy. */
interface Waiting extends Refusal {
  readonly source: Line;
}

interface Batch {
  readonly sources: Line[];
  readonly loads: Load[];
  /** Those of the loads that a condition can ask about. */
  readonly asked: Load[];
  readonly refusals: Refusal[];
  /** What stored records said to conditions since the last commit. */
  readonly answers: Map<string, boolean>;
  bytes: number;
}

/** An import that is under way. */
interface Run {
  readonly plan: Plan;
  readonly tally: { -readonly [K in keyof Tally]: Tally[K] };
  batch: Batch;
  waiting: Waiting[];
  waitingBytes: number;
  /** For each record that a line was set aside for: the last line about it that is done, 0 for none. */
  readonly latest: Map<string, number>;
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
export async function importLines(source: AsyncIterable<readonly Line[]>, plan: Plan): Promise<Report> {
  const run = begin(plan);
  let trouble: Fault | undefined;
  try {
    await takeSource(run, source);
    if (!isOver(run)) await flush(run);
    while (!isOver(run) && (await retryWaiting(run)));
    if (!isOver(run)) giveUpWaiting(run);
  } catch (error) {
    if (!isUnavailable(error)) throw error;
    trouble = error;
  }
  if (isOver(run) || trouble) leaveRest(run);
  return { tally: run.tally, resumeLine: run.resumeLine, trouble };
}

function begin(plan: Plan): Run {
  return {
    plan,
    tally: { imported: 0, unchanged: 0, replaced: 0, refused: 0 },
    batch: emptyBatch(),
    waiting: [],
    waitingBytes: 0,
    latest: new Map(),
    bytes: 0,
    nextLine: plan.fromLine,
    resumeLine: undefined,
    isStopped: false,
  };
}

function emptyBatch(): Batch {
  return { sources: [], loads: [], asked: [], refusals: [], answers: new Map(), bytes: 0 };
}

function isOver(run: Run): boolean {
  return run.isStopped || run.plan.signal.aborted;
}

/** Remembers that a line is not done. */
function leave(run: Run, line: number): void {
  run.resumeLine = Math.min(run.resumeLine ?? line, line);
}

/** Refused lines of a batch that was not committed were not told: they are met again as well. */
function leaveRest(run: Run): void {
  for (const { number } of run.batch.sources) leave(run, number);
  for (const { line } of run.batch.refusals) leave(run, line);
  for (const { line } of run.waiting) leave(run, line);
  run.resumeLine ??= run.nextLine;
}

async function takeSource(run: Run, source: AsyncIterable<readonly Line[]>): Promise<void> {
  for await (const lines of source) {
    await takeAll(run, lines);
    const last = lines.at(-1);
    run.bytes = last?.end ?? run.bytes;
    run.nextLine = Math.max(run.nextLine, (last?.number ?? 0) + 1);
    if (isOver(run)) return;
  }
}

/** Takes lines until the import is over; the first one that was not taken is where it may go on. */
async function takeAll(run: Run, lines: readonly Line[]): Promise<void> {
  for (const line of lines) {
    if (line.number < run.plan.fromLine) continue;
    if (isOver(run)) return leave(run, line.number);
    try {
      const work = take(run, line);
      if (work) await work;
    } catch (error) {
      leave(run, line.number);
      throw error;
    }
  }
}

/** Puts a line into the batch. Answers a promise only where there is something to wait for. */
function take(run: Run, line: Line): Promise<void> | undefined {
  const reading = understand(run, line);
  if ('reason' in reading) return refuse(run, reading);
  return reading.conditions.every((condition) => isKnownFine(run.batch, condition))
    ? accept(run, line, reading.load)
    : takeOnConditions(run, line, reading);
}

function understand({ plan }: Run, { number, bytes }: Line): Reading | Refusal {
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

async function takeOnConditions(run: Run, line: Line, { load, conditions }: Reading): Promise<void> {
  for (const condition of conditions) {
    const isBroken = await breaks(run, load, condition);
    if (isOver(run)) return leave(run, line.number);
    if (!isBroken) continue;
    const reason = `${condition.name} must be an e-mail address, as its ${condition.resource.name} says`;
    return refuse(run, { line: line.number, reason });
  }
  return accept(run, line, load);
}

/** Whether neither the stored record nor one in the batch asks for more, as far as was heard. */
function isKnownFine(batch: Batch, condition: Condition): boolean {
  return batch.answers.get(nameOf(condition)) === false && !isAskedFor(batch, condition);
}

function nameOf({ resource, key, saying }: Condition): string {
  return `${recordName({ resource, key })} ${saying.member}`;
}

function recordName({ resource, key }: Pick<Load['write'], 'resource' | 'key'>): string {
  return `${resource.table} ${key.join(' ')}`;
}

function isAskedFor({ asked }: Batch, { resource, key, saying }: Condition): boolean {
  return asked.some(({ write }) => isAt(write, resource, key) && says(write.record, saying));
}

function says(record: AnyRecord | undefined, { member, is }: Saying): boolean {
  return record?.[member] === is;
}

/**
 * Whether the record that a condition asks about says so. Where it may stand in the batch, its commit decides. What a
 * profile says is for later ones (contract 2.3): a member that is stored already is not asked again, nor is that of a
 * record whose line says that it is older than the profile's last change.
 */
async function breaks(run: Run, { write }: Load, condition: Condition): Promise<boolean> {
  const { name, saying, resource, key } = condition;
  const stored = (of: Resource, at: Key): Promise<AnyRecord | undefined> =>
    patiently(run.plan.signal, () => run.plan.store.get(of, at));
  run.batch.answers.set(nameOf(condition), says(await stored(resource, key), saying));
  if (isKnownFine(run.batch, condition)) return false;
  if (run.batch.asked.some(({ write: asked }) => isAt(asked, resource, key))) await flush(run);
  const asking = await stored(resource, key);
  if (!says(asking, saying) || write.record.updated_at < (asking?.updated_at ?? 0)) return false;
  return (await stored(write.resource, write.key))?.[name] !== write.record[name];
}

function isAt(write: Load['write'], resource: Resource, key: Key): boolean {
  return write.resource === resource && key.every((id, at) => write.key[at] === id);
}

function accept(run: Run, line: Line, load: Load): Promise<void> | undefined {
  const { batch } = run;
  batch.sources.push(line);
  batch.loads.push(isOvertaken(run, line, load) ? yielding(load) : load);
  batch.bytes += line.bytes?.length ?? 0;
  if (ASKED.has(load.write.resource)) batch.asked.push(load);
  return isFull(batch) ? flush(run) : undefined;
}

/** Whether this line was set aside, and a later one about the same record is done. */
function isOvertaken({ latest }: Run, { number }: Line, { write }: Load): boolean {
  return latest.size > 0 && (latest.get(recordName(write)) ?? 0) > number;
}

/** A load that leaves other content where it is: lines count in the order of the file. */
function yielding(load: Load): Load {
  return {
    ...load,
    compare(stored) {
      const judged = load.compare(stored);
      return judged.comparison === 'replace' ? { ...judged, comparison: 'same' } : judged;
    },
  };
}

function refuse(run: Run, refusal: Refusal): Promise<void> | undefined {
  run.batch.refusals.push(refusal);
  return run.plan.stopAtFirst || isFull(run.batch) ? flush(run) : undefined;
}

function isFull({ sources, refusals, bytes }: Batch): boolean {
  return sources.length + refusals.length >= LIMITS.importCommitLines || bytes >= LIMITS.importCommitBytesMax;
}

/** Commits the batch and tells what became of its lines. */
async function flush(run: Run): Promise<void> {
  const { plan, batch } = run;
  const { sources, loads, refusals } = batch;
  const outcomes =
    loads.length === 0
      ? []
      : await patiently(run.plan.signal, () => plan.store.load(loads, plan.stopAtFirst));
  run.batch = emptyBatch();
  for (let at = 0; at < outcomes.length; at += 1) {
    const refusal = settle(run, sources[at] as Line, loads[at] as Load, outcomes[at] as LoadOutcome);
    if (refusal) refusals.push(refusal);
  }
  tellRefused(run, refusals);
  plan.onProgress(run.tally, run.bytes);
}

const COUNTED = { written: 'imported', same: 'unchanged', replaced: 'replaced' } as const;

/** Counts an outcome, or sets its line aside. Answers the refusal, if it is one. */
function settle(run: Run, source: Line, { write }: Load, outcome: LoadOutcome): Refusal | undefined {
  switch (outcome.kind) {
    case 'written':
    case 'same':
    case 'replaced':
      run.tally[COUNTED[outcome.kind]] += 1;
      if (run.latest.size > 0) noteDone(run, recordName(write), source.number);
      return undefined;
    case 'not_found':
      return setAside(run, source, write, `its ${write.resource.parent?.name} is not there`);
    case 'foreign_key':
      return setAside(run, source, write, `${outcome.member} names a record that the realm does not have`);
    case 'unique': {
      const names = outcome.members.join(' and ');
      return { line: source.number, reason: `another record of the realm has the same ${names}` };
    }
    case 'differs':
      return { line: source.number, reason: differenceOf(write.resource, outcome.members) };
    case 'revision_mismatch':
    case 'guard':
    case 'already_answered':
      throw new Error(`nothing that is loaded is ${outcome.kind}`);
  }
}

function noteDone({ latest }: Run, name: string, line: number): void {
  const last = latest.get(name);
  if (last !== undefined) latest.set(name, Math.max(last, line));
}

function differenceOf(resource: Resource, members: readonly string[]): string {
  const fixed = fixedOf(resource, members);
  const never = fixed.length > 0 ? `; ${fixed.join(', ')} never changes` : '';
  return `differs from the stored record in ${members.join(', ')}${never}`;
}

function setAside(run: Run, source: Line, write: Load['write'], reason: string): Refusal | undefined {
  const { number, bytes } = source;
  const size = bytes?.length ?? 0;
  const isTooMuch =
    run.waiting.length >= LIMITS.importWaitingLinesMax ||
    run.waitingBytes + size > LIMITS.importWaitingBytesMax;
  if (isTooMuch) return { line: number, reason: `${reason}, and too many lines before it wait for theirs` };
  const name = recordName(write);
  if (!run.latest.has(name)) run.latest.set(name, 0);
  run.waiting.push({ line: number, reason, source: { ...source, bytes: bytes?.slice() } });
  run.waitingBytes += size;
  return undefined;
}

/** Tells refusals in the order of their lines; where the first one ends the import, no other. */
function tellRefused(run: Run, refusals: readonly Refusal[]): void {
  const sorted = refusals.toSorted((left, right) => left.line - right.line);
  for (const { line, reason } of run.plan.stopAtFirst ? sorted.slice(0, 1) : sorted) {
    run.tally.refused += 1;
    run.plan.onRefused(line, reason);
    if (!run.plan.stopAtFirst) continue;
    leave(run, line);
    run.isStopped = true;
  }
}

/** Tries once more what was set aside. Answers whether trying again may help. */
async function retryWaiting(run: Run): Promise<boolean> {
  const before = run.waiting;
  run.waiting = [];
  run.waitingBytes = 0;
  await takeAll(
    run,
    before.map(({ source }) => source),
  );
  if (!isOver(run)) await flush(run);
  return run.waiting.length > 0 && run.waiting.length < before.length;
}

/** Nothing that could still come brings the missing records. */
function giveUpWaiting(run: Run): void {
  for (const { line, reason } of run.waiting) {
    run.tally.refused += 1;
    run.plan.onRefused(line, reason);
    if (run.plan.stopAtFirst) leave(run, line);
  }
  run.waiting = [];
}
