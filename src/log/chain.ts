import type { Uuid } from '../model/id.ts';
import type { LogKeys } from './keys.ts';

export type EntryValue = string | number | Uint8Array | null;

/**
 * The position of a chain: the last tagged sequence number, its tag, and the number of entries ever tagged.
 */
export interface ChainLink {
  readonly seq: number;
  readonly tag: Uint8Array;
  readonly entries: number;
}

/** The authenticated start of a chain: it cannot be moved without the keys. */
export interface Anchor extends ChainLink {
  readonly mac: Uint8Array;
}

/** The columns of an entry without its tag, in the order in which they are stored and tagged. */
export type EntryColumns = readonly EntryValue[];

export type Chain = ReturnType<typeof resumeChain>;

/** Resumes a hash chain after a link, to add entries to it. */
export function resumeChain(keys: Pick<LogKeys, 'tag'>, link: ChainLink) {
  const { seq, tag, entries } = link;
  const chain = {
    seq,
    tag,
    entries,
    /** Tags the next entry and returns its tag. */
    next(place: number, columns: EntryColumns): Uint8Array {
      chain.seq = place;
      chain.tag = keys.tag(chain.tag, entryText(columns));
      chain.entries += 1;
      return chain.tag;
    },
    /** Continues with this tag for the last entry, so that verification can find further errors. */
    continueFrom(other: Uint8Array): void {
      chain.tag = other;
    },
  };
  return chain;
}

/** Starts a chain whose first entry follows this position. */
export function startChain(keys: LogKeys, log: Uuid, seq: number) {
  const link: ChainLink = { seq, tag: keys.anchor(JSON.stringify(['begin', log, seq])), entries: 0 };
  return { chain: resumeChain(keys, link), anchor: sealAnchor(keys, log, link) };
}

/** Authenticates the position where a chain begins from now on. */
export function sealAnchor(keys: Pick<LogKeys, 'anchor'>, log: Uuid, link: ChainLink): Anchor {
  return { ...link, mac: keys.anchor(anchorText(log, link)) };
}

export function isAnchorValid(keys: Pick<LogKeys, 'anchor'>, log: Uuid, { mac, ...link }: Anchor): boolean {
  return Buffer.compare(keys.anchor(anchorText(log, link)), mac) === 0;
}

/** Whether no entry was ever removed from this chain by retention: its anchor is its start. */
export function isChainStart(keys: Pick<LogKeys, 'anchor'>, log: Uuid, { seq, tag }: ChainLink): boolean {
  return Buffer.compare(keys.anchor(JSON.stringify(['begin', log, seq])), tag) === 0;
}

function anchorText(log: Uuid, { seq, tag, entries }: ChainLink): string {
  return JSON.stringify(['anchor', log, seq, Buffer.from(tag).toString('hex'), entries]);
}

/** The tagged text of an entry: its columns as JSON. Bytes are a list, so that a text in their place is another entry. */
function entryText(columns: EntryColumns): string {
  return JSON.stringify(columns.map((value) => (value instanceof Uint8Array ? [value.toHex()] : value)));
}
