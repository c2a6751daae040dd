import { Fault } from '../../model/fault.ts';
import { LIMITS } from '../../model/limits.ts';
import type { Load, Loader, LoadOutcome } from '../../model/store.ts';
import { type LineParser, type ParsedLine, violatedRules } from './import_line.ts';
import type { SourceLine } from './line_reader.ts';
import { retryWhileUnavailable } from './retry.ts';

/** A line that the import did not write, and why. */
export interface RejectedLine {
  readonly line: number;
  readonly reason: string;
}

/** How many lines had which outcome so far. */
export interface ImportCounts {
  readonly imported: number;
  readonly unchanged: number;
  readonly replaced: number;
  readonly refused: number;
}

export interface ImportOptions {
  readonly store: Pick<Loader, 'load'>;
  readonly read: LineParser;
  /** Ends the import at the first rejected line; earlier lines stay imported. */
  readonly stopAtFirst: boolean;
  /** Lines before this one are skipped. */
  readonly fromLine: number;
  /** Lines in one commit; default: `importCommitLines`. */
  readonly commitLines?: number;
  /** Ends the import after the current commit. */
  readonly signal: AbortSignal;
  /** Called in the order of the lines within a commit. The reason holds no value of the line. */
  onRefused(line: number, reason: string): void;
  /** Called after every commit; the next one waits for it. */
  onProgress(counts: ImportCounts): void | Promise<void>;
}

export interface ImportResult {
  readonly counts: ImportCounts;
  /** How many lines had which unknown member, at most `importUnknownNamesMax` of them. */
  readonly ignored: ReadonlyMap<string, number>;
  /** How many lines had which member that was read as `enabled`. */
  readonly mapped: ReadonlyMap<string, number>;
  /** The first line that is not done, from which an import can resume; undefined where all of them are. */
  readonly resumeLine: number | undefined;
  /** The error of the database or the source that ended the import. */
  readonly error: Fault | undefined;
}

type Run = ReturnType<typeof begin>;

/** Imports lines in order, `importCommitLines` to a commit. */
export async function importLines(
  source: AsyncIterable<readonly SourceLine[]>,
  plan: ImportOptions,
): Promise<ImportResult> {
  const run = begin(plan);
  let failure: Fault | undefined;
  try {
    for await (const lines of source) {
      await importEach(run, lines);
      if (isOver(run)) break;
    }
    if (!isOver(run)) await flush(run);
  } catch (error) {
    if (!(error instanceof Fault)) throw error;
    failure = error;
  }
  const { counts, ignored, mapped } = run;
  const resumeLine = isOver(run) || failure ? firstUndone(run) : undefined;
  return { counts, ignored, mapped, resumeLine, error: failure };
}

function begin(plan: ImportOptions) {
  return {
    plan,
    counts: { imported: 0, unchanged: 0, replaced: 0, refused: 0 },
    ignored: new Map<string, number>(),
    mapped: new Map<string, number>(),
    batch: emptyBatch(),
    nextLine: plan.fromLine,
    /** The first rejected line, where that one ends the import. */
    stoppedAt: undefined as number | undefined,
  };
}

/** Lines to be committed together. */
function emptyBatch() {
  return {
    firstLine: undefined as number | undefined,
    sources: [] as SourceLine[],
    loads: [] as Load[],
    rejected: [] as RejectedLine[],
    bytes: 0,
  };
}

function isOver(run: Run): boolean {
  return run.stoppedAt !== undefined || run.plan.signal.aborted;
}

/** Rejected lines of a batch that was not committed were not reported: the next import reads them again. */
function firstUndone({ stoppedAt, batch, nextLine }: Run): number {
  return stoppedAt ?? batch.firstLine ?? nextLine;
}

/** Imports lines until the import is over; an import can resume at the first line that was not imported. */
async function importEach(run: Run, lines: readonly SourceLine[]): Promise<void> {
  for (const line of lines) {
    if (line.number < run.plan.fromLine) continue;
    if (isOver(run)) return;
    run.batch.firstLine ??= line.number;
    run.nextLine = line.number + 1;
    await importLine(run, line);
  }
}

/** Adds a line to the batch, and commits that when it is full. */
function importLine(run: Run, line: SourceLine): Promise<void> | undefined {
  const parsed = parseLine(run, line);
  if ('reason' in parsed) return reject(run, parsed);
  countNames(run.ignored, parsed.unknown);
  countNames(run.mapped, parsed.mapped);
  const { batch } = run;
  batch.sources.push(line);
  batch.loads.push(parsed.load);
  batch.bytes += line.bytes?.length ?? 0;
  return isFull(run) ? flush(run) : undefined;
}

function countNames(counts: Map<string, number>, names: readonly string[]): void {
  for (const name of names) {
    const count = counts.get(name);
    if (count !== undefined || counts.size < LIMITS.importUnknownNamesMax) counts.set(name, (count ?? 0) + 1);
  }
}

function parseLine({ plan }: Run, { number, bytes, problem }: SourceLine): ParsedLine | RejectedLine {
  if (bytes === undefined) {
    return { line: number, reason: problem ?? `is longer than ${LIMITS.importLineBytesMax} bytes` };
  }
  try {
    return plan.read(bytes);
  } catch (error) {
    if (!(error instanceof Fault) || error.code !== 'invalid') throw error;
    const problems = error.fieldErrors.map(({ field, rule }) => `${field} ${rule}`.trim());
    return { line: number, reason: problems.join('; ') };
  }
}

function reject(run: Run, rejected: RejectedLine): Promise<void> | undefined {
  run.batch.rejected.push(rejected);
  return run.plan.stopAtFirst || isFull(run) ? flush(run) : undefined;
}

function isFull({ plan, batch: { sources, rejected, bytes } }: Run): boolean {
  const { commitLines = LIMITS.importCommitLines } = plan;
  return sources.length + rejected.length >= commitLines || bytes >= LIMITS.importCommitBytesMax;
}

/** Commits the batch and reports the outcomes of its lines. */
async function flush(run: Run): Promise<void> {
  const { plan, batch } = run;
  const { sources, loads, rejected } = batch;
  const load = () => plan.store.load(loads, plan.stopAtFirst);
  const outcomes = loads.length === 0 ? [] : await retryWhileUnavailable(plan.signal, load);
  run.batch = emptyBatch();
  for (const [at, outcome] of outcomes.entries()) {
    const reason = recordOutcome(run, loads[at] as Load, outcome);
    if (reason) rejected.push({ line: (sources[at] as SourceLine).number, reason });
  }
  reportRejected(run, rejected);
  await plan.onProgress(run.counts);
}

/** Counts an outcome. Returns why the line was rejected, if it was. */
function recordOutcome({ counts }: Run, { write }: Load, outcome: LoadOutcome): string | undefined {
  switch (outcome.kind) {
    case 'written':
      counts.imported += 1;
      return undefined;
    case 'same':
      counts.unchanged += 1;
      return undefined;
    case 'replaced':
      counts.replaced += 1;
      return undefined;
    case 'not_found':
      return `its ${write.resource.parent?.name} does not exist`;
    case 'foreign_key':
      return `${outcome.member} names a record that the realm does not have`;
    case 'unique':
      return `another record of the realm has the same ${outcome.members.join(' and ')}`;
    case 'differs': {
      const { members } = outcome;
      const reason = `differs from the stored record in ${members.join(', ')}`;
      return [reason, ...violatedRules(write.resource, write.record, members)].join('; ');
    }
    case 'guard':
      return `${outcome.guard.member} must be an e-mail address: its password-profile requires it`;
    case 'revision_mismatch':
      throw new Error(`a load has no outcome ${outcome.kind}`);
  }
}

/** Reports rejected lines in their order; only the first one where that one ends the import. */
function reportRejected(run: Run, rejected: readonly RejectedLine[]): void {
  const sorted = rejected.toSorted((left, right) => left.line - right.line);
  for (const { line, reason } of run.plan.stopAtFirst ? sorted.slice(0, 1) : sorted) {
    run.counts.refused += 1;
    run.plan.onRefused(line, reason);
    if (run.plan.stopAtFirst) run.stoppedAt = line;
  }
}
