import { type AnyRecord, type Key, type Member, membersOf, type Resource } from '../domain/resource.ts';
import { selfLinks } from './links.ts';

/** Moves when the bytes of an unchanged record would: part of every ETag. */
const REPRESENTATION_VERSION = 1;

/** Writes the body of a single record. Built once per resource; running it only joins strings. */
export type Presenter = (record: AnyRecord, key: Key) => string;

interface Part {
  readonly before: string;
  readonly write: (record: AnyRecord) => string;
}

/**
 * The body of one record: `data` with exactly the members of its description, secrets left out, and `links.self`
 * (contract 2; the seed's tables for the two profile infos).
 */
export function presenterOf(resource: Resource, baseUrl: string): Presenter {
  const link = selfLinks(resource, baseUrl);
  const visible = membersOf(resource).filter(({ placement }) => !placement.secret);
  const parts = [
    ...members(visible.filter(({ placement }) => !placement.within)),
    ...nested('relationships', visible),
    ...nested('meta', visible, stamps),
  ];
  const head = `{"data":{"id":"`;
  const type = `","type":${JSON.stringify(resource.type)}`;
  return (record, key) => {
    let body = `${head}${record.id}${type}`;
    for (const { before, write } of parts) body += before + write(record);
    return `${body}},"links":{"self":"${link(key)}"}}`;
  };
}

function members(of: readonly Member[]): Part[] {
  return of.map(({ name, placement }) => ({
    before: `,${JSON.stringify(name)}:`,
    // An identifier needs no escaping.
    write: placement.references
      ? (record) => `"${record[name]}"`
      : (record) => JSON.stringify(record[name] ?? null),
  }));
}

const stamps: readonly Part[] = [{ before: ',"created_at":"', write: writeStamps }];

/** Both instants; most records were never changed, and theirs is written once. */
function writeStamps({ created_at, updated_at }: AnyRecord): string {
  const created = instant(created_at);
  const updated = updated_at === created_at ? created : instant(updated_at);
  return `${created}","updated_at":"${updated}"`;
}

/** An object inside `data` that holds those members placed within it, and `more` behind them. */
function nested(
  within: 'meta' | 'relationships',
  visible: readonly Member[],
  more: readonly Part[] = [],
): Part[] {
  const [first, ...rest] = [
    ...members(visible.filter(({ placement }) => placement.within === within)),
    ...more,
  ];
  if (!first) return [];
  const opened = { ...first, before: `,"${within}":{${first.before.slice(1)}` };
  return [opened, ...rest, { before: '}', write: () => '' }];
}

/** ISO 8601 in UTC with exactly three decimals and `Z`. */
export function instant(milliseconds: number): string {
  return new Date(milliseconds).toISOString();
}

/**
 * Makes strong ETags: the record's stored random revision, joined with a digest of what else decides the bytes. No
 * value of the record takes part.
 */
export function etags(baseUrl: string): (record: AnyRecord) => string {
  const digest = new Bun.CryptoHasher('sha256')
    .update(`${baseUrl}\n${REPRESENTATION_VERSION}`)
    .digest('base64url')
    .slice(0, 8);
  return (record) => `"${record.revision}-${digest}"`;
}

/**
 * Whether an If-None-Match header names this ETag (RFC 9110, 13.1.2: weak comparison). Ours holds no comma, so a
 * foreign one that does falls into pieces none of which is ours.
 */
export function isNamedBy(header: string, etag: string): boolean {
  if (header === etag || header.trim() === '*') return true;
  return header.split(',').some((part) => part.trim().replace(/^W\//, '') === etag);
}
