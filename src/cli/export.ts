import { type Command, Option } from 'commander';
import type { Settings } from '../app/config/parse.ts';
import { openDatabase, openEngineFor } from '../app/open_database.ts';
import { Refusal } from '../model/fault.ts';
import type { Uuid } from '../model/id.ts';
import { realm } from '../model/resources.ts';
import { systemClock } from '../ops/process/clock.ts';
import { abortAtSignal } from '../ops/process/signals.ts';
import { printNotice, standardStreams } from '../ops/process/standard_streams.ts';
import { exportUsers } from '../ops/transfer/csv_users.ts';
import { EXPORT_START, exportRecords } from '../ops/transfer/export.ts';
import type { OpenSecret } from '../records/format.ts';
import { addDatabaseSettings, type CliContext } from './context.ts';
import { parseId } from './identifiers.ts';
import { type WriteText, writeNewFile, writeOut } from './output.ts';
import { openProgress } from './progress.ts';

interface ExportOptions {
  readonly withSecrets?: true;
  readonly realm?: Uuid;
  readonly csv?: true;
}

const STANDARD_OUTPUT = '-';

/** `export`: writes every record as a line that `import` reads. */
export function addExport(program: Command, context: CliContext): void {
  addDatabaseSettings(
    program
      .command('export')
      .argument('[file]', `file to create, or ${STANDARD_OUTPUT} for standard output`, STANDARD_OUTPUT),
  )
    .description(
      'write a consistent snapshot of all records as JSON lines, which import reads, or of users as CSV',
    )
    .option('--with-secrets', 'include client secrets and password hashes; only to a file')
    .addOption(new Option('--realm <ID>', 'export only this realm').argParser(parseId))
    .option('--csv', 'write only users with their links, as CSV with a header row')
    .action(async (file: string, options: ExportOptions, command: Command) => {
      const settings = context.settingsOf(command);
      const isFile = file !== STANDARD_OUTPUT;
      // Terminals and pipes may keep what passes through them.
      const message = '--with-secrets requires a FILE: secrets are never written to a terminal or a pipe';
      if (options.withSecrets && !isFile) throw new Refusal(message, { isUsage: true });
      const { snapshot, open, close } = await openSource(settings, options);
      try {
        const { realm: within } = options;
        if (within !== undefined && (await snapshot.scan(realm, EXPORT_START, 1, within)).length === 0)
          throw new Refusal(
            `no realm ${within}: "authrealm export" without --realm writes every realm with its ID`,
          );
        const use = async (write: WriteText) => {
          const signal = abortAtSignal();
          const onProgress = openProgress(systemClock, standardStreams().stderr);
          const exportInto = options.csv ? exportUsers : exportRecords;
          const records = await exportInto({ snapshot, open, within, signal, write, onProgress });
          if (signal.aborted) throw new Refusal('the export was interrupted: run it again');
          return records;
        };
        const records = await (isFile ? writeNewFile(file, systemClock, use) : use(writeOut));
        const what = options.csv ? 'users' : 'records';
        printNotice(`exported ${records} ${what}${isFile ? ` to ${file}` : ''}`);
      } finally {
        snapshot.close();
        await close();
      }
    });
}

/** Opens a snapshot to export, and the function that decrypts its secrets; reads the master key only if these are exported. */
async function openSource(settings: Settings, { withSecrets }: ExportOptions) {
  const db = withSecrets ? await openDatabase(settings, systemClock) : undefined;
  const engine = db?.engine ?? (await openEngineFor(settings, systemClock));
  const open: OpenSecret | undefined =
    db && ((place, sealed) => db.keyring.open('oidc-client-secret', place, sealed));
  try {
    return { snapshot: await engine.records.openSnapshot(), open, close: () => engine.close() };
  } catch (error) {
    await engine.close();
    throw error;
  }
}
