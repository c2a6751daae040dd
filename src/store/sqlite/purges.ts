import type { Database } from 'bun:sqlite';
import type { Verdict, Write } from '../../directory/store.ts';
import type { Uuid } from '../../domain/id.ts';
import { type Key, lineage, type Resource } from '../../domain/resource.ts';
import type { Prepared } from './prepared.ts';
import { ABSENT, writtenOf } from './verdicts.ts';

/** Marks of the records that are being removed by many commits. All of it runs inside a transaction of the writer. */
export interface Purges {
  /** Whether any record is marked: where none is, nobody need ask further. */
  areUnderWay(): boolean;
  has(resource: Resource, key: Key): boolean;
  begin(resource: Resource, key: Key, at: number): void;
  /** Takes the mark of a record that went. */
  end(resource: Resource, key: Key): void;
  /** Why a write cannot land on, below or beside a record that is being purged; undefined where it can. */
  hindrance(write: Write): Verdict | undefined;
}

export function openPurges(db: Database, of: (resource: Resource) => Prepared): Purges {
  const any = db.prepare('select 1 from purge limit 1');
  const select = db.prepare<unknown, [string, string, string]>(
    'select 1 from purge where realm_id = ? and id = ? and resource = ?',
  );
  const insert = db.prepare(
    'insert or ignore into purge (realm_id, id, resource, since) values (?, ?, ?, ?)',
  );
  const remove = db.prepare('delete from purge where realm_id = ? and id = ? and resource = ?');

  const isMarked = ({ name }: Resource, realm: Uuid, id: Uuid): boolean =>
    select.get(realm, id, name) !== null;

  /** A record that is inserted is not there yet; what is marked under its name is another one's, of its identifier. */
  function isAddressMarked({ op, resource, key }: Write): boolean {
    const steps = lineage(resource).slice(0, op === 'insert' ? -1 : undefined);
    return steps.some((step, at) => isMarked(step, key[0], key[at] as Uuid));
  }

  return {
    areUnderWay: () => any.get() !== null,
    has: (resource, key) => isMarked(resource, key[0], key.at(-1) as Uuid),
    begin(resource, key, at) {
      insert.run(key[0], key.at(-1) as Uuid, resource.name, at);
    },
    end(resource, key) {
      remove.run(key[0], key.at(-1) as Uuid, resource.name);
    },
    hindrance(write) {
      if (isAddressMarked(write)) return ABSENT;
      const lost = of(write.resource).texts.references.find(({ member, target }) => {
        const id = writtenOf(write, member);
        return typeof id === 'string' && isMarked(target, write.key[0], id as Uuid);
      });
      return lost && { kind: 'dangling', member: lost.member };
    },
  };
}
