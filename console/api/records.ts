import { SCHEMA } from 'authrealm:schema';
import type { Description, Field } from '../description.ts';
import { type ApiResponse, callApi, ifMatch } from './call_api.ts';
import type { ListPage, ReadPage } from './list_page.ts';

/** A record, flat, with the member names of its description. */
export interface ApiRecord {
  readonly id: string;
  readonly created_at: string;
  readonly updated_at: string;
  readonly [member: string]: unknown;
}

/** A record with its ETag. */
export interface WithEtag<T = ApiRecord> {
  readonly record: T;
  readonly etag: string | undefined;
}

/** A record as a single answer has it, with its links by name. */
export interface LinkedRecord extends WithEtag {
  readonly links: Readonly<Record<string, string>>;
}

/** Record IDs of a path, realm first. */
export type Key = readonly string[];

type Wire = Readonly<Record<string, unknown>>;

export const RESOURCES = SCHEMA.resources;

/** The path of a record, or of a collection if the key ends above it. */
export function pathOf({ collections }: Description, key: Key): string {
  const steps = collections.flatMap((collection, depth) => {
    const id = key[depth];
    return id === undefined ? [collection] : [collection, encodeURIComponent(id)];
  });
  return `v2/${steps.join('/')}`;
}

export async function readRecord(
  description: Description,
  key: Key,
  signal?: AbortSignal,
): Promise<LinkedRecord> {
  const scope = `${description.scope}:read`;
  return withEtag(description, await callApi({ path: pathOf(description, key), scope, signal }));
}

/** A record with the first page of records below it, by resource, newest first. */
interface RecordIncluding extends WithEtag {
  readonly included: ReadonlyMap<Description, ListPage<ApiRecord>>;
}

/** Reads a record and records of these resources below it in one request. */
export async function readRecordIncluding(
  description: Description,
  key: Key,
  children: readonly Description[],
  signal?: AbortSignal,
): Promise<RecordIncluding> {
  const include = children.map(({ includedAs }) => includedAs).join();
  const path = `${pathOf(description, key)}?${new URLSearchParams({ include })}`;
  const answer = await callApi<IncludingBody>({ path, scope: `${description.scope}:read`, signal });
  const { included = [], links } = answer.body;
  const pageOf = (child: Description): ListPage<ApiRecord> => ({
    items: included.filter(({ type }) => type === child.type).map((data) => parseRecord(child, data)),
    next: cursorOf(links[child.includedAs ?? ''] ?? null, 'page[after]'),
  });
  return {
    ...withEtag(description, answer),
    included: new Map(children.map((child) => [child, pageOf(child)])),
  };
}

interface IncludingBody {
  /** Absent if no kind was named. */
  readonly included?: readonly Wire[];
  readonly links: Readonly<Record<string, string>>;
}

/** `idempotencyKey` is the same for every attempt to create the same record. */
export async function createRecord(
  description: Description,
  parentKey: Key,
  input: Wire,
  idempotencyKey: string,
): Promise<WithEtag> {
  return withEtag(
    description,
    await callApi({
      method: 'POST',
      path: pathOf(description, parentKey),
      headers: { 'Idempotency-Key': idempotencyKey },
      body: bodyOf(description, input),
      scope: `${description.scope}:write`,
    }),
  );
}

/** Updates the version that the ETag names. Throws Problem `stale` if it has changed since. */
export async function updateRecord(
  description: Description,
  key: Key,
  input: Wire,
  etag: string | undefined,
): Promise<WithEtag> {
  return withEtag(
    description,
    await callApi({
      method: 'PUT',
      path: pathOf(description, key),
      headers: ifMatch(etag),
      body: bodyOf(description, input),
      scope: `${description.scope}:write`,
    }),
  );
}

export async function deleteRecord(
  description: Description,
  key: Key,
  etag: string | undefined,
): Promise<void> {
  await callApi({
    method: 'DELETE',
    path: pathOf(description, key),
    headers: ifMatch(etag),
    scope: `${description.scope}:write`,
  });
}

/** The body that writes these members; others of `input` are left out. */
export function bodyOf({ type, fields }: Description, input: Wire): object {
  const data: Record<string, unknown> = { type };
  for (const { name, within } of fields) {
    if (input[name] === undefined) continue;
    if (within === 'relationships') data.relationships = { [name]: input[name] };
    else data[name] = input[name];
  }
  return { data };
}

function withEtag(description: Description, { body, etag }: ApiResponse<unknown>): LinkedRecord {
  const { data, links } = body as { data: Wire; links: LinkedRecord['links'] };
  return { record: parseRecord(description, data), etag, links };
}

/** Reads a record from a response. */
export function parseRecord({ fields }: Description, data: Wire): ApiRecord {
  const meta = (data.meta ?? {}) as Wire;
  const memberOf = ({ name, within }: Field) =>
    within === 'data' ? data[name] : ((data[within] ?? {}) as Wire)[name];
  const shown = fields.filter(({ isShown }) => isShown);
  return {
    // A response may lack a member that has its default.
    ...Object.fromEntries(shown.map((field) => [field.name, memberOf(field) ?? field.fallback ?? null])),
    id: String(data.id),
    created_at: String(meta.created_at),
    updated_at: String(meta.updated_at),
  };
}

interface ListBody<T> {
  readonly data: readonly T[];
  readonly links: { readonly next: string | null };
}

/** Reads a list by cursor: no item appears twice. `given`: further parameters. */
export function itemPages<T>(path: string, scope: string, given: object = {}): ReadPage<T> {
  return async (cursor, signal) => {
    const page = { 'page[limit]': String(SCHEMA.limits.pageRecordsMax), 'page[after]': cursor };
    const query = new URLSearchParams({ ...page, ...given });
    const { body } = await callApi<ListBody<T>>({ path: `${path}?${query}`, signal, scope });
    return { items: body.data, next: cursorOf(body.links.next, 'page[after]') };
  };
}

/** Newest first, or oldest first. */
export type Order = '-created_at' | 'created_at';

export function recordPages(
  description: Description,
  parentKey: Key,
  sort: Order = '-created_at',
): ReadPage<ApiRecord> {
  const read = itemPages<Wire>(pathOf(description, parentKey), `${description.scope}:read`, { sort });
  return async (cursor, signal) => {
    const { items, next } = await read(cursor, signal);
    return { items: items.map((data) => parseRecord(description, data)), next };
  };
}

/** Only the cursor of a link: a response must not decide where the token is sent. */
export function cursorOf(link: string | null, parameter: string): string | undefined {
  if (link === null) return undefined;
  return new URL(link, location.href).searchParams.get(parameter) ?? undefined;
}
