import type { Uuid } from '../domain/id.ts';
import type { LogKeys } from './log_keys.ts';
import type { Anchor, EntryValue, Link } from './port.ts';

/** The columns of an entry, its tag aside, in the order in which they are stored and tagged. */
export type EntryColumns = readonly EntryValue[];

/** A chain that is being added to. */
export interface Chain extends Link {
  /** Tags the entry in the next place, and answers its tag. */
  next(seq: number, columns: EntryColumns): Uint8Array;
  /** Goes on as if the last entry had this tag: for who wants to know what else is wrong. */
  go(tag: Uint8Array): void;
}

/** Goes on from a link. */
export function linkTo(keys: Pick<LogKeys, 'tag'>, link: Link): Chain {
  const { seq, tag, entries } = link;
  const chain = {
    seq,
    tag,
    entries,
    next(place: number, columns: EntryColumns) {
      chain.seq = place;
      chain.tag = keys.tag(chain.tag, textOf(columns));
      chain.entries += 1;
      return chain.tag;
    },
    go(other: Uint8Array) {
      chain.tag = other;
    },
  };
  return chain;
}

/** A chain whose first entry comes behind this place. */
export function beginChain(
  keys: LogKeys,
  log: Uuid,
  seq: number,
): { readonly chain: Chain; readonly anchor: Anchor } {
  const link: Link = { seq, tag: keys.anchor(JSON.stringify(['begin', log, seq])), entries: 0 };
  return { chain: linkTo(keys, link), anchor: anchorAt(keys, log, link) };
}

/** Seals the place where a chain begins from now on. */
export function anchorAt(keys: Pick<LogKeys, 'anchor'>, log: Uuid, link: Link): Anchor {
  return { ...link, mac: keys.anchor(placeOf(log, link)) };
}

export function isAnchor(keys: Pick<LogKeys, 'anchor'>, log: Uuid, { mac, ...link }: Anchor): boolean {
  return Buffer.compare(keys.anchor(placeOf(log, link)), mac) === 0;
}

/** Whether nothing was ever taken off this chain: it begins where it began. */
export function isBeginning(keys: Pick<LogKeys, 'anchor'>, log: Uuid, { seq, tag }: Link): boolean {
  return Buffer.compare(keys.anchor(JSON.stringify(['begin', log, seq])), tag) === 0;
}

function placeOf(log: Uuid, { seq, tag, entries }: Link): string {
  return JSON.stringify(['anchor', log, seq, Buffer.from(tag).toString('hex'), entries]);
}

/** An entry as text: each column, bytes in hex. */
function textOf(columns: EntryColumns): string {
  return JSON.stringify(
    columns.map((value) => (value instanceof Uint8Array ? Buffer.from(value).toString('hex') : value)),
  );
}
