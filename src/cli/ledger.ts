import { readLine } from '../audit/checkpoint.ts';
import type { LogKeys } from '../audit/log_keys.ts';
import type { Erasure } from '../domain/erasure.ts';
import { Refusal } from '../domain/fault.ts';
import { type Line as FileLine, linesOf } from '../transfer/line_reader.ts';

/** What a ledger comes to. */
export interface Ledger {
  /** Of each user the last one. */
  readonly erasures: readonly Erasure[];
  /** The numbers of the lines that were taken without a signature. */
  readonly unsigned: readonly number[];
}

/** How a ledger is read. */
export interface LedgerReading {
  /** Its name in what is said about it. */
  readonly name: string;
  /** Those of the log that the backup holds; undefined where it is older than its log. */
  readonly keys: Pick<LogKeys, 'isSigned'> | undefined;
  /** Whether lines are taken that these keys did not sign. */
  readonly takesUnsigned: boolean;
}

/**
 * Reads the erasures of a ledger. Throws Refusal at the first line that was not written whole, or not by the installation of
 * the backup: it may be the one about somebody who must not come back, or one that a stranger put there.
 */
export async function readLedger(
  chunks: AsyncIterable<Uint8Array>,
  { name, keys, takesUnsigned }: LedgerReading,
): Promise<Ledger> {
  const found = new Map<string, Erasure>();
  const unsigned: number[] = [];
  const decoder = new TextDecoder();
  const take = ({ number, bytes }: FileLine): void => {
    const line = bytes && readLine(decoder.decode(bytes), keys);
    if (!line || line.kind === 'malformed') throw malformed(name, number);
    if (!line.isSigned && !takesUnsigned) throw unproven(name, number, keys !== undefined);
    if (!line.isSigned) unsigned.push(number);
    if (line.kind === 'erasure') keepLast(found, line);
  };
  for await (const lines of linesOf(chunks)) for (const line of lines) take(line);
  return { erasures: [...found.values()], unsigned };
}

/** Adds an erasure unless a later one of the same user is there. */
function keepLast(found: Map<string, Erasure>, { realm, user, at }: Erasure): void {
  const place = `${realm} ${user}`;
  const known = found.get(place);
  if (!known || known.at < at) found.set(place, { realm, user, at });
}

function malformed(name: string, number: number): Refusal {
  return new Refusal(
    `line ${number} of the ledger ${name} cannot be read: it must be a JSON object with kind, and an erasure has ` +
      'realm_id, user_id and at. Where a crash cut it, find out from its neighbours or the log who was erased, remove ' +
      'or mend it, and run the same command again. A line that was mended is unsigned: see --take-unsigned',
  );
}

function unproven(name: string, number: number, hasKeys: boolean): Refusal {
  const why = hasKeys
    ? 'is not signed by the installation of the backup: it was changed, or is of another one'
    : 'cannot be verified: the backup is older than the log, and holds no key of it';
  return new Refusal(
    `line ${number} of the ledger ${name} ${why}. Remove what does not belong there; where you know that every line ` +
      'is true, --take-unsigned obeys those without a signature too, and names them',
  );
}
