import { NIL_UUID, type Uuid } from '../domain/id.ts';
import { LIMITS } from '../domain/limits.ts';
import type { Line } from './line.ts';
import type { MovedPlace, Standing } from './port.ts';

/** Begins to tell a realm, where there is anything to tell. Answers false where there is no place for it now. */
export type Begin = (standing: Standing) => boolean;

/** Where realms that may have something to tell are found. */
export interface Sources {
  /** `beginner` is called before anything is read, and makes what is called with each row of that. */
  look(beginner: () => Begin): Promise<void>;
  /** A realm is to be looked at again, of which no more is known. */
  again(realm: Uuid): void;
  /** The receiver was changed: what was passed over may be for it now. */
  restart(): void;
}

/** Answers false where it was stopped. */
type Source = (beginner: () => Begin) => Promise<boolean>;

export function openSources(line: Line, unsettled: ReadonlySet<Uuid>): Sources {
  const again = new Set<Uuid>();
  const moved = openMoved(line);
  const sweep = openSweep(line);
  const isFull = () => again.size >= LIMITS.webhookRealmsAgainMax;
  const sources: readonly Source[] = [
    openDue(line, unsettled),
    openAgain(line, again),
    async (beginner) => isFull() || (await moved.look(beginner)),
    async (beginner) => isFull() || (await sweep.look(beginner)),
  ];
  let turn = 0;

  return {
    async look(beginner) {
      // What is swept goes by this place: nothing moves between the two unseen.
      await moved.begin();
      // Whichever stands first gets the first place: each does in its turn.
      turn += 1;
      const inTurn = sources.map((_, at) => sources[(turn + at) % sources.length] as Source);
      for (const source of inTurn) if (!(await source(beginner))) return;
    },
    again: (realm) => again.add(realm),
    restart() {
      moved.restart();
      sweep.restart();
    },
  };
}

/** What was not received, and is to be sent again by now. */
function openDue({ rooms, webhookId }: Line, unsettled: ReadonlySet<Uuid>): Source {
  return async (beginner) => {
    const begin = beginner();
    const most = LIMITS.webhookRealmsAtOnceMax + unsettled.size;
    return (await rooms.store.due(webhookId, rooms.ambient.now(), most)).every(begin);
  };
}

/** What was told of just now. */
function openAgain({ rooms, webhookId }: Line, again: Set<Uuid>): Source {
  const length = openPageLength();
  return async (beginner) => {
    const realms = [...again].slice(0, length.most());
    if (realms.length === 0) return true;
    const begin = beginner();
    const left = new Set(realms);
    for (const realm of realms) again.delete(realm);
    try {
      const found = await rooms.store.standingsOf(webhookId, realms);
      const standings = new Map(found.map((standing) => [standing.realm, standing]));
      const inTurn = realms.flatMap((realm) => standings.get(realm) ?? []);
      const isWalked = walkOver(inTurn, begin, length, ({ realm }) => left.delete(realm));
      if (isWalked) left.clear();
      return isWalked;
    } finally {
      putFirst(left, again);
    }
  };
}

/** Those that had no place keep their turn. */
function putFirst(left: ReadonlySet<Uuid>, again: Set<Uuid>): void {
  if (left.size === 0) return;
  const others = [...again];
  again.clear();
  for (const realm of [...left, ...others]) again.add(realm);
}

/** Answers whether there was a place for all of them. `pass` is told each one for which there was. */
function walkOver<T extends Standing>(
  standings: readonly T[],
  begin: Begin,
  length: PageLength,
  pass: (standing: T) => void,
): boolean {
  for (const standing of standings) {
    if (!beginFresh(begin, standing)) {
      length.stopped();
      return false;
    }
    pass(standing);
  }
  length.walked();
  return true;
}

/** What was not received has its own time. */
function beginFresh(begin: Begin, standing: Standing): boolean {
  return standing.nextAt > 0 || begin(standing);
}

/** A walk over clocks that moved. One look may not come to its end: the next one goes on with it. */
interface Pass {
  at: MovedPlace;
  /** Where the next one begins: up to there nothing becomes visible any more of which this one has not come by. */
  upTo: number;
  /** What it comes by beyond is for the next one. */
  end: number;
}

function passFrom(moved: number): Pass {
  return { at: { moved, realm: NIL_UUID }, upTo: Number.POSITIVE_INFINITY, end: Number.NEGATIVE_INFINITY };
}

/** What was written lately. A transaction that is under way for long has all that came after it walked over again. */
function openMoved({ rooms, webhookId }: Line) {
  const { store, ambient } = rooms;
  const length = openPageLength();
  let pass: Pass | undefined;

  /** Answers undefined where there is more behind the place that it came to. */
  async function page(begin: Begin, from: Pass): Promise<boolean | undefined> {
    const most = length.most();
    const { rows, upTo, end } = await store.moved(webhookId, from.at, most);
    // Those of its beginning.
    if (from.upTo === Number.POSITIVE_INFINITY) Object.assign(from, { upTo, end });
    const isWalked = walkOver(rows, begin, length, (standing) => {
      from.at = standing;
    });
    const isThrough = isWalked && rows.length < most;
    // Also where it was stopped: what became visible behind it meanwhile is for the next one.
    if (isThrough || from.at.moved >= from.end) pass = passFrom(from.upTo);
    if (isThrough) return true;
    return isWalked ? undefined : false;
  }

  return {
    async begin() {
      pass ??= passFrom(await store.movedUpTo());
    },
    async look(beginner: () => Begin): Promise<boolean> {
      const until = ambient.monotonic() + LIMITS.webhookLookMsMax;
      while (pass && ambient.monotonic() < until) {
        const isThrough = await page(beginner(), pass);
        if (isThrough !== undefined) return isThrough;
        await nextTurn();
      }
      return true;
    },
    restart() {
      pass = undefined;
    },
  };
}

/** Everything, from the start and then now and then. */
function openSweep({ rooms, webhookId, webhook }: Line) {
  const { store, ambient } = rooms;
  const length = openPageLength();
  let after: Uuid | undefined = NIL_UUID;
  let dueAt = ambient.monotonic();
  let listed: readonly Uuid[] | undefined;

  /** Some realms, and the place that they reach to; undefined where there are no more behind them. */
  async function page(
    behind: Uuid,
  ): Promise<{ readonly standings: readonly Standing[]; readonly end: Uuid | undefined }> {
    const most = length.most();
    const { realms } = webhook();
    if (realms === '*') {
      const standings = await store.standingsBehind(webhookId, behind, most);
      return { standings, end: standings[most - 1]?.realm };
    }
    listed ??= [...realms].sort();
    const some = listed.filter((realm) => realm > behind).slice(0, most);
    // Some of them may have no clock yet.
    return { standings: await store.standingsOf(webhookId, some), end: some[most - 1] };
  }

  /** Answers whether there was a place for all of them; where there was none, the next page begins there. */
  async function walk(begin: Begin, behind: Uuid): Promise<boolean> {
    const { standings, end } = await page(behind);
    const isWalked = walkOver(standings, begin, length, ({ realm }) => {
      after = realm;
    });
    if (!isWalked) return false;
    after = end;
    if (end === undefined) dueAt = ambient.monotonic() + LIMITS.webhookSweepMs;
    return true;
  }

  return {
    async look(beginner: () => Begin): Promise<boolean> {
      const end = ambient.monotonic() + LIMITS.webhookLookMsMax;
      if (ambient.monotonic() >= dueAt) after ??= NIL_UUID;
      while (after !== undefined && ambient.monotonic() < end) {
        if (!(await walk(beginner(), after))) return false;
        await nextTurn();
      }
      return true;
    },
    restart() {
      after = NIL_UUID;
      listed = undefined;
    },
  };
}

interface PageLength {
  most(): number;
  /** One of them found no place. */
  stopped(): void;
  /** There was a place for a whole page. */
  walked(): void;
}

/**
 * How many realms are read at once: as many as there are places, where one of them found none the last time, because those
 * behind it are read again; twice as many after each page for which there was a place.
 */
function openPageLength(): PageLength {
  let most: number = LIMITS.webhookClocksAtOnce;
  return {
    most: () => most,
    stopped() {
      most = LIMITS.webhookRealmsAtOnceMax;
    },
    walked() {
      most = Math.min(2 * most, LIMITS.webhookClocksAtOnce);
    },
  };
}

function nextTurn(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}
