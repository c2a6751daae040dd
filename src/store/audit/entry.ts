import { packDetail, type RecordVersions } from '../../audit/packed_detail.ts';
import type { Change } from '../../domain/change.ts';
import { isVisible, membersOf, type Resource } from '../../domain/resource.ts';

/**
 * A log entry of a realm: a change with its record before and after, without secrets. The feed reports only the change.
 */
export interface ChangeEntry {
  readonly change: Change;
  /** The packed members that are not personal, and those that are. */
  readonly detail?: Uint8Array | undefined;
  readonly personal?: Uint8Array | undefined;
}

/** A record before and after a write. */
export interface Versions extends RecordVersions {
  /** The members that were written; default all of them. */
  readonly members?: readonly string[];
}

/** The log entry of a record that was written. */
export function entryOf(change: Change, resource: Resource, versions: Versions): ChangeEntry {
  const names = namesOf(resource);
  return {
    change,
    detail: detailOf(resource, versions, names.plain),
    personal: detailOf(resource, versions, names.personal),
  };
}

function detailOf(
  resource: Resource,
  versions: Versions,
  names: ReadonlySet<string>,
): Uint8Array | undefined {
  const { members } = versions;
  const reported = members ? new Set(members).intersection(names) : names;
  return reported.size === 0 ? undefined : packDetail(resource, versions, (name) => reported.has(name));
}

interface Names {
  readonly plain: ReadonlySet<string>;
  readonly personal: ReadonlySet<string>;
}

const known = new Map<Resource, Names>();

/** The logged members of a resource, cached. */
function namesOf(resource: Resource): Names {
  const found = known.get(resource);
  if (found) return found;
  const visible = membersOf(resource).filter(isVisible);
  const of = (isPersonal: boolean) =>
    new Set(
      visible
        .filter(({ annotation }) => (annotation.personal ?? false) === isPersonal)
        .map(({ name }) => name),
    );
  const names: Names = { plain: of(false), personal: of(true) };
  known.set(resource, names);
  return names;
}
