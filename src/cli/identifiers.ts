import { InvalidArgumentError } from 'commander';
import { Refusal } from '../domain/fault.ts';
import { parseUuid, type Uuid } from '../domain/id.ts';
import { keyColumns, type Resource } from '../domain/resource.ts';

/** The identifiers down the path of a resource, as many as `depth` says. Throws Refusal that names them in their order. */
export function identifiersIn(resource: Resource, words: readonly string[], depth: number): readonly Uuid[] {
  const ids = words.map(parseUuid).filter((id) => id !== undefined);
  if (words.length === depth && ids.length === depth) return ids;
  const names = keyColumns(resource).slice(0, depth);
  const expected =
    names.length === 0 ? 'no identifier' : `${names.join(', ').toUpperCase()}, each 8-4-4-4-12 in hex`;
  throw new Refusal(`after the resource come: ${expected}`, { isUsage: true });
}

/** Realm IDs of an option that may be given more than once. Throws InvalidArgumentError where one is none. */
export function realmIds(raw: string, before: readonly Uuid[] = []): readonly Uuid[] {
  const ids = raw.split(' ').filter(Boolean).map(parseUuid);
  if (ids.includes(undefined)) throw new InvalidArgumentError('A realm ID has the form 8-4-4-4-12, in hex.');
  return [...before, ...(ids as Uuid[])];
}
