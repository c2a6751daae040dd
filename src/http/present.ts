import type { Uuid } from '../domain/id.ts';
import { type AnyRecord, type Key, type Member, membersOf, type Resource } from '../domain/resource.ts';
import { selfLinkTexts } from './links.ts';

/** Moves when the bytes of an unchanged record would: part of every ETag. */
const REPRESENTATION_VERSION = 1;

/** Writes the body of a single record. Built once per resource; running it only joins strings. */
export type Presenter = (record: AnyRecord, key: Key) => string;

/** A piece of a body: text that is always the same, or what a record says. */
type Piece = string | Presenter;

/**
 * The body of one record: `data` with exactly the members of its description, secrets left out, and `links.self`
 * (contract 2; the seed's tables for the two profile infos).
 */
export function presenterOf(resource: Resource, baseUrl: string): Presenter {
  const visible = membersOf(resource).filter(({ placement }) => !placement.secret);
  const within = (place: Member['placement']['within']) =>
    members(visible.filter(({ placement }) => placement.within === place));
  return joining([
    '{"data":',
    ...object([
      ['"id":"', ({ id }) => id, `","type":${JSON.stringify(resource.type)}`],
      ...within(undefined),
      ...nested('relationships', within('relationships')),
      ...nested('meta', [...within('meta'), ['"created_at":"', stamps, '"']]),
    ]),
    ',"links":{"self":"',
    ...selfLinkTexts(resource, baseUrl).flatMap((text, depth) => [
      text,
      (_: AnyRecord, key: Key) => key[depth] ?? '',
    ]),
    '"}}',
  ]);
}

/** Joins what is always the same once and for all. */
function joining(pieces: readonly Piece[]): Presenter {
  let head = '';
  const steps: { readonly value: Presenter; text: string }[] = [];
  for (const piece of pieces) {
    const last = steps.at(-1);
    if (typeof piece !== 'string') steps.push({ value: piece, text: '' });
    else if (last) last.text += piece;
    else head += piece;
  }
  return (record, key) => {
    let body = head;
    for (const { value, text } of steps) body = `${body}${value(record, key)}${text}`;
    return body;
  };
}

function members(of: readonly Member[]): Piece[][] {
  return of.map(({ name, placement }) =>
    // An identifier needs no escaping.
    placement.references
      ? [`${JSON.stringify(name)}:"`, (record) => record[name] as Uuid, '"']
      : [`${JSON.stringify(name)}:`, (record) => JSON.stringify(record[name] ?? null)],
  );
}

function object(of: readonly Piece[][]): Piece[] {
  return ['{', ...of.flatMap((member, index) => (index === 0 ? member : [',', ...member])), '}'];
}

/** An object inside `data`, where any member belongs there. */
function nested(name: string, of: readonly Piece[][]): Piece[][] {
  return of.length === 0 ? [] : [[`${JSON.stringify(name)}:`, ...object(of)]];
}

/** Both instants; most records were never changed, and theirs is written once. */
function stamps({ created_at, updated_at }: AnyRecord): string {
  const created = instant(created_at);
  const updated = updated_at === created_at ? created : instant(updated_at);
  return `${created}","updated_at":"${updated}`;
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
