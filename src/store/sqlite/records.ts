import type { Database } from 'bun:sqlite';
import type { Loader, Memory, Scanner, Store, Verdict, Write } from '../../directory/store.ts';
import type { Change, SequencedChange } from '../../domain/change.ts';
import type { Uuid } from '../../domain/id.ts';
import { LIMITS } from '../../domain/limits.ts';
import type { AnyRecord, Key, RecordOf, Resource } from '../../domain/resource.ts';
import { RESOURCES } from '../../domain/resources.ts';
import { giveWay, readFrom } from './connection.ts';
import { openCounting } from './counting.ts';
import { openFinds } from './finds.ts';
import { openGuards } from './guards.ts';
import { openLists } from './lists.ts';
import { openLoading } from './loading.ts';
import { openMemories } from './memories.ts';
import { takePicture } from './picture.ts';
import { type Prepared, prepare } from './prepared.ts';
import { openPurges } from './purges.ts';
import { openRemovals } from './removal.ts';
import { openSealGuard } from './sealed.ts';
import { slotOf } from './slot.ts';
import type { Snapshot } from './snapshot.ts';
import { applyWrite, LANDED } from './verdicts.ts';
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

  const purges = openPurges(db, of);
  const memories = openMemories(db);
  const removals = openRemovals(db, { of, purges, memories });
  const { commit, applier } = openCommits(db, { of, purges, memories });
  const load = openLoading(of, applier);

  return {
    get<R extends Resource>(resource: R, key: Key) {
      const { selectAt, select, texts } = of(resource);
      const slot = slotOf(key.at(-1) as Uuid);
      return readFrom(snapshot, () => {
        const row = selectAt.get(...key, slot) ?? select.get(...key);
        return row ? (texts.decode(row) as unknown as RecordOf<R>) : undefined;
      });
    },
    find: openFinds(db, snapshot, of),
    list: openLists(db, snapshot).here,
    commit: (writes, changes, memory) => writer.write(() => commit(writes, changes, memory)),
    recall: (place, now) => readFrom(snapshot, () => memories.recall(place, now)),
    async forgetExpired(now) {
      const forgotten = await writer.write(() => {
        const rows = memories.sweep(now, LIMITS.cascadeRecordsMax);
        return { value: rows, keep: rows > 0, rows };
      });
      if (forgotten >= LIMITS.cascadeRecordsMax) await giveWay();
      return forgotten;
    },
    remove: (removal) => writer.write(() => removals.remove(removal)),
    async purge(removal) {
      const purged = await writer.write(() => removals.purge(removal));
      if (purged.kind === 'purged' && !purged.isDone) await giveWay();
      return purged;
    },
    countBelow: openCounting(db, snapshot),
    picture: () => takePicture(db, (resource) => of(resource).texts),
    load: (loads, stopAtFirst) => writer.write(() => load(loads, stopAtFirst)),
    changes: (realm, after, limit) =>
      readFrom(snapshot, () => selectChanges.all(realm, after, limit).map(changeOfRow)),
    ready: () =>
      readFrom(snapshot, () => {
        probe.get();
      }),
  };
}

interface Rooms {
  readonly of: (resource: Resource) => Prepared;
  readonly purges: ReturnType<typeof openPurges>;
  readonly memories: ReturnType<typeof openMemories>;
}

const REMEMBERED: Verdict = Object.freeze({ kind: 'remembered' });

/** The work of a commit, and of single writes without guards. */
function openCommits(db: Database, { of, purges, memories }: Rooms) {
  const sealGuard = openSealGuard(db);
  const guards = openGuards(of);

  /** What applies the writes of one transaction: whether anything is being purged is asked once for all of them. */
  function applier(): (write: Write) => Verdict {
    const isPurging = purges.areUnderWay();
    return (write) => {
      sealGuard.ofWrite(write);
      return (isPurging ? purges.hindrance(write) : undefined) ?? applyWrite(write, of);
    };
  }

  function applyGuarded(write: Write, apply: (write: Write) => Verdict): Verdict {
    const before = guards.before(write);
    const verdict = apply(write);
    if (verdict.kind !== 'landed') return verdict;
    const broken = before ?? guards.after(write);
    return broken ? { kind: 'refused', guard: broken } : verdict;
  }

  function commit(
    writes: readonly Write[],
    changes: readonly Change[],
    memory: Memory | undefined,
  ): Outcome<Verdict> {
    if (memory) {
      sealGuard.ofMemory(memory);
      // Looked at first: a repetition of the same request would break the rules that the first one kept.
      if (!memories.keep(memory)) return { value: REMEMBERED, keep: false };
    }
    const patched: AnyRecord[] = [];
    const apply = applier();
    for (const write of writes) {
      const verdict = applyGuarded(write, apply);
      if (verdict.kind !== 'landed') return { value: verdict, keep: false };
      if (verdict.patched) patched.push(...verdict.patched);
    }
    const value: Verdict = patched.length === 0 ? LANDED : { kind: 'landed', patched };
    return { value, keep: true, changes };
  }

  return { applier, commit };
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
