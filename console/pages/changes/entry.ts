import { callApi } from '../../api/call_api.ts';
import { cursorOf, RESOURCES } from '../../api/records.ts';
import { href } from '../../layout/router.ts';
import { capitalized, resourceLabel } from '../../parts/resource_labels.ts';

type Members = Readonly<Record<string, unknown>>;

interface BeforeAndAfter {
  readonly before?: Members;
  readonly after?: Members;
}

/** A change as the service returns it (CloudEvents). */
interface FeedEvent {
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
    /** The values of the change; only with the scope `history:read`. */
    readonly detail?: BeforeAndAfter;
    readonly personal?: BeforeAndAfter | 'erased' | 'unreadable';
    /** The current record; null if deleted, absent if the session cannot read it. */
    readonly record?: { readonly data: Members } | null;
  };
}

/** One change of a realm. `what`: `created`, `updated`, `deleted` or `erased`. `key` is unique among those of all realms. */
export type Entry = ReturnType<typeof entryOf>;

function entryOf({ type, time, sequence, data }: FeedEvent) {
  const [kind = '', what = ''] = type.split('.');
  const { detail, personal, record } = data;
  const own = typeof personal === 'string' ? undefined : personal;
  const before: Members = { ...detail?.before, ...own?.before };
  const after: Members = { ...detail?.after, ...own?.after };
  return {
    ...data,
    key: `${data.realm_id} ${sequence}`,
    seq: Number(sequence),
    at: time,
    kind,
    what,
    title: `${capitalized(resourceLabel(kind).one)} ${what}`,
    label: labelIn(record ? record.data : { ...before, ...after }),
    before,
    after,
    withheld: typeof personal === 'string' ? personal : undefined,
  };
}

/** The name of a record; of a deleted one the last that the change has. */
function labelIn(record: Members): string | undefined {
  return ['name', 'username', 'subject']
    .map((member) => record[member])
    .find((each): each is string => typeof each === 'string' && each !== '');
}

export const CONDITIONS = ['realm', 'kind', 'event', 'actor', 'user', 'record', 'from', 'to'] as const;

/** The parameters of a search. An absent or empty text matches everything. */
export type Conditions = Readonly<Partial<Record<(typeof CONDITIONS)[number], string>>>;

interface SearchBody {
  readonly data: readonly FeedEvent[];
  readonly meta: { readonly searched_to: string | null };
  readonly links: { readonly next: string | null };
}

/** Searches the changes of the realms of this session, newest first, after a cursor; `''` starts at the newest. `at`: when, by the service. */
export async function searchChanges(conditions: Conditions, after: string, signal?: AbortSignal) {
  const trimmed = Object.entries({ ...conditions, after }).map(([name, text]) => [name, text.trim()]);
  const given = trimmed.filter(([, text]) => text !== '');
  const path = `v2/changes/search?${new URLSearchParams(given)}`;
  const { body, headers } = await callApi<SearchBody>({ path, signal, scope: 'changes:read' });
  const { data, meta, links } = body;
  const at = Date.parse(headers.get('date') ?? '');
  return { items: data.map(entryOf), next: cursorOf(links.next, 'after'), searchedTo: meta.searched_to, at };
}

const { realms, oidcProfiles, passwordProfiles, oidcProfileInfos, passwordProfileInfos } = RESOURCES;

/** Whether the record is a link: its label is a username or a subject. */
export function isLink({ kind }: Entry): boolean {
  return kind === oidcProfileInfos.name || kind === passwordProfileInfos.name;
}

/** The page of a record; for a link, that of its user. */
export function recordHref({ kind, realm_id: realm, record_id: record, user_id: user }: Entry): string {
  if (kind === realms.name) return href('realms', realm);
  if (kind === oidcProfiles.name) return href('realms', realm, 'oidc-profiles', record);
  if (kind === passwordProfiles.name) return href('realms', realm, 'password-profiles', record);
  return href('realms', realm, 'users', user ?? record);
}
