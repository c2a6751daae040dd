import type { WriteResult } from '../../directory/store.ts';
import type { Uuid } from '../../domain/id.ts';
import { ancestry, type Key, type Resource } from '../../domain/resource.ts';
import { execute, first, type Work } from '../transaction_work.ts';
import { selectPurgeMark } from './purge_mark.ts';
import { NOT_FOUND, type PendingWrite, writtenValue } from './row_write.ts';
import type { Statements } from './statements.ts';

/** Marks of the records that are being removed by many commits. */
export interface Purges {
  /** Whether any record is marked: where none is, nobody need ask further. */
  areUnderWay(): Work<boolean>;
  /** Whether a record, or one above it, is being purged: then it is not there for who writes. */
  isAbsent(resource: Resource, key: Key): Work<boolean>;
  begin(resource: Resource, key: Key, at: number): Work<void>;
  /** Takes the mark of a record that went. */
  end(resource: Resource, key: Key): Work<void>;
  /** Why a write cannot land on, below or beside a record that is being purged; undefined where it can. */
  checkNotPurged(writing: PendingWrite): Work<WriteResult | undefined>;
}

const ANY = 'select 1 from purge limit 1';
const SELECT = selectPurgeMark('?', '?', '?');
const INSERT = 'insert into purge (realm_id, id, resource, since) values (?, ?, ?, ?) on conflict do nothing';
const REMOVE = 'delete from purge where realm_id = ? and id = ? and resource = ?';

export function openPurges(of: (resource: Resource) => Statements): Purges {
  function* isMarked({ name }: Resource, realm: Uuid, id: Uuid): Work<boolean> {
    return (yield* first(SELECT, realm, id, name)) !== undefined;
  }

  function* isAnyMarked(line: readonly Resource[], key: Key): Work<boolean> {
    for (const [at, step] of line.entries()) if (yield* isMarked(step, key[0], key[at] as Uuid)) return true;
    return false;
  }

  return {
    *areUnderWay() {
      return (yield* first(ANY)) !== undefined;
    },
    isAbsent: (resource, key) => isAnyMarked(ancestry(resource), key),
    *begin(resource, key, at) {
      yield* execute(INSERT, key[0], key.at(-1) as Uuid, resource.name, at);
    },
    *end(resource, key) {
      yield* execute(REMOVE, key[0], key.at(-1) as Uuid, resource.name);
    },
    *checkNotPurged({ write, isPurging }) {
      if (!isPurging) return undefined;
      const { op, resource, key } = write;
      // A record that is inserted is not there yet; what is marked under its name is another one's, of its identifier.
      const line = ancestry(resource).slice(0, op === 'insert' ? -1 : undefined);
      if (yield* isAnyMarked(line, key)) return NOT_FOUND;
      for (const { member, target } of of(resource).references) {
        const id = writtenValue(write, member);
        if (typeof id === 'string' && (yield* isMarked(target, key[0], id as Uuid)))
          return { kind: 'foreign_key', member };
      }
      return undefined;
    },
  };
}
