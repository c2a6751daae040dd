import { readLine } from '../audit/checkpoint.ts';
import type { LogKeys } from '../audit/log_keys.ts';
import type { Erasure } from '../domain/erasure.ts';
import { Refusal } from '../domain/fault.ts';
import { type SourceLine as FileLine, splitLines } from '../transfer/line_reader.ts';

/** The erasures of a checkpoint file. */
export interface ErasureList {
  /** The last erasure of each user. */
  readonly erasures: readonly Erasure[];
  /** The numbers of the accepted lines without a valid signature. */
  readonly unsigned: readonly number[];
}

/** How a ledger is read and verified. */
export interface LedgerOptions {
  /** For messages. */
  readonly name: string;
  /** The log keys of the backup; undefined if the backup is older than the audit log. */
  readonly keys: Pick<LogKeys, 'isSigned'> | undefined;
  /** Whether lines that these keys did not sign are accepted. */
  readonly takesUnsigned: boolean;
}

/**
 * Reads the erasures of a ledger. Throws Refusal at the first malformed line, which may be the erasure of a user who must not
 * be restored, and at the first line that the installation of the backup did not sign, which may be forged.
 */
export async function readErasures(
  chunks: AsyncIterable<Uint8Array>,
  { name, keys, takesUnsigned }: LedgerOptions,
): Promise<ErasureList> {
  const found = new Map<string, Erasure>();
  const unsigned: number[] = [];
  const decoder = new TextDecoder();
  const take = ({ number, bytes }: FileLine): void => {
    const line = bytes && readLine(decoder.decode(bytes), keys);
    if (!line || line.kind === 'malformed') throw malformedLine(name, number);
    if (!line.isSigned && !takesUnsigned) throw unsignedLine(name, number, keys !== undefined);
    if (!line.isSigned) unsigned.push(number);
    if (line.kind === 'erasure') keepLast(found, line);
  };
  for await (const lines of splitLines(chunks)) for (const line of lines) take(line);
  return { erasures: [...found.values()], unsigned };
}

/** Adds an erasure unless a later erasure of the same user is present. */
function keepLast(found: Map<string, Erasure>, { realm, user, at }: Erasure): void {
  const place = `${realm} ${user}`;
  const known = found.get(place);
  if (!known || known.at < at) found.set(place, { realm, user, at });
}

function malformedLine(name: string, number: number): Refusal {
  return new Refusal(
    `line ${number} of the ledger ${name} is malformed: it must be a JSON object with kind, and an erasure has ` +
      'realm_id, user_id and at. If a crash truncated it, find the erased user in the audit log, remove ' +
      'or repair the line, and run the same command again. A repaired line is unsigned: see --take-unsigned',
  );
}

function unsignedLine(name: string, number: number, hasKeys: boolean): Refusal {
  const why = hasKeys
    ? 'is not signed by the installation of the backup: it was changed, or another installation wrote it'
    : 'cannot be verified: the backup is older than the audit log and contains no key for it';
  return new Refusal(
    `line ${number} of the ledger ${name} ${why}. Remove lines that do not belong there; if you trust every line, ` +
      '--take-unsigned applies unsigned lines too, and lists them',
  );
}
