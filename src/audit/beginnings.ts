import { NIL_UUID, type Uuid } from '../domain/id.ts';
import { isBeginning } from './chain.ts';
import type { LogKeys } from './log_keys.ts';
import type { LogHead, LogStore } from './port.ts';
import type { Find, Found } from './walk.ts';

/** Where the log of the installation says that logs began, and what of it is true. */
export interface Beginnings {
  /** Judges a log that is there. */
  judge(head: LogHead, find: Find): void;
  /** The logs that were said to begin, and were not there. */
  missing(): readonly Found[];
}

const PAGE = 1_000;

/** The place that an act names; none where it was edited, which is found elsewhere. */
function placeIn(detail: unknown): number {
  try {
    return Number((JSON.parse(String(detail)) as { readonly after?: unknown }).after);
  } catch {
    return Number.NaN;
  }
}

/** Reads the acts that say where logs began, as far as they are kept. */
export async function readBeginnings(
  store: Pick<LogStore, 'entries' | 'head'>,
  keys: Pick<LogKeys, 'anchor'>,
): Promise<Beginnings> {
  const installation = await store.head(NIL_UUID);
  const anchor = installation?.chain?.anchor;
  const isWhole = anchor !== undefined && isBeginning(keys, NIL_UUID, anchor);
  const begun = new Map<Uuid, number[]>();
  const left = new Set<Uuid>();
  for (let after = anchor?.seq ?? 0; ; ) {
    const entries = await store.entries(NIL_UUID, after, PAGE);
    for (const { columns } of entries) {
      if (columns.action !== 'log.begun') continue;
      const realm = columns.realm_id as Uuid;
      begun.set(realm, [...(begun.get(realm) ?? []), placeIn(columns.detail)]);
      left.add(realm);
    }
    const last = entries.at(-1);
    if (!last) break;
    after = last.seq;
  }
  return {
    judge({ log, chain }, find) {
      if (log === NIL_UUID) return;
      left.delete(log);
      const places = begun.get(log) ?? [];
      if (places.length > 1) find(places[1], `it was begun anew: it began ${places.length} times`);
      if (!chain || !isBeginning(keys, log, chain.anchor)) return;
      const isTold = places.includes(chain.anchor.seq);
      if (!isTold && (places.length > 0 || isWhole)) {
        find(chain.anchor.seq, 'the log of the installation does not say that it began here');
      }
    },
    missing: () =>
      [...left].map((log) => ({
        log,
        seq: begun.get(log)?.[0],
        says: 'this log began, and it is not there',
      })),
  };
}
