import { Refusal } from '../domain/fault.ts';
import type { Resource } from '../domain/resource.ts';
import { RESOURCES } from '../domain/resources.ts';

/** How an operator calls a resource: its table, with hyphens. */
export function wordOf({ table }: Resource): string {
  return table.replaceAll('_', '-');
}

export function resourceWords(): readonly string[] {
  return RESOURCES.map(wordOf);
}

/** The resource of a word; its full name and its `type` will do as well. Throws Refusal that lists the words. */
export function resourceNamed(word: string): Resource {
  const found = RESOURCES.find((resource) => [wordOf(resource), resource.name, resource.type].includes(word));
  if (!found)
    throw new Refusal(`the resource must be one of ${resourceWords().join(', ')}`, { isUsage: true });
  return found;
}
