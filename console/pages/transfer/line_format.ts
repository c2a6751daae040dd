import { type ApiRecord, type Key, RESOURCES } from '../../api/records.ts';
import type { Description, Field } from '../../description.ts';

/** The line format of `authrealm export`, as far as the API reads and writes its members. */

/** Parents before children: the order of creation. */
export const IMPORT_ORDER: readonly Description[] = Object.values(RESOURCES);

const BY_TYPE = new Map(IMPORT_ORDER.map((description) => [description.type, description]));

/** Why a line is invalid; contains no value of the line. */
export class LineError extends Error {}

/** A parsed line. */
export interface ReadLine {
  readonly description: Description;
  /** The ID in the file. */
  readonly id: string;
  readonly parentKey: Key;
  /** The writable members. */
  readonly input: Readonly<Record<string, unknown>>;
  readonly members: JsonObject;
}

type JsonObject = Readonly<Record<string, unknown>>;

const UTF8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });

/** Throws LineError. `bytes` is undefined for an oversized line. */
export function readLine(bytes: Uint8Array | undefined): ReadLine {
  if (bytes === undefined) throw new LineError('exceeds the maximum line length');
  const line = objectOf(parsed(decoded(bytes)), 'the line');
  const description = BY_TYPE.get(String(line.type));
  if (!description) throw new LineError(`type: must be one of ${[...BY_TYPE.keys()].join(', ')}`);
  const members = flattened(line, description);
  const input = description.fields.flatMap(({ name, writableBy }) =>
    writableBy === 'none' || members[name] === undefined ? [] : [[name, members[name]] as const],
  );
  return {
    description,
    id: idOf(line, 'id'),
    parentKey: description.namesAbove.map((name) => idOf(line, name)),
    input: Object.fromEntries(input),
    members,
  };
}

function decoded(bytes: Uint8Array): string {
  try {
    return UTF8.decode(bytes);
  } catch {
    throw new LineError('is not UTF-8');
  }
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    throw new LineError('is not JSON');
  }
}

function objectOf(value: unknown, name: string): JsonObject {
  if (typeof value === 'object' && value !== null && !Array.isArray(value)) return value as JsonObject;
  throw new LineError(`${name}: must be a JSON object`);
}

function flattened(line: JsonObject, { fields }: Description): JsonObject {
  const holderOf = (within: Field['within']): JsonObject => {
    if (within === 'data') return line;
    return line[within] === undefined || line[within] === null ? {} : objectOf(line[within], within);
  };
  return Object.fromEntries(fields.map(({ name, within }) => [name, holderOf(within)[name]]));
}

const UUID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i;

function idOf(line: JsonObject, name: string): string {
  const raw = line[name];
  if (raw === undefined) throw new LineError(`${name}: is missing`);
  if (typeof raw === 'string' && UUID.test(raw)) return raw.toLowerCase();
  throw new LineError(`${name}: must be the identifier of a record`);
}

/** The export line of a record, with its newline. */
export function lineOf({ type, namesAbove, fields }: Description, parentKey: Key, record: ApiRecord): string {
  const of = (wanted: Field['within']) =>
    fields.flatMap(({ name, within, isShown, isNullable }) => {
      const isThere = record[name] !== null || isNullable;
      return within === wanted && isShown && isThere ? [[name, record[name]] as const] : [];
    });
  const related = of('relationships');
  const line = {
    type,
    ...Object.fromEntries(namesAbove.map((name, depth) => [name, parentKey[depth]])),
    id: record.id,
    ...Object.fromEntries(of('data')),
    ...(related.length > 0 ? { relationships: Object.fromEntries(related) } : {}),
    meta: {
      ...Object.fromEntries(of('meta')),
      ...{ created_at: record.created_at, updated_at: record.updated_at },
    },
  };
  return `${JSON.stringify(line)}\n`;
}
