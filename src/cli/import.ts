import { createReadStream, readFileSync } from 'node:fs';
import { resolve } from 'node:path';
import { type Command, Option } from 'commander';
import { openSignerKeys } from '../access/keys/signer_keys.ts';
import { DATABASE_SETTINGS, type Settings } from '../app/config/parse.ts';
import { type OpenDatabase, withDatabase } from '../app/open_database.ts';
import { Refusal } from '../model/fault.ts';
import { fileErrorText } from '../model/file_error.ts';
import { signerKeyId } from '../model/imported_hash.ts';
import { LIMITS } from '../model/limits.ts';
import { createAuditEntry } from '../model/log/audit_entry.ts';
import { VERSION } from '../model/version.ts';
import { systemClock } from '../ops/process/clock.ts';
import { EXIT } from '../ops/process/exit.ts';
import { abortAtSignal } from '../ops/process/signals.ts';
import { printLine, printNotice, standardStreams } from '../ops/process/standard_streams.ts';
import { openEngine } from '../ops/store/open.ts';
import { openDryRunStore } from '../ops/transfer/dry_run.ts';
import {
  type ImportCounts,
  type ImportOptions as ImportPlan,
  type ImportResult,
  importLines,
} from '../ops/transfer/import.ts';
import { openLineParser } from '../ops/transfer/import_line.ts';
import { splitLines } from '../ops/transfer/line_reader.ts';
import { isUnavailable, retryWhileUnavailable } from '../ops/transfer/retry.ts';
import { addDatabaseSettings, type CliContext, toArguments } from './context.ts';
import { absoluteFlags, commandLine, PROGRAM_PATH } from './invocation.ts';
import { parseWholeNumber } from './option_values.ts';
import { openProgress } from './progress.ts';
import { printable, printableJson } from './table.ts';

interface ImportOptions {
  readonly onError: 'abort' | 'skip';
  readonly upsert?: true;
  readonly strict?: true;
  readonly dryRun?: true;
  readonly fromLine: number;
  readonly firebaseConfig?: string;
}

const STANDARD_INPUT = '-';
const READ_BYTES = 262_144;

/** `import`: imports records from JSON lines. */
export function addImport(program: Command, context: CliContext): void {
  addDatabaseSettings(
    program
      .command('import')
      .argument('<file>', `file of JSON lines, or ${STANDARD_INPUT} for standard input`),
  )
    .description('import records from JSON lines, keeping their IDs and timestamps')
    .addOption(
      new Option('--on-error <WHAT>', 'what to do at a rejected line: stop, or skip it and continue')
        .choices(['abort', 'skip'])
        .default('abort'),
    )
    .option('--upsert', 'update existing records that differ')
    .option('--strict', 'reject lines with members that no record has, instead of ignoring these')
    .option(
      '--firebase-config <FILE>',
      'hash parameters of a Firebase project: its signer key is sealed and stored for hashes that name it',
    )
    .option('--dry-run', 'report what the import would do, and change nothing')
    .option('--from-line <N>', 'skip the lines before this one', parseWholeNumber(), 1)
    .action(async (file: string, options: ImportOptions, command: Command) => {
      const settings = context.settingsOf(command);
      const source = { file, options, signal: abortAtSignal() };
      const report = await (options.dryRun ? runDryRun : runImport)(settings, source);
      printSummary(report, options);
      if (report.resumeLine !== undefined && !options.dryRun) {
        const flags = toArguments(absoluteFlags(context.flagsOf(command), settings, DATABASE_SETTINGS));
        const path = file === STANDARD_INPUT ? file : resolve(file);
        const words = [...resumeOptions(options), ...flags, '--from-line', String(report.resumeLine)];
        printLine(
          `line ${report.resumeLine} is the first line not imported: correct it, or pass --on-error skip, and resume with:\n` +
            commandLine(PROGRAM_PATH, 'import', path, ...words),
        );
      }
      if (report.error) {
        const { cause } = report.error;
        const busy = `it was busy in ${LIMITS.importCommitAttemptsMax} attempts`;
        const reason = cause instanceof Error ? cause.message : busy;
        throw new Refusal(`the import stopped because the database failed: ${reason}`);
      }
      context.setExitCode(exitCodeOf(report));
    });
}

interface Source {
  readonly file: string;
  readonly options: ImportOptions;
  /** Stops the import after the current commit. */
  readonly signal: AbortSignal;
}

function runImport(settings: Settings, source: Source): Promise<ImportReport> {
  return withDatabase(settings, systemClock, async (db) => {
    const report = await importInto(db, db.engine.records, source);
    await recordImportEnd(db.engine, report.counts, source.signal);
    if (report.counts.imported > 0 && !report.isInterrupted) await db.engine.updateStatistics();
    return report;
  });
}

/** Imports into a database in memory, so that nothing is written and writers of the real one never wait. */
function runDryRun(settings: Settings, source: Source): Promise<ImportReport> {
  return withDatabase({ ...settings, migrate: 'check' }, systemClock, async (db) => {
    const scratch = await openEngine({ engine: 'sqlite', path: ':memory:' }, 'auto', {
      version: VERSION,
      clock: systemClock,
    });
    try {
      return await importInto(db, openDryRunStore(db.engine.records, scratch.records), source);
    } finally {
      await scratch.close();
    }
  });
}

interface ImportReport extends ImportResult {
  readonly isInterrupted: boolean;
}

async function importInto(
  { engine, keyring }: OpenDatabase,
  store: ImportPlan['store'],
  { file, options, signal }: Source,
): Promise<ImportReport> {
  const signerKeys = openSignerKeys(engine.access, keyring, systemClock);
  const newKey = options.firebaseConfig && readSignerKey(options.firebaseConfig);
  if (newKey && !options.dryRun) await signerKeys.add(newKey);
  const read = openLineParser({
    clock: systemClock,
    isUpsert: options.upsert === true,
    isStrict: options.strict === true,
    installation: await engine.access.storeId(),
    signerKeyIds: (await signerKeys.ids()).union(new Set(newKey ? [signerKeyId(newKey)] : [])),
    seal: (place, plain) => keyring.seal('oidc-client-secret', place, plain),
    open: (place, sealed) => keyring.open('oidc-client-secret', place, sealed),
  });
  const show = openProgress(systemClock, standardStreams().stdout);
  const report = await importLines(splitLines(chunksOf(file, signal)), {
    store,
    read,
    stopAtFirst: options.onError === 'abort',
    fromLine: options.fromLine,
    signal,
    onRefused: (line, reason) => printNotice(`line ${line}: ${printable(reason)}`),
    onProgress: ({ imported, unchanged, replaced, refused }) =>
      show(imported + unchanged + replaced + refused),
  });
  return { ...report, isInterrupted: signal.aborted };
}

/** The signer key in the hash parameters of a Firebase project, as its console shows them or as JSON. Throws Refusal. */
function readSignerKey(path: string): Uint8Array {
  let text: string;
  try {
    text = readFileSync(path, 'utf8');
  } catch (error) {
    throw new Refusal(`${path} cannot be read: ${fileErrorText(error)}`, { cause: error });
  }
  const key = /base64_signer_key"?\s*:\s*"?([A-Za-z0-9+/]+=*)/.exec(text)?.[1];
  if (key === undefined)
    throw new Refusal(`${path} has no base64_signer_key: copy the hash parameters from the Firebase console`);
  return Buffer.from(key, 'base64');
}

/** Logs the end of an import. Its writes are in the log already, so an unavailable database is no error here. */
async function recordImportEnd(
  { log }: OpenDatabase['engine'],
  counts: ImportCounts,
  signal: AbortSignal,
): Promise<void> {
  const auditEntry = createAuditEntry(
    'records.imported',
    { id: systemClock.mintId(), detail: { ...counts } },
    systemClock,
  );
  try {
    await retryWhileUnavailable(signal, () => log.append([auditEntry]));
  } catch (error) {
    if (!isUnavailable(error)) throw error;
  }
}

/** Streams the file until its end or the signal. */
async function* chunksOf(file: string, signal: AbortSignal): AsyncGenerator<Uint8Array> {
  if (signal.aborted) return;
  const input =
    file === STANDARD_INPUT ? standardStreams().stdin : createReadStream(file, { highWaterMark: READ_BYTES });
  const stopReading = () => input.destroy();
  signal.addEventListener('abort', stopReading, { once: true });
  try {
    yield* input as AsyncIterable<Uint8Array>;
  } catch (error) {
    if (signal.aborted) return;
    throw new Refusal(`${file} cannot be read: ${fileErrorText(error)}`, { cause: error });
  } finally {
    signal.removeEventListener('abort', stopReading);
    input.destroy();
  }
}

function printSummary({ counts, ignored, mapped }: ImportResult, { dryRun }: ImportOptions): void {
  const { imported, unchanged, replaced, refused } = counts;
  // Quoted, because a name can have any character.
  for (const [label, counted] of Object.entries({ ignored, 'read as enabled': mapped })) {
    const names = [...counted].sort().map(([name, count]) => `${printableJson(name)} ${count}`);
    if (names.length > 0) printLine(`${label}: ${names.join(', ')}`);
  }
  const what = dryRun ? 'dry run, nothing was changed; the import would have ' : '';
  printLine(`${what}imported ${imported}, unchanged ${unchanged}, replaced ${replaced}, refused ${refused}`);
}

/** The options that a resumed import needs again. */
function resumeOptions({ onError, upsert, strict }: ImportOptions): string[] {
  return [
    ...(onError === 'skip' ? ['--on-error', onError] : []),
    ...(upsert ? ['--upsert'] : []),
    ...(strict ? ['--strict'] : []),
  ];
}

function exitCodeOf({ counts, isInterrupted }: ImportReport): number {
  if (isInterrupted) return EXIT.failed;
  return counts.refused > 0 ? EXIT.linesRefused : EXIT.done;
}
