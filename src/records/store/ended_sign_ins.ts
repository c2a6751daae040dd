import type { Uuid } from '../../model/id.ts';
import { type ChangeEntry, type ChangeOrigin, changeOf } from '../../model/log/change.ts';
import { type AnyRecord, type Key, membersOf, type Resource } from '../../model/resource.ts';
import type { Dialect } from '../../sql/dialect.ts';
import { all, type Work } from '../../sql/transaction_work.ts';
import { openCascades } from './cascade.ts';
import { touchRow } from './row_write.ts';
import type { Statements } from './statements.ts';

/** All links of a user: one that is left out would keep its tokens. */
const EVERY_LINK = 2 ** 31 - 1;

/** A record as it was before a write and after it. */
interface WrittenVersions {
  readonly resource: Resource;
  readonly key: Key;
  readonly before: AnyRecord | undefined;
  readonly after: AnyRecord;
}

/**
 * Ends the sign-ins of a user whom a write disables: each link gets a new revision, and each password a new version as well, so that
 * account tokens and device tokens stay invalid after the user is enabled again. Returns the log entries of the links.
 */
export function openSignInEnds(of: (resource: Resource) => Statements, dialect: Dialect) {
  const cascadeOf = openCascades(dialect);
  return function* (
    { resource, key, before, after }: WrittenVersions,
    { actor, requestId, address, at }: ChangeOrigin,
  ): Work<readonly ChangeEntry[]> {
    const isEnd = membersOf(resource).some(
      ({ name, annotation }) => annotation.endsSignIns && before?.[name] === true && after[name] === false,
    );
    if (!isEnd) return [];
    const { revision } = after;
    const origin = { actor, requestId, address, at };
    const entries: ChangeEntry[] = [];
    for (const { resource: link, select } of cascadeOf(resource)) {
      const { decodeKeyed, renewVersion } = of(link);
      for (const row of yield* all(select, key[0], key.at(-1) as Uuid, EVERY_LINK)) {
        const linkKey = [key[0], ...decodeKeyed(row).key] as unknown as Key;
        yield* touchRow({ resource: link, key: linkKey, patch: { members: {}, revision, at } }, of);
        if (renewVersion) yield* renewVersion(linkKey, revision);
        entries.push({ change: changeOf(link, 'updated', { key: linkKey, revision }, origin) });
      }
    }
    return entries;
  };
}
