import type { Change } from '../../domain/change.ts';
import { type AnyRecord, isVisible, membersOf, type Resource } from '../../domain/resource.ts';

/**
 * A log entry of a realm: a change with its record before and after, in two JSON objects without secrets. The feed reports
 * only the change.
 */
export interface ChangeEntry {
  readonly change: Change;
  readonly detail?: string | undefined;
  /** The personal members. */
  readonly personal?: string | undefined;
}

/** A record before and after a write. */
export interface Versions {
  readonly before?: AnyRecord | undefined;
  readonly after?: AnyRecord | undefined;
  /** The members that were written; default all of them. */
  readonly members?: readonly string[];
}

/** The log entry of a record that was written. */
export function entryOf(change: Change, resource: Resource, versions: Versions): ChangeEntry {
  const names = namesOf(resource);
  return { change, detail: detailOf(versions, names.plain), personal: detailOf(versions, names.personal) };
}

function detailOf({ before, after, members }: Versions, names: readonly string[]): string | undefined {
  const reported = members ? names.filter((name) => members.includes(name)) : names;
  if (reported.length === 0) return undefined;
  return JSON.stringify({ before: before && pick(before, reported), after: after && pick(after, reported) });
}

function pick(record: AnyRecord, names: readonly string[]): Readonly<Record<string, unknown>> {
  const picked: Record<string, unknown> = {};
  for (const name of names) picked[name] = record[name];
  return picked;
}

interface Names {
  readonly plain: readonly string[];
  readonly personal: readonly string[];
}

const known = new Map<Resource, Names>();

/** The logged members of a resource, cached. */
function namesOf(resource: Resource): Names {
  const found = known.get(resource);
  if (found) return found;
  const visible = membersOf(resource).filter(isVisible);
  const of = (isPersonal: boolean) =>
    visible.filter(({ annotation }) => (annotation.personal ?? false) === isPersonal).map(({ name }) => name);
  const names: Names = { plain: of(false), personal: of(true) };
  known.set(resource, names);
  return names;
}
