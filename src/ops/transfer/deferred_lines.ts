import { LIMITS } from '../../model/limits.ts';
import type { Load } from '../../model/store.ts';
import type { SourceLine } from './line_reader.ts';

/** A line that the import did not write, and why. */
export interface RejectedLine {
  readonly line: number;
  readonly reason: string;
}

/** A line whose parent or profile does not exist yet. Its bytes are its own copy. */
export interface DeferredLine extends RejectedLine {
  readonly source: SourceLine;
}

/** Lines that are tried again at the end of an import, bounded in number and bytes. */
export function openDeferredLines() {
  const lines: DeferredLine[] = [];
  let bytes = 0;
  /** For each record of a deferred line: the last line about it that was imported, 0 for none. */
  const lastDoneLine = new Map<string, number>();

  return {
    list: (): readonly DeferredLine[] => lines,
    /** Removes and returns all of them. */
    takeAll(): readonly DeferredLine[] {
      bytes = 0;
      return lines.splice(0);
    },
    /** Defers a line, or returns its rejection where there are too many. */
    defer(source: SourceLine, write: Load['write'], reason: string): RejectedLine | undefined {
      const line = source.number;
      const size = source.bytes?.length ?? 0;
      if (lines.length >= LIMITS.importDeferredLinesMax || bytes + size > LIMITS.importDeferredBytesMax) {
        return { line, reason: `${reason}, and too many earlier lines wait for a missing record` };
      }
      const name = recordName(write);
      if (!lastDoneLine.has(name)) lastDoneLine.set(name, 0);
      lines.push({ line, reason, source: { ...source, bytes: source.bytes?.slice() } });
      bytes += size;
      return undefined;
    },
    /** Records that a line was imported. */
    markDone(write: Load['write'], line: number): void {
      const last = lastDoneLine.get(recordName(write));
      if (last !== undefined) lastDoneLine.set(recordName(write), Math.max(last, line));
    },
    /** Whether this line was deferred, and a later line about the same record was imported. */
    isSuperseded: (write: Load['write'], line: number): boolean =>
      (lastDoneLine.get(recordName(write)) ?? 0) > line,
  };
}

/** A name of the record in maps. */
export function recordName({ resource, key }: Pick<Load['write'], 'resource' | 'key'>): string {
  return `${resource.table} ${key.join(' ')}`;
}
