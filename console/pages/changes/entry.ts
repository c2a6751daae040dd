import { callApi } from '../../api/call_api.ts';
import type { ListPage } from '../../api/list_page.ts';
import { cursorOf, RESOURCES } from '../../api/records.ts';
import { href } from '../../layout/router.ts';
import { capitalized, resourceLabel } from '../../parts/resource_labels.ts';
import type { NameActor } from './actors.ts';

/** A change as the feed returns it (CloudEvents). */
export interface FeedEvent {
  readonly type: string;
  readonly time: string;
  readonly sequence: string;
  readonly data: {
    readonly realm_id: string;
    readonly user_id: string | null;
    readonly record_id: string;
    readonly members: readonly string[];
    readonly client_id: string;
    readonly request_id: string | null;
    /** The current record; null if deleted, absent if the session cannot read it. */
    readonly record?: { readonly data: Readonly<Record<string, unknown>> } | null;
  };
}

/** One change of a realm. */
export interface Entry {
  /** Its sequence number in the realm. */
  readonly seq: number;
  readonly at: string;
  readonly realm: string;
  /** The name of the resource. */
  readonly kind: string;
  /** `created`, `updated`, `deleted`, `erased`. */
  readonly what: string;
  readonly record: string;
  readonly user: string | undefined;
  readonly members: readonly string[];
  /** The actor. */
  readonly who: string;
  readonly requestId: string | undefined;
  /** The current name of the record; undefined if deleted or not readable. */
  readonly label: string | undefined;
  /** Whether the record is deleted. */
  readonly isGone: boolean;
}

export function entryOf({ type, time, sequence, data }: FeedEvent): Entry {
  const dot = type.lastIndexOf('.');
  return {
    seq: Number(sequence),
    at: time,
    realm: data.realm_id,
    kind: type.slice(0, dot),
    what: type.slice(dot + 1),
    record: data.record_id,
    user: data.user_id ?? undefined,
    members: data.members,
    who: data.client_id,
    requestId: data.request_id ?? undefined,
    label: labelIn(data.record?.data),
    isGone: data.record === null,
  };
}

/** Identifies a change among those of all realms. */
export function entryKey({ realm, seq }: Entry): string {
  return `${realm} ${seq}`;
}

interface ChangesResponse {
  readonly data: readonly FeedEvent[];
  readonly meta: { readonly cursor: string; readonly has_more: boolean };
  readonly links: { readonly next: string | null };
}

/** A page of changes, newest first. */
interface ChangesPage extends ListPage<Entry> {
  /** The cursor after the newest change. */
  readonly cursor: string;
}

/** Reads the changes before a cursor; `''` starts at the newest. `user_id` limits them to one user. */
export async function readChanges(
  realm: string,
  query: { readonly before: string; readonly user_id?: string },
  signal?: AbortSignal,
): Promise<ChangesPage> {
  const { data, meta, links } = await requestChanges(realm, { ...query }, signal);
  return { items: data.map(entryOf).reverse(), next: cursorOf(links.next, 'before'), cursor: meta.cursor };
}

/** Pages of changes after a cursor. */
const NEWER_PAGES_MAX = 10;

/** Reads the changes after a cursor, newest first. `isCut`: there are too many to read. Throws Problem `gone`. */
export async function readChangesAfter(
  realm: string,
  after: string,
  signal: AbortSignal,
): Promise<{ readonly items: readonly Entry[]; readonly cursor: string; readonly isCut: boolean }> {
  const items: Entry[] = [];
  let cursor = after;
  for (let page = 0; page < NEWER_PAGES_MAX; page += 1) {
    const { data, meta } = await requestChanges(realm, { after: cursor }, signal);
    items.unshift(...data.map(entryOf).reverse());
    cursor = meta.cursor;
    if (!meta.has_more) return { items, cursor, isCut: false };
  }
  return { items, cursor, isCut: true };
}

async function requestChanges(
  realm: string,
  query: Readonly<Record<string, string>>,
  signal: AbortSignal | undefined,
): Promise<ChangesResponse> {
  const path = `v2/authentication-realms/${encodeURIComponent(realm)}/changes?${new URLSearchParams({ ...query })}`;
  return (await callApi<ChangesResponse>({ path, signal, scope: 'changes:read' })).body;
}

/** `User updated`. */
export function entryTitle({ kind, what }: Entry): string {
  return `${capitalized(resourceLabel(kind).one)} ${what}`;
}

function labelIn(record: Readonly<Record<string, unknown>> | undefined): string | undefined {
  return ['name', 'username', 'subject']
    .map((member) => record?.[member])
    .find((each): each is string => typeof each === 'string' && each !== '');
}

const { realms, oidcProfiles, passwordProfiles, oidcProfileInfos, passwordProfileInfos } = RESOURCES;

/** Whether the record is a link: its label is a username or a subject. */
export function isLink({ kind }: Entry): boolean {
  return kind === oidcProfileInfos.name || kind === passwordProfileInfos.name;
}

/** The page of a record; for a link, that of its user. */
export function recordHref({ kind, realm, record, user }: Entry): string {
  if (kind === realms.name) return href('realms', realm);
  if (kind === oidcProfiles.name) return href('realms', realm, 'oidc-profiles', record);
  if (kind === passwordProfiles.name) return href('realms', realm, 'password-profiles', record);
  return href('realms', realm, 'users', user ?? record);
}

/** The filters; an empty text matches everything, and all realms. */
export interface Filters {
  readonly realm: string;
  readonly kind: string;
  readonly what: string;
  readonly who: string;
}

/** The kinds of changes. */
export const CHANGE_KINDS = ['created', 'updated', 'deleted', 'erased'] as const;

export function filtersFromQuery(query: URLSearchParams): Filters {
  const value = (name: string) => query.get(name) ?? '';
  return { realm: value('realm'), kind: value('kind'), what: value('what'), who: value('who') };
}

/** `nameActor`: an actor is found by its ID and by its name. */
export function matchesFilters({ kind, what, who }: Filters, entry: Entry, nameActor: NameActor): boolean {
  if (kind !== '' && kind !== entry.kind) return false;
  if (what !== '' && what !== entry.what) return false;
  const search = who.trim().toLowerCase();
  return [entry.who, nameActor(entry.who)].some((actor) => actor.toLowerCase().includes(search));
}
