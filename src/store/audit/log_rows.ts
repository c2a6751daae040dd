import type { EntryValue, StoredEntry } from '../../audit/port.ts';
import type { Long } from '../work.ts';
import { namedColumns } from './log.ts';

/** An entry as an engine answers it. */
export type Row = Readonly<Record<string, EntryValue>> & {
  readonly seq: Long;
  readonly at: Long;
  readonly tag: Uint8Array | null;
};

export function entryFrom({ tag, ...row }: Row): StoredEntry {
  return { seq: Number(row.seq), at: Number(row.at), columns: namedColumns(row), tag };
}
