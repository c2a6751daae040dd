import type { Description } from '../description.ts';
import { callApi } from './call_api.ts';
import { type ApiRecord, parseRecord, RESOURCES } from './records.ts';

/** A record that a search of all realms has found. */
export interface FoundRecord {
  readonly realm: string;
  /** The user that the record belongs to, or is. */
  readonly user: string;
  readonly record: ApiRecord;
}

interface FoundPage {
  readonly items: readonly FoundRecord[];
  /** The realm to continue after; null at the end. */
  readonly next: string | null;
  /** The realm with more matches than fit on the page. */
  readonly cut: string | null;
  /** The number of all matches, if it was requested. */
  readonly total: number | undefined;
}

interface SearchRequest {
  readonly filter: string;
  readonly realms?: readonly string[] | undefined;
  readonly page: {
    readonly limit: number;
    readonly after_realm?: string | null | undefined;
    readonly after_id?: string | undefined;
    readonly total?: boolean;
  };
  readonly signal: AbortSignal | undefined;
}

interface SearchResponse {
  readonly data: readonly Item[];
  readonly meta: {
    readonly realms: { readonly next: string | null; readonly cut: string | null };
    readonly results?: { readonly total: number };
  };
}

type Item = Readonly<Record<string, unknown>> & OwnedItem & { readonly links?: { readonly self?: string } };

/** An item of a response that may belong to a user. */
export interface OwnedItem {
  readonly relationships?: Readonly<Record<string, { readonly data?: { readonly id?: string } }>>;
}

/** The ID of the user that an item belongs to. */
export function ownerOf({ relationships }: OwnedItem): string | undefined {
  return relationships?.[RESOURCES.users.type]?.data?.id;
}

/** Searches the records of all realms that this session may read. Values are sent in the body. */
export async function searchRealms(
  description: Description,
  { signal, ...body }: SearchRequest,
): Promise<FoundPage> {
  const answer = await callApi<SearchResponse>({
    method: 'POST',
    path: `v2/${description.collections.at(-1)}/search`,
    body,
    signal,
    scope: `${description.scope}:read`,
  });
  const { data, meta } = answer.body;
  const items = data.map((item) => {
    const record = parseRecord(description, item);
    return { realm: realmIn(item.links?.self ?? ''), user: ownerOf(item) ?? record.id, record };
  });
  return { items, ...meta.realms, total: meta.results?.total };
}

/** The realm ID in a link of the service. */
function realmIn(link: string): string {
  return /\/authentication-realms\/([^/?#]+)/.exec(link)?.[1] ?? '';
}
