import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { lookupKeyOf } from '../../model/filter/lookup_filter.ts';
import type { Clock } from '../../model/id.ts';
import { changeOf } from '../../model/log/change.ts';
import {
  type AnyRecord,
  type Key,
  membersOf,
  parentKey,
  type Resource,
  referencedResource,
} from '../../model/resource.ts';
import { RESOURCES } from '../../model/resources.ts';
import type { Loader, Store } from '../../model/store.ts';
import { VERSION } from '../../model/version.ts';
import { withTemporaryFolder } from '../store/backups/temporary_folder.ts';
import { openEngine } from '../store/open.ts';
import type { ImportOptions } from './import.ts';
import { originAt } from './import_line.ts';

type Real = Pick<Store, 'find'> & Pick<Loader, 'getStored'>;
type Scratch = Pick<Store, 'get' | 'commit'> & Pick<Loader, 'load'>;

/** Runs a dry run with its store, in a temporary file: the records of a long import are gigabytes. */
export function withDryRunStore<T>(
  real: Real,
  clock: Clock,
  use: (store: ImportOptions['store']) => Promise<T>,
): Promise<T> {
  return withTemporaryFolder(join(tmpdir(), 'authrealm-dry-run'), clock, async (folder) => {
    const path = join(folder, 'records.db');
    const scratch = await openEngine({ engine: 'sqlite', path }, 'auto', { version: VERSION, clock });
    try {
      return await use(openDryRunStore(real, scratch.records));
    } finally {
      await scratch.close();
    }
  });
}

/** Lines whose stored records are read concurrently. */
const CONCURRENT_LINES = 100;

/**
 * The store of a dry run. It loads into `scratch`, an empty database, and before each load copies into that the records of `real`
 * that decide about the lines: those with the same key or unique values, and the parents and profiles of all. `real` is only read.
 */
function openDryRunStore(real: Real, scratch: Scratch): ImportOptions['store'] {
  /** Copies a record, unless it has been copied, or a line has written it. */
  async function copy(resource: Resource, key: Key): Promise<void> {
    if (await scratch.get(resource, key)) return;
    const record = await real.getStored(resource, key);
    if (!record) return;
    await copyReferenced(resource, key, record);
    const change = changeOf(resource, 'created', { key, revision: record.revision }, originAt(0));
    // Where another line has copied it meanwhile, this commit is refused.
    await scratch.commit([{ op: 'insert', resource, key, record, change }]);
  }

  async function copyReferenced(resource: Resource, key: Key, record: AnyRecord): Promise<void> {
    const above = parentKey(key);
    if (above && resource.parent) await copy(resource.parent, above);
    for (const { name, annotation } of membersOf(resource)) {
      if (annotation.references === undefined) continue;
      await copy(referencedResource(resource, name, RESOURCES), [key[0], record[name] as Key[0]]);
    }
  }

  /** Every unique set of members, and the ID in its realm, is one of the reverse lookup. */
  async function copyDeciding(resource: Resource, key: Key, record: AnyRecord): Promise<void> {
    await copyReferenced(resource, key, record);
    await copy(resource, key);
    const { by = [], filterables = {} } = resource.reverseLookup ?? {};
    for (const members of by) {
      const lookup = lookupKeyOf(record, members, filterables);
      const found = lookup && (await real.find(resource, key[0], lookup));
      if (found) await copy(resource, found.key);
    }
  }

  return {
    async load(loads, stopAtFirst) {
      for (let from = 0; from < loads.length; from += CONCURRENT_LINES) {
        const lines = loads.slice(from, from + CONCURRENT_LINES);
        await Promise.all(
          lines.map(({ write: { resource, key, record } }) => copyDeciding(resource, key, record)),
        );
      }
      return scratch.load(loads, stopAtFirst);
    },
  };
}
