import type { Uuid } from '../../model/id.ts';
import { type AnyRecord, type Key, type Member, type Resource, shownMembers } from '../../model/resource.ts';
import { selfLinkTexts } from './links.ts';

/** Part of every ETag. Increase it when the serialization of an unchanged record changes. */
const REPRESENTATION_VERSION = 1;

/** Serializes a record. Built once per resource; a call only joins strings. */
export type Presenter = (record: AnyRecord, key: Key) => string;

/** A piece of a body: constant text, or a value of the record. */
type Piece = string | Presenter;

export interface LinkContext {
  readonly baseUrl: string;
  /** The ID in further links (docs/wire.md#oidc-profiles). */
  readonly installation: string;
}

/**
 * The body of one record: `data` with exactly the visible members of its description, and `links`
 * (docs/wire.md#record-bodies).
 */
export function presenterOf(resource: Resource, context: LinkContext): Presenter {
  return joinPieces([
    '{"data":',
    ...object(dataOf(resource, [])),
    ',"links":',
    ...object(linksOf(resource, context)),
    '}',
  ]);
}

/** The body of a record with records below it: as above, with the serialized ones in `included`, and with `more` after its own links. */
export function includingPresenterOf(resource: Resource, context: LinkContext) {
  const presentData = joinPieces(object(dataOf(resource, [])));
  const presentLinks = joinPieces(list(linksOf(resource, context)));
  return (record: AnyRecord, key: Key, included: readonly string[], more: readonly string[]): string => {
    const links = [presentLinks(record, key), ...more];
    return `{"data":${presentData(record, key)},"included":[${included.join()}],"links":{${links.join()}}}`;
  };
}

/**
 * An item of a list: the members of the record with its links among them, all with `/v2`
 * (docs/wire.md#self-links). Items of a whole realm name their parent.
 */
export function itemPresenterOf(
  resource: Resource,
  context: LinkContext,
  includesParent: boolean,
): Presenter {
  const relationships = includesParent && resource.parent ? [parentOf(resource.parent)] : [];
  const links = linksOf({ ...resource, selfPrefix: '/v2' }, context);
  return joinPieces(object([...dataOf(resource, relationships), ...nested('links', links)]));
}

function dataOf(resource: Resource, relationships: readonly Piece[][]): Piece[][] {
  const visible = shownMembers(resource);
  const within = (place: Member['annotation']['within']) =>
    members(visible.filter(({ annotation }) => annotation.within === place));
  return [
    ['"id":"', ({ id }) => id, `","type":${JSON.stringify(resource.type)}`],
    ...within(undefined),
    ...nested('relationships', [...within('relationships'), ...relationships]),
    ...nested('meta', [...within('meta'), ['"created_at":"', timestampTexts, '"']]),
  ];
}

/** The parent record, as a relationship named after its type. */
function parentOf({ type }: Resource): Piece[] {
  return [`"${type}":{"data":{"id":"`, (_, key) => key.at(-2) ?? '', `","type":"${type}"}}`];
}

function linksOf(resource: Resource, { baseUrl, installation }: LinkContext): Piece[][] {
  const self = selfLinkTexts(resource, baseUrl).flatMap((text, depth): Piece[] => [
    text,
    (_, key) => key[depth] ?? '',
  ]);
  const more = Object.entries(resource.extraLinks ?? {}).map(([name, link]) => [
    `"${name}":"`,
    ...moreLinkPieces(baseUrl + link, installation),
    '"',
  ]);
  return [['"self":"', ...self, '"'], ...more];
}

/** The pieces of a further link; values of the record or the installation replace its placeholders. */
function moreLinkPieces(link: string, installation: string): Piece[] {
  const values: Readonly<Record<string, Piece>> = {
    '{store}': installation,
    '{realm}': (_, key) => key[0],
    '{id}': ({ id }) => id,
  };
  return link.split(/(\{\w+\})/).map((text) => values[text] ?? text);
}

/** Joins adjacent constant texts once. */
function joinPieces(pieces: readonly Piece[]): Presenter {
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
  const shown: Piece[][] = [];
  for (const { name, annotation } of of) {
    const { references, omittedIf } = annotation;
    const key = JSON.stringify(name);
    // An ID needs no escaping.
    if (references) shown.push([`${key}:"`, (record) => record[name] as Uuid, '"']);
    else if (omittedIf === undefined)
      shown.push([`${key}:`, (record) => JSON.stringify(record[name] ?? null)]);
    // It follows another member, whose pieces it extends: a comma belongs to it.
    else shown.at(-1)?.push((record) => (record[name] === omittedIf ? '' : `,${key}:${record[name]}`));
  }
  return shown;
}

function object(of: readonly Piece[][]): Piece[] {
  return ['{', ...list(of), '}'];
}

function list(of: readonly Piece[][]): Piece[] {
  return of.flatMap((member, index) => (index === 0 ? member : [',', ...member]));
}

/** An object inside `data`; none if it has no members. */
function nested(name: string, of: readonly Piece[][]): Piece[][] {
  return of.length === 0 ? [] : [[`${JSON.stringify(name)}:`, ...object(of)]];
}

/** Both timestamps. Most records were never changed, so theirs is formatted once. */
function timestampTexts({ created_at, updated_at }: AnyRecord): string {
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
 * Makes strong ETags: the record's random revision and a digest of everything else that decides the bytes. They contain no
 * value of the record.
 */
export function etags(baseUrl: string): (record: Revised) => string {
  const digest = new Bun.CryptoHasher('sha256')
    .update(`${baseUrl}\n${REPRESENTATION_VERSION}`)
    .digest('base64url')
    .slice(0, 8);
  return (record) => `"${record.revision}-${digest}"`;
}

/**
 * Whether an If-None-Match header matches this ETag (RFC 9110, 13.1.2: weak comparison). Our ETags contain no comma, so
 * splitting at commas is safe.
 */
export function matchesEtag(header: string, etag: string): boolean {
  if (header === etag || header.trim() === '*') return true;
  return header.split(',').some((part) => part.trim().replace(/^W\//, '') === etag);
}
