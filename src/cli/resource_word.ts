import { Refusal } from '../domain/fault.ts';
import type { Resource } from '../domain/resource.ts';
import { RESOURCES } from '../domain/resources.ts';

/** The name of a resource on the command line: its table name with hyphens. */
export function commandLineName({ table }: Resource): string {
  return table.replaceAll('_', '-');
}

export function resourceNames(): readonly string[] {
  return RESOURCES.map(commandLineName);
}

/** The resource with this command-line name, full name or `type`. Throws a Refusal that lists the names. */
export function resourceNamed(word: string): Resource {
  const found = RESOURCES.find((resource) =>
    [commandLineName(resource), resource.name, resource.type].includes(word),
  );
  if (!found)
    throw new Refusal(`the resource must be one of ${resourceNames().join(', ')}`, { isUsage: true });
  return found;
}
