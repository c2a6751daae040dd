import { Refusal } from '../../model/fault.ts';
import type { Uuid } from '../../model/id.ts';
import { LIMITS } from '../../model/limits.ts';
import type { Member, Resource } from '../../model/resource.ts';
import { RESOURCES } from '../../model/resources.ts';
import type { KeyedRecord, RecordSnapshot, ScanPosition } from '../../model/store.ts';
import { membersWithin, type OpenSecret, parentFields, secretLocation } from '../../records/format.ts';

export interface ExportOptions {
  readonly snapshot: RecordSnapshot;
  /** Only this realm, or these, one after the other; undefined for all. */
  readonly within: Uuid | readonly Uuid[] | undefined;
  /** Decrypts secrets; without it no line holds a secret or a hash. */
  readonly open: OpenSecret | undefined;
  /** Leaves out members that an import over HTTP refuses. */
  readonly isForHttp?: boolean;
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
    const lineOf = lineMaker(resource, plan);
    for await (const page of scanPages(plan, resource)) {
      const lines = page.map((stored) => `${JSON.stringify(lineOf(stored))}\n`);
      if (page.length > 0) await plan.write(lines.join(''));
      records += page.length;
      plan.onProgress(records);
    }
  }
  return records;
}

/** The pages of a resource, until the signal. */
export async function* scanPages(
  { snapshot, within, signal }: Pick<ExportOptions, 'snapshot' | 'within' | 'signal'>,
  resource: Resource,
): AsyncGenerator<readonly KeyedRecord[]> {
  const limit = LIMITS.exportPageRecords;
  for (const realm of within === undefined ? [undefined] : [within].flat()) {
    for (let after: ScanPosition | undefined = EXPORT_START; after !== undefined && !signal.aborted; ) {
      const page: readonly KeyedRecord[] = await snapshot.scan(resource, after, limit, realm);
      yield page;
      const last = page.length < limit ? undefined : page.at(-1);
      after = last && { realm: last.key[0], id: last.record.id };
    }
  }
}

type LineObject = Record<string, unknown>;

/** Creates the function that makes the lines of a resource: the members that a read returns, and the IDs of its parents. */
export function lineMaker(
  resource: Resource,
  { open, isForHttp = false }: Pick<ExportOptions, 'open' | 'isForHttp'>,
): (stored: KeyedRecord) => LineObject {
  const parents = parentFields(resource);
  const of = (within: 'meta' | 'relationships' | undefined): readonly Member[] =>
    membersWithin(resource, within).filter(({ annotation: { secret, commandOnly } }) =>
      secret ? open !== undefined : !(isForHttp && commandOnly),
    );
  const [plain, related, meta] = [of(undefined), of('relationships'), of('meta')];
  const valuesOf = (members: readonly Member[], stored: KeyedRecord): LineObject =>
    Object.fromEntries(
      members.map(({ name, annotation }) => {
        const value = stored.record[name];
        const isSealed = open !== undefined && annotation.secret === 'sealed' && value !== undefined;
        return [name, isSealed ? opened(resource, stored, name, open) : value];
      }),
    );
  return (stored) => ({
    type: resource.type,
    ...Object.fromEntries(parents.map((name, at) => [name, stored.key[at]])),
    id: stored.record.id,
    ...valuesOf(plain, stored),
    ...(related.length > 0 ? { relationships: valuesOf(related, stored) } : {}),
    meta: {
      ...valuesOf(meta, stored),
      created_at: new Date(stored.record.created_at).toISOString(),
      updated_at: new Date(stored.record.updated_at).toISOString(),
    },
  });
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
