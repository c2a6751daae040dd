import { createReadStream, readFileSync } from 'node:fs';
import { type Command, Option } from 'commander';
import type { Settings } from '../app/config/parse.ts';
import { withDatabase } from '../app/open_database.ts';
import { Refusal } from '../model/fault.ts';
import { fileErrorText } from '../model/file_error.ts';
import { LIMITS } from '../model/limits.ts';
import { systemClock } from '../ops/process/clock.ts';
import { EXIT } from '../ops/process/exit.ts';
import { abortAtSignal } from '../ops/process/signals.ts';
import { printLine, printNotice, standardStreams } from '../ops/process/standard_streams.ts';
import { parseCsvMap } from '../ops/transfer/csv_users.ts';
import type { ImportResult } from '../ops/transfer/import.ts';
import { importFile } from '../ops/transfer/import_file.ts';
import { addDatabaseSettings, type CliContext } from './context.ts';
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
  readonly csv?: string;
}

const STANDARD_INPUT = '-';
const READ_BYTES = 262_144;

/** `import`: imports records from JSON lines or CSV. */
export function addImport(program: Command, context: CliContext): void {
  addDatabaseSettings(
    program
      .command('import')
      .argument('<file>', `file of JSON lines or CSV, or ${STANDARD_INPUT} for standard input`),
  )
    .description('import records from JSON lines, keeping their IDs and timestamps, or users from CSV')
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
    .option(
      '--csv <MAP>',
      'the file is CSV with a header row; MAP is a JSON file with the members of each column',
    )
    .option('--dry-run', 'report what the import would do, and change nothing')
    .option('--from-line <N>', 'skip the lines before this one', parseWholeNumber(), 1)
    .action(async (file: string, options: ImportOptions, command: Command) => {
      const settings = context.settingsOf(command);
      const signal = abortAtSignal();
      const report = await runImport(settings, file, options, signal);
      printSummary(report, options);
      const { resumeLine } = report;
      if (resumeLine !== undefined && !options.dryRun)
        printLine(
          `line ${resumeLine} is the first line not imported: correct it, or pass --on-error skip, and run the same command ` +
            `with --from-line ${resumeLine}`,
        );
      if (report.error) {
        const { cause } = report.error;
        const busy = `it was busy in ${LIMITS.importCommitAttemptsMax} attempts`;
        const reason = cause instanceof Error ? cause.message : busy;
        throw new Refusal(`the import stopped because the database failed: ${reason}`);
      }
      const exitCode = report.counts.refused > 0 ? EXIT.linesRefused : EXIT.done;
      context.setExitCode(signal.aborted ? EXIT.failed : exitCode);
    });
}

/** Imports a file until the signal. A dry run only reads the database, and never migrates it. The files of options are read first. */
function runImport(settings: Settings, file: string, options: ImportOptions, signal: AbortSignal) {
  const { dryRun: isDryRun = false, upsert = false, strict = false, fromLine, firebaseConfig, csv } = options;
  const map = csv === undefined ? undefined : parseCsvMap(readText(csv));
  const signerKey = firebaseConfig === undefined ? undefined : readSignerKey(firebaseConfig);
  const show = openProgress(systemClock, standardStreams().stdout);
  return withDatabase(isDryRun ? { ...settings, migrate: 'check' } : settings, systemClock, async (db) => {
    const database = { ...db, clock: systemClock };
    const result = await importFile(database, {
      ...{ signal, fromLine, isDryRun, isUpsert: upsert, isStrict: strict, map, signerKey },
      chunks: chunksOf(file, signal),
      stopAtFirst: options.onError === 'abort',
      onRefused: (line, reason) => printNotice(`line ${line}: ${printable(reason)}`),
      onProgress: ({ imported, unchanged, replaced, refused }) =>
        show(imported + unchanged + replaced + refused),
    });
    if (result.counts.imported > 0 && !isDryRun && !signal.aborted) await db.engine.updateStatistics();
    return result;
  });
}

/** The signer key in the hash parameters of a Firebase project, as its console shows them or as JSON. Throws Refusal. */
function readSignerKey(path: string): Uint8Array {
  const key = /base64_signer_key"?\s*:\s*"?([A-Za-z0-9+/]+=*)/.exec(readText(path))?.[1];
  if (key === undefined)
    throw new Refusal(`${path} has no base64_signer_key: copy the hash parameters from the Firebase console`);
  return Buffer.from(key, 'base64');
}

/** Throws Refusal. */
function readText(path: string): string {
  try {
    return readFileSync(path, 'utf8');
  } catch (error) {
    throw new Refusal(`${path} cannot be read: ${fileErrorText(error)}`, { cause: error });
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
