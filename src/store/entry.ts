import type { Change } from '../domain/change.ts';
import { type AnyRecord, isVisible, membersOf, type Resource } from '../domain/resource.ts';

/** A change, and what its record was before and after: the log tells both, the feed neither. */
export interface Entry {
  readonly change: Change;
  readonly facts?: Facts | undefined;
}

/** A record before and after a write, as far as there was one. */
export interface Facts {
  readonly resource: Resource;
  readonly before?: AnyRecord | undefined;
  readonly after?: AnyRecord | undefined;
  /** The members that were written; all of them unless said. */
  readonly members?: readonly string[];
}

/** The two halves of what an entry tells, each as JSON; undefined where there is nothing to tell. */
export interface Detail {
  readonly detail: string | undefined;
  /** What says something about a person. */
  readonly personal: string | undefined;
}

const NOTHING: Detail = Object.freeze({ detail: undefined, personal: undefined });

/** What the log tells of a change: members by name, before and after. Secrets are in neither half. */
export function detailOf({ facts }: Entry): Detail {
  if (!facts) return NOTHING;
  const names = namesOf(facts.resource);
  return { detail: halfOf(facts, names.plain), personal: halfOf(facts, names.personal) };
}

function halfOf({ before, after, members }: Facts, names: readonly string[]): string | undefined {
  const told = members ? names.filter((name) => members.includes(name)) : names;
  if (told.length === 0) return undefined;
  return JSON.stringify({
    ...(before ? { before: pick(before, told) } : {}),
    ...(after ? { after: pick(after, told) } : {}),
  });
}

function pick(record: AnyRecord, names: readonly string[]): Readonly<Record<string, unknown>> {
  return Object.fromEntries(names.map((name) => [name, record[name]]));
}

interface Names {
  readonly plain: readonly string[];
  readonly personal: readonly string[];
}

const known = new Map<Resource, Names>();

/** The members of a resource that are told, by half. Sorted out once per resource. */
function namesOf(resource: Resource): Names {
  const found = known.get(resource);
  if (found) return found;
  const visible = membersOf(resource).filter(isVisible);
  const of = (isPersonal: boolean) =>
    visible.filter(({ placement }) => (placement.personal ?? false) === isPersonal).map(({ name }) => name);
  const names: Names = { plain: of(false), personal: of(true) };
  known.set(resource, names);
  return names;
}
