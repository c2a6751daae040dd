import { existsSync } from 'node:fs';
import { basename } from 'node:path';
import type { Command } from 'commander';
import type { Settings } from '../app/config/parse.ts';
import { checkpointFileOf, existingCheckpointFile, masterKeySource } from '../app/config/parse.ts';
import { assertKeysOf, openDatabase, withDatabase } from '../app/open_database.ts';
import { readLine, restoreLine } from '../log/checkpoint.ts';
import type { LogKeys } from '../log/keys.ts';
import { Refusal } from '../model/fault.ts';
import { createAuditEntry } from '../model/log/audit_entry.ts';
import type { Erasure } from '../model/log/erasure.ts';
import { VERSION } from '../model/version.ts';
import { systemClock } from '../ops/process/clock.ts';
import { printLine, printNotice } from '../ops/process/standard_streams.ts';
import type { Engine } from '../ops/store/open.ts';
import { splitLines } from '../ops/transfer/line_reader.ts';
import { appendLines } from '../sql/fsync.ts';
import { databaseFileOf, POSTGRES_TOOLS } from './backup.ts';
import { addConfirmation, assertConfirmed, type ConfirmationOptions } from './confirmation.ts';
import { addDatabaseSettings, addSettings, type CliContext } from './context.ts';
import { printResult } from './table.ts';

interface RestoreOptions extends ConfirmationOptions {
  readonly replace?: true;
  readonly ledger?: string;
  readonly takeUnsigned?: true;
  readonly manifest: boolean;
  readonly json?: true;
}

/** `restore`: replaces the database by a backup. */
export function addRestore(program: Command, context: CliContext): void {
  const restoring = program.command('restore').argument('<backup>', 'file that authrealm backup created');
  const restore = addSettings(addDatabaseSettings(restoring), ['checkpointFile']);
  addConfirmation(restore, 'verify the backup and show what would be replaced')
    .description('verify a backup, remove users erased since, and install it as --database')
    .option('--replace', 'replace an existing database, which is kept under another name')
    .option(
      '--ledger <FILE>',
      'file with the erasures since the backup (default: the checkpoint file of the database)',
    )
    .option('--take-unsigned', 'also apply ledger lines that the installation of the backup did not sign')
    .option('--no-manifest', 'restore a file without the manifest of authrealm backup')
    .option('--json', 'write JSON')
    .action(async (backup: string, options: RestoreOptions, command: Command) => {
      const settings = context.settingsOf(command);
      const database = databaseFileOf(settings, 'restored', POSTGRES_TOOLS);
      if (options.replace && !options.dryRun && existsSync(database))
        await assertConfirmed(options, `replaces the database ${database}`, basename(database));
      const ledger = ledgerOf(settings, options);
      const { restore } = await import('../ops/store/backups/restoration.ts');
      let unsigned: readonly number[] = [];
      const { summary, takenAt, erased, replacedPath } = await restore(
        {
          backup,
          database,
          replaces: options.replace === true,
          isDryRun: options.dryRun === true,
          hasManifest: options.manifest,
          async erasuresFor(copy) {
            const keys = await assertKeysOf(settings, copy, systemClock);
            const message = `the backup ${backup} is of a database that was never started: pass another backup`;
            if (!keys) throw new Refusal(message);
            if (ledger === undefined) return [];
            const how = { name: ledger, keys, takesUnsigned: options.takeUnsigned === true };
            const read = await readErasures(Bun.file(ledger).stream(), how);
            unsigned = read.unsigned;
            return read.erasures;
          },
          openOtherFile: (path) => openOtherFile(settings, path),
        },
        { version: VERSION, clock: systemClock },
      );
      const restored = {
        path: database,
        taken_at: takenAt ?? null,
        schema: summary.schema,
        store_id: summary.storeId,
        rows: summary.rows,
      };
      if (options.dryRun) {
        printResult(restored, options.json);
        const kept = existsSync(database) ? ', and keep the database there under another name' : '';
        if (!options.json) printLine(`the backup is valid: would restore it as ${database}${kept}`);
        return;
      }
      await recordRestore(settings, takenAt);
      printResult(
        {
          ...restored,
          erasures_applied: erased.applied,
          users_erased: erased.users,
          unsigned_lines: unsigned,
          replaced: replacedPath ?? null,
        },
        options.json,
      );
      if (!options.json) printAdvice(ledger);
    });
}

/** The file with the erasures since the backup, if there is one. */
function ledgerOf(settings: Settings, { ledger = existingCheckpointFile(settings) }: RestoreOptions) {
  if (ledger !== undefined && !existsSync(ledger)) throw new Refusal(`ledger ${ledger} does not exist`);
  return ledger;
}

function printAdvice(ledger: string | undefined): void {
  if (ledger === undefined)
    printLine('no ledger was found: erasures since the backup were not applied. Pass the file with --ledger');
  printLine(
    'clients, secrets and signing keys are those of the backup: repeat later changes to them (disable, rotate, withdraw)',
  );
}

/** Opens another database file with the master key of these settings, and migrates its schema. */
export async function openOtherFile(settings: Settings, path: string): Promise<Engine> {
  const source = masterKeySource(settings);
  const masterKeyFile = 'path' in source ? source.path : undefined;
  const other = {
    ...settings,
    database: { engine: 'sqlite', path },
    masterKeyFile,
    migrate: 'auto',
  } as const;
  return (await openDatabase(other, systemClock)).engine;
}

/**
 * Deletes console links and sessions, and records the restore in the audit log and in the checkpoint file, because checkpoints
 * since the backup describe the replaced database.
 */
async function recordRestore(settings: Settings, takenAt: string | undefined): Promise<void> {
  await withDatabase({ ...settings, migrate: 'auto' }, systemClock, async ({ engine, logKeys }) => {
    // All links and sessions: they may have been used or ended since the backup.
    await engine.access.deleteExpiredSignIns(Number.MAX_SAFE_INTEGER);
    await engine.log.append([
      createAuditEntry('database.restored', { detail: { taken_at: takenAt ?? null } }, systemClock),
    ]);
    const since = takenAt === undefined ? undefined : Date.parse(takenAt);
    const line = restoreLine({ at: systemClock.now(), takenAt: since }, logKeys);
    try {
      appendLines(checkpointFileOf(settings) as string, [line]);
    } catch (error) {
      const { code = 'unknown' } = error as NodeJS.ErrnoException;
      printNotice(
        `the restore could not be recorded with the checkpoints (${code}): append this line to them\n${line}`,
      );
    }
  });
}

/** The lines of a checkpoint file, numbered from 1. The file may be larger than a string can be. */
export async function* checkpointLines(chunks: AsyncIterable<Uint8Array>, keys: Pick<LogKeys, 'isSigned'>) {
  const decoder = new TextDecoder();
  for await (const lines of splitLines(chunks))
    for (const { number, bytes } of lines)
      yield { number, line: bytes ? readLine(decoder.decode(bytes), keys) : MALFORMED };
}

const MALFORMED = { kind: 'malformed' } as const;

/**
 * Reads the erasures of a ledger, and the numbers of the accepted lines without a valid signature. Throws Refusal at the first
 * malformed line, which may be the erasure of a user who must not be restored, and at the first line that the installation of the
 * backup did not sign, which may be forged.
 */
export async function readErasures(
  chunks: AsyncIterable<Uint8Array>,
  { name, keys, takesUnsigned }: { name: string; keys: Pick<LogKeys, 'isSigned'>; takesUnsigned: boolean },
) {
  const erasures: Erasure[] = [];
  const unsigned: number[] = [];
  for await (const { number, line } of checkpointLines(chunks, keys)) {
    const place = `line ${number} of the ledger ${name} is`;
    if (line.kind === 'malformed')
      throw new Refusal(
        `${place} malformed: it must be a JSON object with kind, and an erasure has realm_id, user_id and at. If a crash ` +
          'truncated it, find the erased user in the audit log, remove or repair the line, and run the same command again. ' +
          'A repaired line is unsigned: see --take-unsigned',
      );
    if (!line.isSigned && !takesUnsigned)
      throw new Refusal(
        `${place} not signed by the installation of the backup: it was changed, or another installation wrote it. Remove lines ` +
          'that do not belong there; if you trust every line, --take-unsigned applies unsigned lines too, and lists them',
      );
    if (!line.isSigned) unsigned.push(number);
    if (line.kind === 'erasure') erasures.push({ realm: line.realm, user: line.user, at: line.at });
  }
  return { erasures, unsigned };
}
