import { type Command, Option } from 'commander';
import { DATABASE_SETTINGS, type Environment } from '../app/config/parse.ts';
import { withDatabase } from '../app/open_database.ts';
import type { Collection } from '../client/client.ts';
import { Refusal } from '../model/fault.ts';
import { LIMITS } from '../model/limits.ts';
import { COMMAND_LINE } from '../model/log/audit_entry.ts';
import { type Key, keyColumns, type Resource } from '../model/resource.ts';
import type { Store } from '../model/store.ts';
import { systemClock } from '../ops/process/clock.ts';
import { printLine, printNotice, standardStreams } from '../ops/process/standard_streams.ts';
import { addConfirmation, assertConfirmed, type ConfirmationOptions } from './confirmation.ts';
import { addConnection, type ConnectionOptions, connectBy } from './connection.ts';
import { addSettings, type CliContext } from './context.ts';
import { commandLineName, identifiersIn, parseResourceName, RESOURCE_HELP } from './identifiers.ts';
import { openProgress } from './progress.ts';
import { collectionOf, show, visible } from './records.ts';

interface DeletionOptions extends ConnectionOptions, ConfirmationOptions {
  readonly ifMatch?: string;
  readonly inPages?: true;
}

interface Deletion {
  readonly resource: Resource;
  readonly key: Key;
  readonly options: DeletionOptions;
}

/** `delete`: through the HTTP API of a running service; with `--in-pages` in the database itself, however many records are below. */
export function addDelete(program: Command, context: CliContext): void {
  const command = addConnection(
    program
      .command('delete')
      .argument('<resource>', RESOURCE_HELP)
      .argument('<id...>', 'the IDs in its path, realm first'),
  )
    .description('delete a record and everything below it')
    .option('--if-match <ETAG>', 'only if the record still has this ETag', visible)
    .addOption(
      new Option(
        '--in-pages',
        `delete in the database itself, in commits of ${PAGE} records; what is left can be read and written until the command ends`,
      ).conflicts(['url', 'clientId', 'clientSecretFile', 'allowPlainHttp', 'ifMatch']),
    );
  addSettings(
    command,
    DATABASE_SETTINGS.filter((name) => name !== 'config'),
  );
  addConfirmation(command, 'show what would be deleted').action(
    async (word: string, ids: readonly string[], options: DeletionOptions, by: Command) => {
      const settings = context.settingsOf(by);
      const resource = parseResourceName(word);
      const key = identifiersIn(resource, ids, keyColumns(resource).length) as unknown as Key;
      if (!options.inPages && Object.keys(context.flagsOf(by)).some((name) => name !== 'config')) {
        const message = 'the service deletes the record: pass settings of the database only with --in-pages';
        throw new Refusal(message, { isUsage: true });
      }
      const deletion = { resource, key, options };
      if (!options.inPages) return await deleteByService(deletion, context.environmentOf(by));
      await withDatabase(settings, systemClock, async ({ engine: { records: store } }) => {
        const counted = (records: number) => (records === 1 ? '1 record' : `${records} records`);
        if (options.dryRun) {
          if (!(await store.get(resource, key))) throw new Refusal(REFUSALS.not_found);
          return printLine(`would delete ${counted(1 + (await store.countBelow(resource, key)))}`);
        }
        await confirm(word, deletion);
        printLine(`deleted ${counted(await deleteInPages(store, deletion))}`);
      });
    },
  );
}

async function confirm(word: string, { key, options }: Deletion): Promise<void> {
  const id = key.at(-1) as string;
  await assertConfirmed(options, `deletes ${word} ${id} and everything below it`, id);
}

async function deleteByService(deletion: Deletion, environment: Environment): Promise<void> {
  const { resource, key, options } = deletion;
  const { directory, refusalOf } = connectBy(options, environment);
  const records = directory[collectionOf(resource)] as unknown as Collection<Resource>;
  try {
    if (options.dryRun) return await show(resource, await records.get(key), {});
    await confirm(commandLineName(resource), deletion);
    await records.delete(key, { ifMatch: options.ifMatch });
  } catch (error) {
    throw refusalOf(error);
  }
}

/**
 * Deletes page by page, and the record with the last page. Clients may create records meanwhile: after as many records as there
 * were it begins another round, and gives up after the last one. Returns the number of deleted records.
 */
export async function deleteInPages(
  store: Pick<Store, 'countBelow' | 'removePage'>,
  target: Pick<Deletion, 'resource' | 'key'>,
): Promise<number> {
  const showProgress = openProgress(systemClock, standardStreams().stderr);
  let records = 0;
  for (let round = 1; round <= LIMITS.deletionRoundsMax; round += 1) {
    const left = 1 + (await store.countBelow(target.resource, target.key));
    const notice = `authrealm: deleting ${left} records in commits of ${PAGE}; what is left can be read and written until the last one`;
    if (left > PAGE) printNotice(notice);
    for (const end = records + left; records < end; ) {
      const origin = { ...COMMAND_LINE, at: systemClock.now() };
      const page = await store.removePage({ ...target, origin, mintRevision: systemClock.mintRevision });
      // After another page, a missing record means that another caller has deleted the rest.
      if (page.kind === 'not_found' && records > 0) return records;
      if (page.kind !== 'removed') throw new Refusal(REFUSALS[page.kind]);
      records += page.records;
      showProgress(records);
      if (page.isDone) return records;
    }
  }
  throw new Refusal(
    `${records} records are deleted, but others were created meanwhile: stop the clients that write below this record, then run the command again`,
  );
}

const PAGE = LIMITS.cascadeRecordsMax;

const REFUSALS = {
  not_found: 'no such record: check the IDs with "authrealm list" or "authrealm export"',
  protected: 'this record is protected and cannot be deleted',
};
