import type { Uuid } from '../../domain/id.ts';
import {
  type AnyRecord,
  isVisible,
  type Key,
  type Member,
  membersOf,
  type Resource,
} from '../../domain/resource.ts';
import { selfLinkTexts } from './links.ts';

/** Moves when the bytes of an unchanged record would: part of every ETag. */
const REPRESENTATION_VERSION = 1;

/** Writes the body of a single record. Built once per resource; running it only joins strings. */
export type Presenter = (record: AnyRecord, key: Key) => string;

/** A piece of a body: text that is always the same, or what a record says. */
type Piece = string | Presenter;

/**
 * The body of one record: `data` with exactly the members of its description that callers may see, and `links` beside it
 * (contract 2; the seed's tables for the two profile infos). `installation` is STORE of contract 8, row 31.
 */
export function presenterOf(resource: Resource, baseUrl: string, installation: string): Presenter {
  return joining([
    '{"data":',
    ...object(dataOf(resource, [])),
    ',"links":',
    ...object(linksOf(resource, baseUrl, installation)),
    '}',
  ]);
}

/** What decides how the items of a list are written, beside their resource. */
export interface ItemContext {
  readonly baseUrl: string;
  readonly installation: string;
  /** Items of a whole realm say whose they are. */
  readonly includesParent: boolean;
}

/** An item of a list: the members of the single record with its links among them, each versioned (contract 3.2). */
export function itemPresenterOf(
  resource: Resource,
  { baseUrl, installation, includesParent }: ItemContext,
): Presenter {
  const relationships = includesParent && resource.parent ? [parentOf(resource.parent)] : [];
  const links = linksOf({ ...resource, selfPrefix: '/v2' }, baseUrl, installation);
  return joining(object([...dataOf(resource, relationships), ...nested('links', links)]));
}

function dataOf(resource: Resource, relationships: readonly Piece[][]): Piece[][] {
  const visible = membersOf(resource).filter(isVisible);
  const within = (place: Member['placement']['within']) =>
    members(visible.filter(({ placement }) => placement.within === place));
  return [
    ['"id":"', ({ id }) => id, `","type":${JSON.stringify(resource.type)}`],
    ...within(undefined),
    ...nested('relationships', [...within('relationships'), ...relationships]),
    ...nested('meta', [...within('meta'), ['"created_at":"', stamps, '"']]),
  ];
}

/** The record right above, as a relationship named after its type. */
function parentOf({ type }: Resource): Piece[] {
  return [`"${type}":{"data":{"id":"`, (_, key) => key.at(-2) ?? '', `","type":"${type}"}}`];
}

function linksOf(resource: Resource, baseUrl: string, installation: string): Piece[][] {
  const self = selfLinkTexts(resource, baseUrl).flatMap((text, depth): Piece[] => [
    text,
    (_, key) => key[depth] ?? '',
  ]);
  const more = Object.entries(resource.moreLinks ?? {}).map(([name, link]) => [
    `"${name}":"`,
    ...moreLinkPieces(baseUrl + link, installation),
    '"',
  ]);
  return [['"self":"', ...self, '"'], ...more];
}

/** The pieces of a further link: what stands in braces is said by the record, or by this installation. */
function moreLinkPieces(link: string, installation: string): Piece[] {
  const said: Readonly<Record<string, Piece>> = {
    '{store}': installation,
    '{realm}': (_, key) => key[0],
    '{id}': ({ id }) => id,
  };
  return link.split(/(\{\w+\})/).map((text) => said[text] ?? text);
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
  const created = isoTimestamp(created_at);
  const updated = updated_at === created_at ? created : isoTimestamp(updated_at);
  return `${created}","updated_at":"${updated}`;
}

/** ISO 8601 in UTC with exactly three decimals and `Z`. */
export function isoTimestamp(milliseconds: number): string {
  return new Date(milliseconds).toISOString();
}

type Revised = Pick<AnyRecord, 'revision'> & Readonly<Record<string, unknown>>;

/**
 * Makes strong ETags: the record's stored random revision, joined with a digest of what else decides the bytes. No
 * value of the record takes part.
 */
export function etags(baseUrl: string): (record: Revised) => string {
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
export function matchesEtag(header: string, etag: string): boolean {
  if (header === etag || header.trim() === '*') return true;
  return header.split(',').some((part) => part.trim().replace(/^W\//, '') === etag);
}
