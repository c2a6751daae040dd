import { Refusal } from '../../model/fault.ts';
import type { Uuid } from '../../model/id.ts';
import { LIMITS } from '../../model/limits.ts';
import type { Member, Resource } from '../../model/resource.ts';
import { RESOURCES } from '../../model/resources.ts';
import type { KeyedRecord, RecordSnapshot, ScanPosition } from '../../model/store.ts';
import { membersWithin, type OpenSecret, parentFields, secretLocation } from '../../records/format.ts';

export interface ExportOptions {
  readonly snapshot: RecordSnapshot;
  /** Only this realm; undefined for all. */
  readonly within: Uuid | undefined;
  /** Decrypts secrets; without it no line holds a secret or a hash. */
  readonly open: OpenSecret | undefined;
  /** Ends the export after the current write. */
  readonly signal: AbortSignal;
  /** Writes lines, each with its newline. */
  write(lines: string): Promise<void>;
  /** Called after every write with the number of records written. */
  onProgress(records: number): void;
}

export const EXPORT_START: ScanPosition = { realm: '', id: '' };

/**
 * Writes every record of a snapshot as a line that `import` reads: parents first, then in the order of their keys, so that
 * the same records produce the same bytes. Lines have no revision: it belongs to the stored row, and each write creates a
 * new one. Returns the number of lines.
 */
export async function exportRecords(plan: ExportOptions): Promise<number> {
  let records = 0;
  for (const resource of RESOURCES) {
    const lineOf = lineWriter(resource, plan.open);
    for (let after: ScanPosition | undefined = EXPORT_START; after !== undefined; ) {
      if (plan.signal.aborted) return records;
      const page: readonly KeyedRecord[] = await plan.snapshot.scan(
        resource,
        after,
        LIMITS.exportPageRecords,
        plan.within,
      );
      if (page.length > 0) await plan.write(page.map(lineOf).join(''));
      records += page.length;
      plan.onProgress(records);
      const last = page.length < LIMITS.exportPageRecords ? undefined : page.at(-1);
      after = last && { realm: last.key[0], id: last.record.id };
    }
  }
  return records;
}

type LineObject = Record<string, unknown>;

/** Creates the line writer of a resource: the members that a read returns, and the IDs of its parents. */
function lineWriter(resource: Resource, open: OpenSecret | undefined): (stored: KeyedRecord) => string {
  const parents = parentFields(resource);
  const of = (within: 'meta' | 'relationships' | undefined): readonly Member[] =>
    membersWithin(resource, within).filter(({ annotation }) => open !== undefined || !annotation.secret);
  const [plain, related, meta] = [of(undefined), of('relationships'), of('meta')];
  const put = (members: readonly Member[], stored: KeyedRecord, into: LineObject): LineObject => {
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
    for (let at = 0; at < parents.length; at += 1) line[parents[at] as string] = key[at];
    line.id = record.id;
    put(plain, stored, line);
    if (related.length > 0) line.relationships = put(related, stored, {});
    line.meta = put(meta, stored, {});
    Object.assign(line.meta as LineObject, {
      created_at: new Date(record.created_at).toISOString(),
      updated_at: new Date(record.updated_at).toISOString(),
    });
    return `${JSON.stringify(line)}\n`;
  };
}

function opened(resource: Resource, { key, record }: KeyedRecord, name: string, open: OpenSecret): string {
  try {
    return open(secretLocation(resource, name, key), record[name] as Uint8Array);
  } catch (cause) {
    throw new Refusal(
      `${name} of the ${resource.name} ${record.id} cannot be decrypted with this master key: set it again with import ` +
        '--upsert, or export without secrets',
      { cause },
    );
  }
}
