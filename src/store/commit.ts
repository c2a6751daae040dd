import type { Memory, Verdict, Write } from '../directory/store.ts';
import type { Change } from '../domain/change.ts';
import type { AnyRecord, Resource } from '../domain/resource.ts';
import type { Guards } from './guards.ts';
import type { Memories } from './memories.ts';
import type { Purges } from './purges.ts';
import type { SealGuard } from './seal_guard.ts';
import type { Statements } from './statements.ts';
import { applyWrite, insertAll, LANDED } from './verdicts.ts';
import type { Outcome, Work } from './work.ts';

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
    const application = yield* applier();
    for (const write of writes) {
      const verdict = yield* applyGuarded(write, application);
      if (verdict.kind !== 'landed') return { value: verdict, keep: false };
      if (verdict.patched) patched.push(...verdict.patched);
    }
    const value: Verdict = patched.length === 0 ? LANDED : { kind: 'landed', patched };
    return { value, keep: true, changes };
  }

  return { applier, commit };
}
