import type { Change, ChangeEntry } from '../../model/log/change.ts';
import { isVisible, membersOf, type Resource } from '../../model/resource.ts';
import { RESOURCES } from '../../model/resources.ts';
import { type BeforeAndAfter, packDetail, type ReportedMember } from '../packed_detail.ts';

/** A record before and after a write. */
export interface Versions extends BeforeAndAfter {
  /** The members that were written; default all of them. */
  readonly members?: readonly string[];
}

/** The members of each resource that the log reports. */
const REPORTED = new Map(
  RESOURCES.map((resource) => {
    const members = membersOf(resource);
    const visible = members.flatMap((member, position) =>
      isVisible(member) ? [{ ...member, position }] : [],
    );
    const personal = visible.filter(({ annotation }) => annotation.personal);
    return [resource, { plain: visible.filter((each) => !personal.includes(each)), personal }] as const;
  }),
);

/** The log entry of a record that was written. */
export function entryOf(change: Change, resource: Resource, versions: Versions): ChangeEntry {
  const reported = REPORTED.get(resource);
  if (!reported) throw new Error(`${resource.name} has no log entries`);
  const { plain, personal } = reported;
  return { change, detail: detailOf(plain, versions), personal: detailOf(personal, versions) };
}

function detailOf(members: readonly ReportedMember[], versions: Versions): Uint8Array | undefined {
  const { members: written } = versions;
  const reported = written ? members.filter(({ name }) => written.includes(name)) : members;
  return reported.length === 0 ? undefined : packDetail(reported, versions);
}
