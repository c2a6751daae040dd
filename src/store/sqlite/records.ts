import type { Database } from 'bun:sqlite';
import type { Load, Loader, LoadOutcome, Scanner, Store, Write } from '../../directory/store.ts';
import type { Change, SequencedChange } from '../../domain/change.ts';
import type { Uuid } from '../../domain/id.ts';
import type { AnyRecord, Key, RecordOf, Resource } from '../../domain/resource.ts';
import { RESOURCES } from '../../domain/resources.ts';
import { readFrom } from './connection.ts';
import { takePicture } from './picture.ts';
import { type Prepared, prepare } from './prepared.ts';
import { openSealGuard } from './sealed.ts';
import { slotOf } from './slot.ts';
import type { Snapshot } from './snapshot.ts';
import { applyWrite, ID_TAKEN, LANDED } from './verdicts.ts';
import type { Outcome, Writer } from './writer.ts';

/** Records and their changes in one SQLite file. */
export function openRecords(db: Database, snapshot: Snapshot, writer: Writer): Store & Loader & Scanner {
  const prepared = new Map(RESOURCES.map((resource) => [resource, prepare(db, resource)]));
  const selectChanges = db.prepare<ChangeRow, [string, number, number]>(
    'select * from change where realm_id = ? and seq > ? order by seq limit ?',
  );
  const probe = db.prepare('select store_id from instance');

  function of(resource: Resource): Prepared {
    const found = prepared.get(resource);
    if (!found) throw new Error(`${resource.name} has no table`);
    return found;
  }

  const guard = openSealGuard(db);
  const apply = (write: Write) => {
    guard(write);
    return applyWrite(write, of);
  };

  /** Writes one record, unless it is there. Where it is likely to be, looking first spares a failing insert. */
  function loadOne(load: Load, isLikelyThere: boolean): Loaded {
    const known = isLikelyThere ? compare(load) : undefined;
    if (known) return known;
    const verdict = apply(load.write);
    // An identifier can also be taken by a record under another user: then there is nothing to compare.
    return (verdict === ID_TAKEN ? compare(load) : undefined) ?? { outcome: verdict };
  }

  function compare({ write, judge }: Load): Loaded | undefined {
    const statements = of(write.resource);
    const row = statements.selectStored.get(...write.key);
    if (!row) return undefined;
    const { judgement, change, record = write.record } = judge(statements.texts.decode(row));
    if (judgement === 'same') return { outcome: { kind: 'same' } };
    if (judgement === 'refuse') return { outcome: { kind: 'differs', members: change.members } };
    const replaced = apply({ ...write, record, op: 'update' });
    return replaced.kind === 'landed' ? { outcome: { kind: 'replaced' }, change } : { outcome: replaced };
  }

  function loadAll(loads: readonly Load[], stopAtFirst: boolean): Outcome<LoadOutcome[]> {
    const value: LoadOutcome[] = [];
    const changes: Change[] = [];
    let isLikelyThere = false;
    for (const load of loads) {
      const { outcome, change } = loadOne(load, isLikelyThere);
      value.push(outcome);
      // A file that is read again goes on as it began.
      isLikelyThere = outcome.kind === 'same';
      if (outcome.kind === 'landed') changes.push(load.change);
      else if (change) changes.push(change);
      else if (stopAtFirst && (outcome.kind === 'taken' || outcome.kind === 'differs')) break;
    }
    return { value, keep: true, changes };
  }

  return {
    get<R extends Resource>(resource: R, key: Key) {
      const { selectAt, select, texts } = of(resource);
      const slot = slotOf(key.at(-1) as Uuid);
      return readFrom(snapshot, () => {
        const row = selectAt.get(...key, slot) ?? select.get(...key);
        return row ? (texts.decode(row) as unknown as RecordOf<R>) : undefined;
      });
    },
    commit: (writes, changes) =>
      writer.write(() => {
        for (const write of writes) {
          const verdict = apply(write);
          if (verdict.kind !== 'landed') return { value: verdict, keep: false };
        }
        return { value: LANDED, keep: true, changes };
      }),
    picture: () => takePicture(db, (resource) => of(resource).texts),
    load: (loads, stopAtFirst) => writer.write(() => loadAll(loads, stopAtFirst)),
    changes: (realm, after, limit) =>
      readFrom(snapshot, () => selectChanges.all(realm, after, limit).map(changeOfRow)),
    ready: () =>
      readFrom(snapshot, () => {
        probe.get();
      }),
  };
}

interface Loaded {
  readonly outcome: LoadOutcome;
  /** What a replacement leaves behind. */
  readonly change?: Change;
}

interface ChangeRow {
  readonly realm_id: string;
  readonly seq: number;
  readonly event: string;
  readonly user_id: string | null;
  readonly record_id: string;
  readonly revision: string;
  readonly members: string;
  readonly actor: string;
  readonly request_id: string | null;
  readonly at: number;
}

function changeOfRow(row: ChangeRow): SequencedChange {
  return {
    event: row.event,
    realm: row.realm_id as Uuid,
    user: (row.user_id ?? undefined) as Uuid | undefined,
    id: row.record_id as Uuid,
    revision: row.revision as AnyRecord['revision'],
    members: row.members === '' ? [] : row.members.split(' '),
    actor: row.actor,
    requestId: row.request_id ?? undefined,
    at: row.at,
    seq: row.seq,
  };
}
