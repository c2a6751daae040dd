import { LIMITS } from '../../model/limits.ts';
import type { Resource } from '../../model/resource.ts';
import { RESOURCES } from '../../model/resources.ts';
import type { Load } from '../../model/store.ts';
import type { SourceLine } from './line_reader.ts';

/** A line that the import did not write, and why. */
export interface RejectedLine {
  readonly line: number;
  readonly reason: string;
}

/** Lines whose parent or profile does not exist yet. They are tried again at the end of an import, and are bounded in number and bytes. */
export function openDeferredLines() {
  /** By their numbers, until they are imported. Their bytes are their own copies. */
  const waiting = new Map<number, { readonly source: SourceLine; readonly resource: Resource }>();
  let bytes = 0;
  let isLastTry = false;
  /** For each record of a deferred line: the last line about it that was imported, 0 for none. */
  const lastDoneLine = new Map<string, number>();

  return {
    numbers: (): Iterable<number> => waiting.keys(),
    /** Returns all of them, parents first. From then on no line is deferred. */
    lastTry(): readonly SourceLine[] {
      isLastTry = true;
      const byResource = Map.groupBy(waiting.values(), ({ resource }) => resource);
      return RESOURCES.flatMap((each) => byResource.get(each) ?? []).map(({ source }) => source);
    },
    /** Defers a line, or returns its rejection. */
    defer(source: SourceLine, write: Load['write'], reason: string): RejectedLine | undefined {
      const line = source.number;
      const size = source.bytes?.length ?? 0;
      if (isLastTry) return { line, reason };
      if (waiting.size >= LIMITS.importDeferredLinesMax || bytes + size > LIMITS.importDeferredBytesMax) {
        return { line, reason: `${reason}, and too many earlier lines wait for a missing record` };
      }
      lastDoneLine.getOrInsert(nameOf(write), 0);
      waiting.set(line, { resource: write.resource, source: { ...source, bytes: source.bytes?.slice() } });
      bytes += size;
      return undefined;
    },
    /** Records that a line was imported. */
    markDone(write: Load['write'], line: number): void {
      waiting.delete(line);
      const last = lastDoneLine.get(nameOf(write));
      if (last !== undefined) lastDoneLine.set(nameOf(write), Math.max(last, line));
    },
    /** Whether this line was deferred, and a later line about the same record was imported. */
    isSuperseded: (write: Load['write'], line: number): boolean =>
      (lastDoneLine.get(nameOf(write)) ?? 0) > line,
  };
}

function nameOf({ resource, key }: Load['write']): string {
  return `${resource.table} ${key.join(' ')}`;
}
