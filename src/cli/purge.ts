import type { Command } from 'commander';
import type { Store } from '../directory/store.ts';
import { Refusal } from '../domain/fault.ts';
import { type Key, keyColumns, type Resource } from '../domain/resource.ts';
import { systemClock } from '../platform/clock.ts';
import { printLine, standardStreams } from '../platform/standard_streams.ts';
import { openDatabase } from '../service/open_database.ts';
import { addConfirmation, assertConfirmed, type ConfirmationOptions } from './confirmation.ts';
import { addDatabaseSettings, type CliContext } from './context.ts';
import { identifiersIn, parseResourceName, resourceNames } from './identifiers.ts';
import { openProgress } from './progress.ts';

/** `purge`: removes a record with everything below it, in steps of bounded size. */
export function addPurge(program: Command, context: CliContext): void {
  addConfirmation(addDatabaseSettings(program.command('purge')), 'show how many records would be deleted')
    .argument('<resource>', `one of ${resourceNames().join(', ')}`)
    .argument('<id...>', 'the IDs in its path, realm first')
    .description('delete a record and everything below it, in batches of 1,000; if interrupted, run it again')
    .action(async (word: string, ids: readonly string[], options: ConfirmationOptions, command: Command) => {
      const resource = parseResourceName(word);
      const key = identifiersIn(resource, ids, keyColumns(resource).length) as unknown as Key;
      const { engine } = await openDatabase(context.settingsOf(command), systemClock);
      try {
        if (options.dryRun) return await showPurge(engine.records, resource, key);
        const id = key.at(-1) as string;
        await assertConfirmed(options, `deletes ${word} ${id} and everything below it`, id);
        const records = await purge(engine.records, resource, key);
        printLine(records === 1 ? 'deleted 1 record' : `deleted ${records} records`);
      } finally {
        await engine.close();
      }
    });
}

/** Prints what `purge` would delete. A record whose purge was interrupted cannot be read any more. */
async function showPurge(store: Store, resource: Resource, key: Key): Promise<void> {
  const [found, below] = [await store.get(resource, key), await store.countBelow(resource, key)];
  if (!found && below === 0) throw new Refusal(REFUSALS.not_found);
  const records = (found ? 1 : 0) + below;
  printLine(records === 1 ? 'would delete 1 record' : `would delete ${records} records`);
}

/** Removes step by step until the record itself is gone; returns the number of removed records. */
async function purge(store: Store, resource: Resource, key: Key): Promise<number> {
  const show = openProgress(systemClock, standardStreams().stderr);
  const { mintRevision } = systemClock;
  let records = 0;
  for (;;) {
    const origin = { actor: 'purge', requestId: undefined, address: undefined, at: systemClock.now() };
    const step = await store.removePage({ resource, key, origin, mintRevision });
    if (step.kind !== 'removed') {
      // A concurrent purge may have removed the rest.
      if (records > 0) return records;
      throw new Refusal(REFUSALS[step.kind]);
    }
    records += step.records;
    show(records);
    if (step.isDone) return records;
  }
}

const REFUSALS = {
  not_found: 'no such record: check the IDs with "authrealm list" or "authrealm export"',
  protected: 'this record is protected and cannot be deleted',
};
