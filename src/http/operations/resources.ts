import type { Resource } from '../../model/resource.ts';
import { itemPatterns } from '../pipeline/links.ts';
import type { Operation } from '../pipeline/operation.ts';
import type { RecordDeps } from '../pipeline/pipeline.ts';
import { listCollection } from './lists.ts';
import { lookup } from './lookup.ts';
import { create, remove, update } from './record_writes.ts';
import { find, search, searchList } from './reverse_lookup.ts';
import { searchAllRealms } from './search_all_realms.ts';

/** Every operation of a resource: the five verbs, its reverse lookup if it has one, and searches. */
export function operationsOf(resource: Resource): readonly Operation<RecordDeps>[] {
  const { reverseLookup, filterables, searchAllRealms: inAllRealms } = resource;
  return [
    listCollection(resource),
    create(resource),
    ...itemPatterns(resource).flatMap((path) => [
      lookup(resource, path),
      update(resource, path),
      remove(resource, path),
    ]),
    ...(reverseLookup ? [find(resource, reverseLookup), search(resource, reverseLookup)] : []),
    // A resource with a reverse lookup is searched by that.
    ...(filterables && !reverseLookup ? [searchList(resource, filterables)] : []),
    ...(inAllRealms ? [searchAllRealms(resource, inAllRealms)] : []),
  ];
}
