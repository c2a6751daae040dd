import { InvalidArgumentError } from 'commander';
import { Refusal } from '../model/fault.ts';
import { parseUuid, type Uuid } from '../model/id.ts';
import { keyColumns, type Resource } from '../model/resource.ts';
import { DESCRIPTIONS, RESOURCES } from '../model/resources.ts';

/** The name of a resource on the command line: its table name with hyphens. */
export function commandLineName({ table }: Resource): string {
  return table.replaceAll('_', '-');
}

/** The short names of resources, as guides and the console use them. */
const SHORT_NAMES: Readonly<Record<string, Resource>> = {
  realms: DESCRIPTIONS.realms,
  providers: DESCRIPTIONS.oidcProfiles,
  users: DESCRIPTIONS.users,
  links: DESCRIPTIONS.oidcProfileInfos,
  usernames: DESCRIPTIONS.passwordProfileInfos,
};

export const RESOURCE_HELP = `one of ${RESOURCES.map(commandLineName).join(', ')}; or ${Object.keys(SHORT_NAMES).join(', ')}`;

/** The resource with this short name, command-line name, full name or `type`. Throws a Refusal that lists the names. */
export function parseResourceName(word: string): Resource {
  const found =
    SHORT_NAMES[word] ??
    RESOURCES.find((resource) => [commandLineName(resource), resource.name, resource.type].includes(word));
  if (!found) throw new Refusal(`the resource must be ${RESOURCE_HELP}`, { isUsage: true });
  return found;
}

/** The first `depth` IDs of the path of a resource. Throws a Refusal that names the expected IDs in their order. */
export function identifiersIn(resource: Resource, words: readonly string[], depth: number): readonly Uuid[] {
  const ids = words.map(parseUuid).filter((id) => id !== undefined);
  if (words.length === depth && ids.length === depth) return ids;
  const named = `"${commandLineName(resource)}"`;
  const names = keyColumns(resource).slice(0, depth);
  const expected =
    names.length === 0
      ? `no ID after ${named}`
      : `${names.join(' ').toUpperCase()} after ${named}: an ID is 8-4-4-4-12 in hex, as "authrealm list" and "authrealm export" show it`;
  throw new Refusal(`expected ${expected}`, { isUsage: true });
}

/** The IDs of an option that may be repeated. Throws InvalidArgumentError for an invalid one. */
export function parseIds(raw: string, before: readonly Uuid[] = []): readonly Uuid[] {
  return [...before, ...raw.split(' ').filter(Boolean).map(parseId)];
}

/** The ID of an option or argument. Throws InvalidArgumentError for an invalid one. */
export function parseId(raw: string): Uuid {
  const id = parseUuid(raw);
  if (id) return id;
  throw new InvalidArgumentError(
    'Expected an ID of the form 8-4-4-4-12, in hex, as "authrealm list" and "authrealm export" show it.',
  );
}
