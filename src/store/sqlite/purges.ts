import type { Database } from 'bun:sqlite';
import type { Verdict, Write } from '../../directory/store.ts';
import type { Uuid } from '../../domain/id.ts';
import { type Key, lineage, type Resource } from '../../domain/resource.ts';
import { selectMark } from '../purge_mark.ts';
import type { Prepared } from './prepared.ts';
import { ABSENT, writtenOf } from './verdicts.ts';

/** Marks of the records that are being removed by many commits. All of it runs inside a transaction of the writer. */
export interface Purges {
  /** Whether any record is marked: where none is, nobody need ask further. */
  areUnderWay(): boolean;
  /** Whether a record, or one above it, is being purged: then it is not there for who writes. */
  isAbsent(resource: Resource, key: Key): boolean;
  begin(resource: Resource, key: Key, at: number): void;
  /** Takes the mark of a record that went. */
  end(resource: Resource, key: Key): void;
  /** Why a write cannot land on, below or beside a record that is being purged; undefined where it can. */
  hindrance(write: Write): Verdict | undefined;
}

export function openPurges(db: Database, of: (resource: Resource) => Prepared): Purges {
  const any = db.prepare('select 1 from purge limit 1');
  const select = db.prepare<unknown, [string, string, string]>(selectMark('?', '?', '?'));
  const insert = db.prepare(
    'insert or ignore into purge (realm_id, id, resource, since) values (?, ?, ?, ?)',
  );
  const remove = db.prepare('delete from purge where realm_id = ? and id = ? and resource = ?');

  const isMarked = ({ name }: Resource, realm: Uuid, id: Uuid): boolean =>
    select.get(realm, id, name) !== null;

  function isAnyMarked(line: readonly Resource[], key: Key): boolean {
    return line.some((step, at) => isMarked(step, key[0], key[at] as Uuid));
  }

  return {
    areUnderWay: () => any.get() !== null,
    isAbsent: (resource, key) => isAnyMarked(lineage(resource), key),
    begin(resource, key, at) {
      insert.run(key[0], key.at(-1) as Uuid, resource.name, at);
    },
    end(resource, key) {
      remove.run(key[0], key.at(-1) as Uuid, resource.name);
    },
    hindrance(write) {
      const { op, resource, key } = write;
      // A record that is inserted is not there yet; what is marked under its name is another one's, of its identifier.
      const line = lineage(resource).slice(0, op === 'insert' ? -1 : undefined);
      if (isAnyMarked(line, key)) return ABSENT;
      const lost = of(resource).texts.references.find(({ member, target }) => {
        const id = writtenOf(write, member);
        return typeof id === 'string' && isMarked(target, key[0], id as Uuid);
      });
      return lost && { kind: 'dangling', member: lost.member };
    },
  };
}
