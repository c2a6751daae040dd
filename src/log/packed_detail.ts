import { parseUuid, UUID_BYTES, type Uuid, uuidText, writeUuid } from '../model/id.ts';
import { type Member, membersOf, type Resource } from '../model/resource.ts';

/** The members of a record before and after a change. */
export interface BeforeAndAfter {
  readonly before?: Readonly<Record<string, unknown>> | undefined;
  readonly after?: Readonly<Record<string, unknown>> | undefined;
}

/** A member that the log reports, and its position in the description. */
export type ReportedMember = Pick<Member, 'name'> & { readonly position: number };

/**
 * Some members of a record before and after a write, without names. The first byte is FORMAT, with HAS_BEFORE and HAS_AFTER;
 * then a number whose bits are the positions of the members in the description; then the values before, and those after, in
 * that order. A value is a number that says which kind it is, and its bytes. Numbers are LEB128.
 */
export function packDetail(
  members: readonly ReportedMember[],
  { before, after }: BeforeAndAfter,
): Uint8Array {
  let positions = 0;
  for (const { position } of members) positions |= 1 << position;
  packed.length = 0;
  packNumber(FORMAT | (before ? HAS_BEFORE : 0) | (after ? HAS_AFTER : 0));
  packNumber(positions);
  if (before) for (const { name } of members) packValue(before[name]);
  if (after) for (const { name } of members) packValue(after[name]);
  return Uint8Array.prototype.slice.call(packed.bytes, 0, packed.length);
}

/** The members that were packed. Throws if the bytes were changed, or written by a later release. */
export function unpackDetail(resource: Resource | undefined, bytes: Uint8Array): BeforeAndAfter {
  const reader: ByteReader = { bytes, at: 0 };
  const head = takeByte(reader);
  if ((head & ~(HAS_BEFORE | HAS_AFTER)) !== FORMAT || !resource) throw new Error('the format is not known');
  const members = membersOf(resource);
  const positions = unpackNumber(reader);
  if (positions >>> members.length !== 0) throw new Error('a member is not known');
  const names = members.flatMap(({ name }, position) => ((positions >>> position) & 1 ? [name] : []));
  const unpackVersion = () => {
    const version: Record<string, unknown> = {};
    for (const name of names) version[name] = unpackValue(reader);
    return version;
  };
  const detail = {
    ...(head & HAS_BEFORE ? { before: unpackVersion() } : {}),
    ...(head & HAS_AFTER ? { after: unpackVersion() } : {}),
  };
  if (reader.at < bytes.length) throw new Error('there are more bytes than values');
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

const DECODER = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });

/** The bytes packed so far. Reused, because an import packs millions of details. */
const packed = { bytes: Buffer.alloc(1024), length: 0 };

/** Makes room for more bytes. Returns the position of the first one. */
function reserve(count: number): number {
  const start = packed.length;
  packed.length += count;
  if (packed.length > packed.bytes.length) {
    packed.bytes = Buffer.concat([packed.bytes], packed.length * 2);
  }
  return start;
}

function packValue(value: unknown): void {
  if (value === undefined) packNumber(ABSENT);
  else if (value === null) packNumber(NULL);
  else if (typeof value === 'boolean') packNumber(value ? TRUE : FALSE);
  else if (typeof value !== 'string') {
    packNumber(JSON_VALUE);
    packText(JSON.stringify(value), 0);
  } else if (parseUuid(value) === value) {
    packNumber(UUID);
    const start = reserve(UUID_BYTES);
    writeUuid(value as Uuid, packed.bytes.subarray(start));
  } else packText(value, TEXT);
}

/** Packs the number of bytes of a text, increased by `base`, and its bytes. */
function packText(text: string, base: number): void {
  const length = Buffer.byteLength(text);
  packNumber(base + length);
  const start = reserve(length);
  packed.bytes.write(text, start);
}

function unpackValue(reader: ByteReader): unknown {
  const kind = unpackNumber(reader);
  if (kind >= TEXT) return DECODER.decode(take(reader, kind - TEXT));
  switch (kind) {
    case ABSENT:
      return undefined;
    case NULL:
      return null;
    case FALSE:
    case TRUE:
      return kind === TRUE;
    case UUID:
      return uuidText(take(reader, UUID_BYTES));
    case JSON_VALUE:
      return JSON.parse(DECODER.decode(take(reader, unpackNumber(reader))));
    default:
      throw new Error('the kind of a value is not known');
  }
}

const MORE = 0x80;

function packNumber(value: number): void {
  let rest = value;
  for (; rest >= MORE; rest >>>= 7) packByte((rest & (MORE - 1)) | MORE);
  packByte(rest);
}

function packByte(byte: number): void {
  const at = reserve(1);
  packed.bytes[at] = byte;
}

function unpackNumber(reader: ByteReader): number {
  let value = 0;
  for (let shift = 0; shift < 28; shift += 7) {
    const byte = takeByte(reader);
    value |= (byte & (MORE - 1)) << shift;
    if (byte < MORE) return value;
  }
  throw new Error('a number is too large');
}

/** Bytes, and the position of the next one. */
interface ByteReader {
  readonly bytes: Uint8Array;
  at: number;
}

/** Throws if there are fewer. */
function take(reader: ByteReader, count: number): Uint8Array {
  const start = reader.at;
  if (count > reader.bytes.length - start) throw new Error('the bytes are cut short');
  reader.at += count;
  return reader.bytes.subarray(start, reader.at);
}

const takeByte = (reader: ByteReader) => take(reader, 1)[0] as number;
