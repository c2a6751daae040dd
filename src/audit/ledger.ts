import { parseUuid } from '../domain/id.ts';
import { erasureLine } from './checkpoint.ts';
import type { LogKeys } from './keys.ts';
import type { Erasure, LogStore } from './port.ts';

/** Somebody outside of the database who keeps lines. Rejects where it could not; then they are told again. */
export type Witness = (lines: readonly string[]) => Promise<void>;

/** Tells lines to all of them. Rejects, after the last one was asked, where one of them could not keep them. */
export async function tellAll(witnesses: readonly Witness[], lines: readonly string[]): Promise<void> {
  const failed = await failureOf(witnesses.map((witness) => witness(lines)));
  if (failed) throw failed.reason;
}

/** The first failure, once all have come to an end; undefined where there is none. */
async function failureOf(works: readonly Promise<void>[]): Promise<PromiseRejectedResult | undefined> {
  const ended = await Promise.allSettled(works);
  return ended.find((outcome) => outcome.status === 'rejected');
}

/** A witness that is asked no more in a round once it failed, so that one which is away costs a round one wait. */
export interface Patience {
  readonly witness: Witness;
  /** Begins a round. */
  begin(): void;
}

export function openPatience(witness: Witness): Patience {
  let failed: { readonly reason: unknown } | undefined;
  return {
    async witness(lines) {
      if (failed) throw failed.reason;
      try {
        await witness(lines);
      } catch (reason) {
        failed = { reason };
        throw reason;
      }
    },
    begin() {
      failed = undefined;
    },
  };
}

export interface LedgerRooms {
  readonly store: Pick<LogStore, 'untold' | 'noteTold'>;
  readonly keys: Pick<LogKeys, 'sign'>;
  readonly witnesses: readonly Witness[];
}

const PAGE = 100;

/**
 * Tells of the erasures of which it is not noted that they were told, and notes it once every witness has them. Who erased
 * tells of it, too: this is for what was never told because that one was killed before, or told elsewhere. While one
 * witness cannot keep them, the others are told once. Rejects where one could not, after all that could be done.
 */
export function openLedger({ store, keys, witnesses }: LedgerRooms): (now: number) => Promise<void> {
  const tellEach = witnesses.map(openRemembering);

  async function tellPage(page: readonly Erasure[], now: number): Promise<unknown> {
    const erasures = page.filter(isOfAUser);
    const lines = new Map(erasures.map((erasure) => [nameOf(erasure), erasureLine(erasure, keys)]));
    const failed = await failureOf(tellEach.map(({ tell }) => tell(lines)));
    if (failed) return failed.reason;
    await store.noteTold(erasures, now);
    for (const { forget } of tellEach) forget([...lines.keys()]);
    return undefined;
  }

  return async (now) => {
    let trouble: unknown;
    let after: Erasure | undefined;
    for (;;) {
      const erasures = await store.untold(after, PAGE);
      if (erasures.length === 0) break;
      trouble = (await tellPage(erasures, now)) ?? trouble;
      after = erasures.at(-1);
      // Signing takes the event loop, and where a witness is away nothing else gives it back.
      await new Promise((resolve) => setImmediate(resolve));
    }
    if (trouble !== undefined) throw trouble;
  };
}

/** Tells a witness each line once, by its name, until it is forgotten. */
function openRemembering(witness: Witness) {
  const told = new Set<string>();
  return {
    async tell(lines: ReadonlyMap<string, string>): Promise<void> {
      const fresh = [...lines].filter(([name]) => !told.has(name));
      if (fresh.length === 0) return;
      await witness(fresh.map(([, line]) => line));
      for (const [name] of fresh) told.add(name);
    },
    forget(names: readonly string[]): void {
      for (const name of names) told.delete(name);
    },
  };
}

/** No other row is of this program; a line about one could not be read again, and a restore passes over none. */
function isOfAUser({ realm, user }: Erasure): boolean {
  return parseUuid(realm) !== undefined && parseUuid(user) !== undefined;
}

function nameOf({ realm, user, at }: Erasure): string {
  return `${realm} ${user} ${at}`;
}
