import { parseUuid, UUID_BYTES, uuidBytes, uuidText } from '../domain/id.ts';
import { type AnyRecord, membersOf, type Resource } from '../domain/resource.ts';

/** The members of a record before and after a change. */
export interface BeforeAndAfter {
  readonly before?: Readonly<Record<string, unknown>>;
  readonly after?: Readonly<Record<string, unknown>>;
}

/** A record before and after a write. */
export interface RecordVersions {
  readonly before?: AnyRecord | undefined;
  readonly after?: AnyRecord | undefined;
}

/**
 * Some members of a record before and after a write, without names. The first byte is FORMAT, with HAS_BEFORE and HAS_AFTER;
 * then a number whose bits are the positions of the members in the description; then the values before, and those after, in
 * that order. A value is a number that says which kind it is, and its bytes. Numbers are LEB128.
 */
export function packDetail(
  resource: Resource,
  { before, after }: RecordVersions,
  isReported: (member: string) => boolean,
): Uint8Array {
  let positions = 0;
  const names: string[] = [];
  for (const [position, { name }] of membersOf(resource).entries()) {
    if (!isReported(name)) continue;
    positions |= 1 << position;
    names.push(name);
  }
  const versions = [before, after].filter((version) => version !== undefined);
  const head = FORMAT | (before ? HAS_BEFORE : 0) | (after ? HAS_AFTER : 0);
  const parts = [Uint8Array.of(head), packNumber(positions)];
  for (const version of versions) for (const name of names) parts.push(packValue(version[name]));
  return Buffer.concat(parts);
}

/** The members that were packed. Throws if the bytes were changed, or written by a later release. */
export function unpackDetail(resource: Resource | undefined, bytes: Uint8Array): BeforeAndAfter {
  const reader = readerOf(bytes);
  const [head = 0] = reader.take(1);
  if ((head & ~(HAS_BEFORE | HAS_AFTER)) !== FORMAT || !resource) throw new Error('the format is not known');
  const members = membersOf(resource);
  const positions = unpackNumber(reader);
  if (positions >>> members.length !== 0) throw new Error('a member is not known');
  const names = members.flatMap(({ name }, position) => ((positions >>> position) & 1 ? [name] : []));
  const unpackVersion = () => Object.fromEntries(names.map((name) => [name, unpackValue(reader)]));
  const detail = {
    ...(head & HAS_BEFORE ? { before: unpackVersion() } : {}),
    ...(head & HAS_AFTER ? { after: unpackVersion() } : {}),
  };
  if (reader.left() > 0) throw new Error('there are more bytes than values');
  return detail;
}

const FORMAT = 0b100;
const HAS_BEFORE = 0b01;
const HAS_AFTER = 0b10;

/** The kinds of values. Numbers from TEXT on are texts of so many bytes. */
const ABSENT = 0;
const NULL = 1;
const FALSE = 2;
const TRUE = 3;
const UUID = 4;
/** JSON of so many bytes as the number after it. */
const JSON_VALUE = 5;
const TEXT = 8;

const ENCODER = new TextEncoder();
const DECODER = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });

function packValue(value: unknown): Uint8Array {
  if (value === undefined) return Uint8Array.of(ABSENT);
  if (value === null) return Uint8Array.of(NULL);
  if (typeof value === 'boolean') return Uint8Array.of(value ? TRUE : FALSE);
  if (typeof value !== 'string') {
    const json = ENCODER.encode(JSON.stringify(value));
    return Buffer.concat([Uint8Array.of(JSON_VALUE), packNumber(json.length), json]);
  }
  if (parseUuid(value) === value) return Buffer.concat([Uint8Array.of(UUID), uuidBytes(value)]);
  const text = ENCODER.encode(value);
  return Buffer.concat([packNumber(TEXT + text.length), text]);
}

function unpackValue(reader: ByteReader): unknown {
  const kind = unpackNumber(reader);
  if (kind >= TEXT) return DECODER.decode(reader.take(kind - TEXT));
  switch (kind) {
    case ABSENT:
      return undefined;
    case NULL:
      return null;
    case FALSE:
    case TRUE:
      return kind === TRUE;
    case UUID:
      return uuidText(reader.take(UUID_BYTES));
    case JSON_VALUE:
      return JSON.parse(DECODER.decode(reader.take(unpackNumber(reader))));
    default:
      throw new Error('the kind of a value is not known');
  }
}

const MORE = 0x80;

function packNumber(value: number): Uint8Array {
  const bytes: number[] = [];
  let rest = value;
  for (; rest >= MORE; rest >>>= 7) bytes.push((rest & (MORE - 1)) | MORE);
  return Uint8Array.of(...bytes, rest);
}

function unpackNumber(reader: ByteReader): number {
  let value = 0;
  for (let shift = 0; shift < 28; shift += 7) {
    const [byte = 0] = reader.take(1);
    value |= (byte & (MORE - 1)) << shift;
    if (byte < MORE) return value;
  }
  throw new Error('a number is too large');
}

/** Takes bytes in their order. */
interface ByteReader {
  /** Throws if there are fewer. */
  take(count: number): Uint8Array;
  left(): number;
}

function readerOf(bytes: Uint8Array): ByteReader {
  let at = 0;
  return {
    take(count) {
      if (count > bytes.length - at) throw new Error('the bytes are cut short');
      at += count;
      return bytes.subarray(at - count, at);
    },
    left: () => bytes.length - at,
  };
}
