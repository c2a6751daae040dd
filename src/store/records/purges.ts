import type { WriteRefusal } from '../../directory/store.ts';
import type { Uuid } from '../../domain/id.ts';
import { ancestry, type Key, type Resource } from '../../domain/resource.ts';
import type { ListDialect } from '../dialect.ts';
import { execute, first, firstUnexpected, type SqlValue, type Work } from '../transaction_work.ts';
import { selectPurgeMark } from './purge_mark.ts';
import { NOT_FOUND, type PendingWrite, writtenValue } from './row_write.ts';
import type { Statements } from './statements.ts';

/** The marks of records that are being deleted in several commits. */
export interface Purges {
  /** Whether any record of a realm is marked; if not, no other check is needed. */
  areRunning(realm: Uuid): Work<boolean>;
  /** Whether a record, or one of its parents, is being purged: writes then treat it as absent. */
  isAbsent(resource: Resource, key: Key): Work<boolean>;
  begin(resource: Resource, key: Key, at: number): Work<void>;
  /** Removes the marks of deleted records of one realm. */
  end(resource: Resource, realm: Uuid, ids: SqlValue): Work<void>;
  /** The result of a write to, below, or with a reference to a record that is being purged; undefined if there is none. */
  checkNotPurged(pending: PendingWrite): Work<WriteRefusal | undefined>;
}

const ANY = 'select 1 from purge where realm_id = ? limit 1';
const SELECT = selectPurgeMark('?', '?', '?');
const INSERT = 'insert into purge (realm_id, id, resource, since) values (?, ?, ?, ?) on conflict do nothing';

export function openPurges(of: (resource: Resource) => Statements, { isAmong }: ListDialect): Purges {
  const removeAmong = `delete from purge where realm_id = ? and resource = ? and ${isAmong('id')}`;

  function* isMarked({ name }: Resource, realm: Uuid, id: Uuid): Work<boolean> {
    return (yield* first(SELECT, realm, id, name)) !== undefined;
  }

  function* isAnyMarked(ancestors: readonly Resource[], key: Key): Work<boolean> {
    for (const [at, ancestor] of ancestors.entries())
      if (yield* isMarked(ancestor, key[0], key[at] as Uuid)) return true;
    return false;
  }

  return {
    *areRunning(realm) {
      return (yield* firstUnexpected(ANY, realm)) !== undefined;
    },
    isAbsent: (resource, key) => isAnyMarked(ancestry(resource), key),
    *begin(resource, key, at) {
      yield* execute(INSERT, key[0], key.at(-1) as Uuid, resource.name, at);
    },
    *end(resource, realm, ids) {
      yield* execute(removeAmong, realm, resource.name, ids);
    },
    *checkNotPurged({ write, isPurging }) {
      if (!isPurging) return undefined;
      const { op, resource, key } = write;
      // A new record has no mark; a mark with its ID would belong to another record.
      const ancestors = ancestry(resource).slice(0, op === 'insert' ? -1 : undefined);
      if (yield* isAnyMarked(ancestors, key)) return NOT_FOUND;
      for (const { member, target } of of(resource).references) {
        const id = writtenValue(write, member);
        if (typeof id === 'string' && (yield* isMarked(target, key[0], id as Uuid)))
          return { kind: 'foreign_key', member };
      }
      return undefined;
    },
  };
}
