import { type ChangeEntry, changeOf } from '../../model/log/change.ts';
import type { AnyRecord, Resource } from '../../model/resource.ts';
import type { Write } from '../../model/store.ts';
import type { Dialect } from '../../sql/dialect.ts';
import { first, type Work } from '../../sql/transaction_work.ts';
import { openCascades } from './cascade.ts';
import { readDependents } from './removal.ts';
import { patchRow } from './row_write.ts';
import type { Statements } from './statements.ts';

export type EndSignIns = ReturnType<typeof openSignInEnds>;

/** All links of a user: one that is left out would keep its tokens. */
const EVERY_LINK = 2 ** 31 - 1;

/**
 * Ends the sign-ins of a user whom a write disables or signs out: each link gets the revision of the write, and each password that
 * version as well, so that earlier account tokens and device tokens are never valid again. Returns the log entries of the links.
 */
export function openSignInEnds(of: (resource: Resource) => Statements, dialect: Dialect) {
  const cascadeOf = openCascades(dialect);
  return function* (
    write: Write,
    before: AnyRecord | undefined,
    after: AnyRecord,
  ): Work<readonly ChangeEntry[]> {
    const { resource, key, change } = write;
    const isSignOut = write.op === 'patch' && write.endsSignIns;
    if (!change || !(isSignOut || (before?.enabled === true && after.enabled === false))) return [];
    const { actor, requestId, address, at } = change;
    const origin = { actor, requestId, address, at };
    const { revision } = after;
    const entries: ChangeEntry[] = [];
    for (const link of yield* readDependents({ resource, key }, EVERY_LINK, of, cascadeOf)) {
      const { selectStored } = of(link.resource);
      const stored = yield* first<{ readonly password_hash?: string | null }>(selectStored, ...link.key);
      // The same hash again is another version of the password.
      const members = stored?.password_hash ? { password_hash: stored.password_hash } : {};
      yield* patchRow({ op: 'patch', ...link, patch: { members, revision, at } }, of, link.record);
      entries.push({ change: changeOf(link.resource, 'updated', { key: link.key, revision }, origin) });
    }
    return entries;
  };
}
