import { type Erasure, parseLedgerLine } from '../domain/erasure.ts';
import { Refusal } from '../domain/fault.ts';
import { linesOf } from './lines.ts';

/**
 * The erasures that a ledger tells, of each user the last one. Throws Refusal at a line that was not written whole: it
 * may be the one about somebody who must not come back.
 */
export async function erasuresIn(
  chunks: AsyncIterable<Uint8Array>,
  name: string,
): Promise<readonly Erasure[]> {
  const found = new Map<string, Erasure>();
  const decoder = new TextDecoder();
  for await (const lines of linesOf(chunks)) {
    for (const { number, bytes } of lines) {
      const line = bytes === undefined ? 'malformed' : parseLedgerLine(decoder.decode(bytes));
      if (line === 'malformed') throw malformed(name, number);
      if (line !== 'other') keepLast(found, line);
    }
  }
  return [...found.values()];
}

/** Adds an erasure unless a later one of the same user is there. */
function keepLast(found: Map<string, Erasure>, erasure: Erasure): void {
  const place = `${erasure.realm} ${erasure.user}`;
  const known = found.get(place);
  if (!known || known.at < erasure.at) found.set(place, erasure);
}

function malformed(name: string, number: number): Refusal {
  return new Refusal(
    `line ${number} of the ledger ${name} cannot be read: it must be a JSON object with kind, and an erasure has ` +
      'realm_id, user_id and at. Where a crash cut it, find out from its neighbours or the log who was erased, mend it, ' +
      'and run the same command again',
  );
}
