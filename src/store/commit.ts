import type { Memory, Verdict, Write } from '../directory/store.ts';
import type { Change } from '../domain/change.ts';
import type { AnyRecord, Resource } from '../domain/resource.ts';
import type { Entry, Facts } from './entry.ts';
import type { Guards } from './guards.ts';
import type { Memories } from './memories.ts';
import type { Purges } from './purges.ts';
import type { SealGuard } from './seal_guard.ts';
import type { Statements } from './statements.ts';
import { applyWrite, insertAll, LANDED } from './verdicts.ts';
import { first, type Outcome, type Work } from './work.ts';

interface Rooms {
  readonly of: (resource: Resource) => Statements;
  readonly purges: Purges;
  readonly guards: Guards;
  readonly memories: Memories;
  readonly sealGuard: SealGuard;
}

const REMEMBERED: Verdict = Object.freeze({ kind: 'remembered' });

/** What applies the writes of one transaction, guards aside. */
export interface Applier {
  apply(write: Write): Work<Verdict>;
  /** Applies inserts in their order, all or none of them. Answers false where they must be looked at one by one. */
  applyAll(inserts: readonly Insert[]): Work<boolean>;
}

type Insert = Extract<Write, { op: 'insert' }>;

function isTouch(write: Write): boolean {
  return write.op === 'patch' && Object.keys(write.patch.members).length === 0;
}

/** What the log tells of a write that landed; nothing of a touch, which the write beside it caused. */
function factsOf(
  write: Write,
  before: AnyRecord | undefined,
  patched: AnyRecord | undefined,
): Facts | undefined {
  const { resource } = write;
  if (write.op !== 'patch') return { resource, before, after: write.record };
  if (isTouch(write)) return undefined;
  return { resource, before, after: patched, members: Object.keys(write.patch.members) };
}

/** The work of a commit, and of single writes without guards. */
export function openCommits({ of, purges, guards, memories, sealGuard }: Rooms) {
  /** Whether anything is being purged is asked once for all writes of a transaction. */
  function* applier(): Work<Applier> {
    const isPurging = yield* purges.areUnderWay();
    return {
      *apply(write) {
        yield* sealGuard.ofWrite(write);
        const hindrance = isPurging ? yield* purges.hindrance(write) : undefined;
        return hindrance ?? (yield* applyWrite(write, of));
      },
      *applyAll(inserts) {
        if (isPurging) return false;
        for (const insert of inserts) yield* sealGuard.ofWrite(insert);
        return yield* insertAll(inserts, of);
      },
    };
  }

  function* applyGuarded(write: Write, { apply }: Applier): Work<Verdict> {
    const before = yield* guards.before(write);
    const verdict = yield* apply(write);
    if (verdict.kind !== 'landed') return verdict;
    const broken = before ?? (yield* guards.after(write));
    return broken ? { kind: 'refused', guard: broken } : verdict;
  }

  function* commit(
    writes: readonly Write[],
    changes: readonly Change[],
    memory: Memory | undefined,
  ): Work<Outcome<Verdict>> {
    if (memory) {
      yield* sealGuard.ofMemory(memory);
      // Looked at first: a repetition of the same request would break the rules that the first one kept.
      if (!(yield* memories.keep(memory))) return { value: REMEMBERED, keep: false };
    }
    const patched: AnyRecord[] = [];
    const facts = new Map<string, Facts | undefined>();
    const application = yield* applier();
    for (const write of writes) {
      const { verdict, told } = yield* applyTold(write, application);
      if (verdict.kind !== 'landed') return { value: verdict, keep: false };
      patched.push(...(verdict.patched ?? []));
      facts.set(write.key.at(-1) as string, told);
    }
    const value: Verdict = patched.length === 0 ? LANDED : { kind: 'landed', patched };
    const entries = changes.map((change): Entry => ({ change, facts: facts.get(change.id) }));
    return { value, keep: true, entries };
  }

  /** Applies a write, and answers what the log tells of it. */
  function* applyTold(
    write: Write,
    by: Applier,
  ): Work<{ readonly verdict: Verdict; readonly told?: Facts | undefined }> {
    const before = yield* storedBefore(write);
    const verdict = yield* applyGuarded(write, by);
    return verdict.kind === 'landed'
      ? { verdict, told: factsOf(write, before, verdict.patched?.[0]) }
      : { verdict };
  }

  /** The record that a write changes, as it is before; undefined where it changes none, or only touches it. */
  function* storedBefore(write: Write): Work<AnyRecord | undefined> {
    if (write.op === 'insert' || isTouch(write)) return undefined;
    const texts = of(write.resource);
    const row = yield* first(texts.select, ...write.key);
    return row && texts.decode(row);
  }

  return { applier, commit };
}
