import { lstatSync } from 'node:fs';
import { type Command, InvalidArgumentError, Option } from 'commander';
import type { Settings } from '../config/parse.ts';
import type { OpenSecret } from '../directory/format.ts';
import type { MaybePromise, RecordSnapshot } from '../directory/store.ts';
import { Refusal } from '../domain/fault.ts';
import { parseUuid, type Uuid } from '../domain/id.ts';
import { realm } from '../domain/resources.ts';
import { systemClock } from '../platform/clock.ts';
import { signalled } from '../platform/signals.ts';
import { openDatabase, openEngineFor } from '../service/open_database.ts';
import { countRecords, exportRecords } from '../transfer/export.ts';
import { addDatabaseSettings, type CliContext } from './context.ts';
import { proveKept } from './kept.ts';
import { newFile, type Output, standardOutput } from './output.ts';
import { openProgress } from './progress.ts';

interface ExportOptions {
  readonly withSecrets?: true;
  readonly realm?: Uuid;
}

const STANDARD_OUTPUT = '-';

/** `export`: writes every record as a line that `import` reads. */
export function addExport(program: Command, context: CliContext): void {
  addDatabaseSettings(
    program
      .command('export')
      .argument('[file]', `a file to make, or ${STANDARD_OUTPUT} for standard output`, STANDARD_OUTPUT),
  )
    .description('write every record as of one moment, one JSON object a line, as import reads it')
    .option('--with-secrets', 'add client secrets and password hashes; only into a file')
    .addOption(new Option('--realm <ID>', 'export this realm alone').argParser(realmId))
    .action(async (file: string, options: ExportOptions, command: Command) => {
      const settings = context.settingsOf(command);
      proveTarget(file, options);
      proveKept(settings, 'export');
      const { picture, open, close } = await openSource(settings, options);
      try {
        await proveRealm(picture, options.realm);
        await exportInto(file, { picture, open, within: options.realm });
      } finally {
        picture.close();
        await close();
      }
    });
}

function realmId(raw: string): Uuid {
  const id = parseUuid(raw);
  if (!id) throw new InvalidArgumentError('A realm is named by its identifier.');
  return id;
}

/** Secrets go into a file of their own and nowhere else: what a terminal or a pipe was told cannot be taken back. */
function proveTarget(file: string, { withSecrets }: ExportOptions): void {
  if (file === STANDARD_OUTPUT) {
    if (!withSecrets) return;
    throw new Refusal('--with-secrets needs a FILE: secrets are written to no terminal and no pipe', {
      isUsage: true,
    });
  }
  const found = lstatSync(file, { throwIfNoEntry: false });
  if (!found) return;
  throw new Refusal(
    found.isFile()
      ? `${file} is there already, and nothing is overwritten: name another file`
      : `${file} is no file: name one that export is to make`,
  );
}

/** What there is to export, and what opens its secrets. */
interface Source {
  readonly picture: RecordSnapshot;
  readonly open: OpenSecret | undefined;
  readonly close: () => MaybePromise<void>;
}

/** Opens the database; the master key only where secrets are wanted. */
async function openSource(settings: Settings, { withSecrets }: ExportOptions): Promise<Source> {
  const db = withSecrets ? await openDatabase(settings, systemClock) : undefined;
  const engine = db?.engine ?? (await openEngineFor(settings, systemClock));
  const open: OpenSecret | undefined =
    db && ((place, sealed) => db.keyring.open('oidc-client-secret', place, sealed));
  try {
    return { picture: await engine.records.openSnapshot(), open, close: () => engine.close() };
  } catch (error) {
    await engine.close();
    throw error;
  }
}

async function proveRealm(picture: RecordSnapshot, within: Uuid | undefined): Promise<void> {
  if (within !== undefined && (await picture.count(realm, within)) === 0) {
    throw new Refusal(`there is no realm ${within}`);
  }
}

type What = Pick<Source, 'picture' | 'open'> & { readonly within: Uuid | undefined };

async function exportInto(file: string, what: What): Promise<void> {
  const output = file === STANDARD_OUTPUT ? standardOutput() : newFile(file, systemClock);
  try {
    const records = await write(output, what);
    output.finish();
    console.error(`exported ${records} records${file === STANDARD_OUTPUT ? '' : ` to ${file}`}`);
  } finally {
    output.abandon();
  }
}

async function write(output: Output, { picture, open, within }: What): Promise<number> {
  const stop = new AbortController();
  void signalled('once').then(() => stop.abort());
  const total = process.stderr.isTTY ? await countRecords(picture, within) : undefined;
  const progress = openProgress(total, systemClock, process.stderr);
  try {
    const records = await exportRecords({
      picture,
      within,
      open,
      signal: stop.signal,
      write: (lines) => output.write(lines),
      onProgress: (done) => progress.show(done, done),
    });
    if (stop.signal.aborted) throw new Refusal('the export was interrupted: run it again from the start');
    return records;
  } finally {
    progress.stop();
  }
}
