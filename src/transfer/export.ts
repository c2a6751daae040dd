import { membersWithin, type OpenSecret, parentFields, secretLocation } from '../directory/format.ts';
import type { RecordSnapshot, ScanPosition, StoredRecord } from '../directory/store.ts';
import { Refusal } from '../domain/fault.ts';
import type { Uuid } from '../domain/id.ts';
import { LIMITS } from '../domain/limits.ts';
import type { Member, Resource } from '../domain/resource.ts';
import { RESOURCES } from '../domain/resources.ts';

export interface ExportOptions {
  readonly picture: RecordSnapshot;
  /** Only this realm, where it is given. */
  readonly within: Uuid | undefined;
  /** Opens sealed secrets; without it no line holds a secret or a hash. */
  readonly open: OpenSecret | undefined;
  /** Ends the export after the lines that are under way. */
  readonly signal: AbortSignal;
  /** Takes lines, each with its newline. */
  write(lines: string): Promise<void>;
  /** Told after every write, with how many records were written. */
  onProgress(records: number): void;
}

const BEGINNING: ScanPosition = { realm: '', id: '' };

/**
 * Writes every record of a picture as a line that `import` reads: parents first, then in the order of their keys, so
 * that the same records are the same bytes. The revision stays behind: it is the version of a stored row, minted anew
 * by whoever writes one, and no part of the record. Answers how many lines were written.
 */
export async function exportRecords(plan: ExportOptions): Promise<number> {
  let records = 0;
  for (const resource of RESOURCES) {
    const lineOf = lineWriter(resource, plan.open);
    for (let after: ScanPosition | undefined = BEGINNING; after !== undefined; ) {
      if (plan.signal.aborted) return records;
      const page: readonly StoredRecord[] = await plan.picture.scan(
        resource,
        after,
        LIMITS.exportPageRecords,
        plan.within,
      );
      if (page.length > 0) await plan.write(page.map(lineOf).join(''));
      records += page.length;
      plan.onProgress(records);
      after = page.length < LIMITS.exportPageRecords ? undefined : lastPosition(page);
    }
  }
  return records;
}

function lastPosition(page: readonly StoredRecord[]): ScanPosition | undefined {
  const last = page.at(-1);
  return last && { realm: last.key[0], id: last.record.id };
}

/** The whole work of an export in records, for those who want to show how far it is. */
export async function countRecords(picture: RecordSnapshot, within: Uuid | undefined): Promise<number> {
  let total = 0;
  for (const resource of RESOURCES) total += await picture.count(resource, within);
  return total;
}

type LineObject = Record<string, unknown>;

/** Makes the writer of a resource's lines: the members that a read answers, and those that name the records above. */
function lineWriter(resource: Resource, open: OpenSecret | undefined): (stored: StoredRecord) => string {
  const above = parentFields(resource);
  const of = (within: 'meta' | 'relationships' | undefined): readonly Member[] =>
    membersWithin(resource, within).filter(({ annotation }) => open !== undefined || !annotation.secret);
  const [plain, related, meta] = [of(undefined), of('relationships'), of('meta')];
  const put = (members: readonly Member[], stored: StoredRecord, into: LineObject): LineObject => {
    for (const { name, annotation } of members) {
      const value = stored.record[name];
      const isSealed = open !== undefined && annotation.secret === 'sealed' && value !== undefined;
      into[name] = isSealed ? opened(resource, stored, name, open) : value;
    }
    return into;
  };
  return (stored) => {
    const { key, record } = stored;
    const line: LineObject = { type: resource.type };
    for (let at = 0; at < above.length; at += 1) line[above[at] as string] = key[at];
    line.id = record.id;
    put(plain, stored, line);
    if (related.length > 0) line.relationships = put(related, stored, {});
    line.meta = put(meta, stored, {});
    Object.assign(line.meta as LineObject, {
      created_at: instant(record.created_at),
      updated_at: instant(record.updated_at),
    });
    return `${JSON.stringify(line)}\n`;
  };
}

/** ISO 8601 in UTC with exactly three decimals and `Z`: what `import` takes and a read answers. */
function instant(milliseconds: number): string {
  return new Date(milliseconds).toISOString();
}

function opened(resource: Resource, { key, record }: StoredRecord, name: string, open: OpenSecret): string {
  try {
    return open(secretLocation(resource, name, key), record[name] as Uint8Array);
  } catch (cause) {
    throw new Refusal(
      `${name} of the ${resource.name} ${record.id} does not open with this master key: enter it again by import ` +
        '--upsert, or export without secrets',
      { cause },
    );
  }
}
