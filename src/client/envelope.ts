import { AuthrealmError } from './error.ts';
import type { WireFormat, WireMember } from './wires.ts';

/** A record of any resource as this library returns it. */
export interface FlatRecord {
  readonly id: string;
  readonly key: readonly string[];
  readonly parent: readonly string[];
  readonly created_at: string;
  readonly updated_at: string;
  readonly links: Readonly<Record<string, string>>;
  readonly [member: string]: unknown;
}

type JsonObject = Readonly<Record<string, unknown>>;

export type Envelope = ReturnType<typeof readMany>;

/** The record of a single-record response. */
export function readSingle(wire: WireFormat, body: unknown, above: readonly string[]): FlatRecord {
  const { data, links } = objectOf(body);
  return flatten(wire, { ...objectOf(data), links }, above);
}

/**
 * The content of a list or search response; `above` are the IDs of its path. In a list of a realm each record names its user.
 * `total`: undefined in a response without one.
 */
export function readMany(wire: WireFormat, body: unknown, above: readonly string[]) {
  const { data, meta, links } = objectOf(body);
  if (!Array.isArray(data)) throw unexpectedResponse();
  const total = objectOr(objectOr(meta).results).total;
  const next = objectOr(links).next;
  return {
    records: data.map((item) => flatten(wire, objectOf(item), above)),
    total: typeof total === 'number' ? total : undefined,
    next: typeof next === 'string' ? next : undefined,
  };
}

/** The responses of a batch of `count` requests, in their order. */
export function readResponses(body: unknown, count: number): readonly JsonObject[] {
  const { responses } = objectOf(body);
  if (!Array.isArray(responses) || responses.length !== count) throw unexpectedResponse();
  return responses.map(objectOf);
}

/** The records below a record in its response, by collection; `key` is that of the record. */
export function readIncluded(
  wires: Readonly<Record<string, WireFormat>>,
  body: unknown,
  key: readonly string[],
): Readonly<Record<string, readonly FlatRecord[]>> {
  // Where no collection is named, the response is the plain record.
  if (Object.keys(wires).length === 0) return {};
  const { included } = objectOf(body);
  // A release without this extension ignores it: no records would look the same.
  if (!Array.isArray(included)) throw new AuthrealmError('the service is too old to include records');
  const items = included.map(objectOf);
  return Object.fromEntries(
    Object.entries(wires).map(([name, wire]) => [
      name,
      items.filter(({ type }) => type === wire.type).map((item) => flatten(wire, item, key)),
    ]),
  );
}

/** The request body of a write, with every member in its place (docs/wire.md#request-bodies). */
export function writeSingle(wire: WireFormat, input: JsonObject): JsonObject {
  const direct = Object.entries(input).filter(([name]) => !wire.placed.some((each) => each.name === name));
  const placed = wire.placed.filter(({ name }) => input[name] !== undefined);
  const holders = Object.fromEntries(
    placed.map(({ within = '' }) => [
      within,
      Object.fromEntries(
        placed.filter((each) => each.within === within).map(({ name }) => [name, input[name]]),
      ),
    ]),
  );
  return { data: { ...Object.fromEntries(direct), ...holders, type: wire.type } };
}

function flatten(wire: WireFormat, data: JsonObject, above: readonly string[]): FlatRecord {
  const { id, meta, links } = data;
  const { created_at, updated_at } = objectOf(meta);
  if (typeof id !== 'string' || typeof created_at !== 'string' || typeof updated_at !== 'string')
    throw unexpectedResponse();
  const parent = [...above, ...ownerIds(wire, data, above)];
  const members = wire.members.map((member) => [member.name, memberOf(member, data)]);
  return {
    ...(Object.fromEntries(members) as JsonObject),
    id,
    key: [...parent, id],
    parent,
    created_at,
    updated_at,
    links: objectOr(links) as Readonly<Record<string, string>>,
  };
}

function memberOf({ name, within, omitted }: WireMember, data: JsonObject): unknown {
  return (within === undefined ? data : objectOr(data[within]))[name] ?? omitted ?? null;
}

/** The user ID of a record in a list or search of a realm, where the path does not contain it. */
function ownerIds(wire: WireFormat, data: JsonObject, above: readonly string[]): readonly string[] {
  if (above.length >= wire.keyNames.length - 1) return [];
  const owner = objectOr(objectOr(objectOr(data.relationships)[wire.parentType ?? '']).data).id;
  if (typeof owner !== 'string') throw unexpectedResponse();
  return [owner];
}

function objectOf(value: unknown): JsonObject {
  if (typeof value !== 'object' || value === null) throw unexpectedResponse();
  return value as JsonObject;
}

function objectOr(value: unknown): JsonObject {
  return typeof value === 'object' && value !== null ? (value as JsonObject) : {};
}

function unexpectedResponse(): AuthrealmError {
  return new AuthrealmError('the response does not come from authrealm: check the URL of the service');
}
