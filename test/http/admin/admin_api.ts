import type { Flags } from '../../../src/app/config/parse.ts';
import type { Engine } from '../../../src/ops/store/open.ts';
import type { Json } from '../../support/json_schema.ts';
import { checkedResponse, type Service, startService } from '../../support/service.ts';

/** A response of the administration API, with its body read. */
export interface AdminResponse {
  readonly status: number;
  readonly headers: Headers;
  readonly text: string;
  readonly body: AdminBody;
}

/** The members of a response body that tests read. */
export interface AdminBody {
  readonly data: AdminItem;
  readonly links: Readonly<Record<string, string | null>>;
  readonly errors: readonly {
    readonly detail: string;
    readonly source?: { pointer?: string; parameter?: string };
  }[];
}

export type AdminItem = Readonly<Record<string, Json>> & { readonly id: string };

/** A service, and requests of an administrator to it over HTTP. */
export interface AdminApi {
  readonly service: Service;
  readonly admin: { readonly clientId: string; readonly token: string };
  request(method: string, path: string, options?: RequestOptions): Promise<AdminResponse>;
  /** The items of all pages of a list. */
  listAll(path: string): Promise<readonly AdminItem[]>;
  /** The entries of the installation log about an object. */
  auditEntriesOf(object: string): Promise<readonly AdminItem[]>;
  /** The bodies of all responses so far. */
  readonly responseTexts: readonly string[];
}

interface RequestOptions {
  readonly data?: unknown;
  readonly token?: string;
  readonly headers?: Readonly<Record<string, string>>;
}

const BASE = '/admin/v1';

export async function startAdminApi(flags: Flags = {}, wrap?: (engine: Engine) => Engine): Promise<AdminApi> {
  const service = await startService({ offline: 'true', ...flags }, wrap);
  const { clientId, secret } = await service.client('admin');
  const token = await service.grant({ clientId, secret });
  const responseTexts: string[] = [];

  async function request(
    method: string,
    path: string,
    { data, token: otherToken, headers }: RequestOptions = {},
  ): Promise<AdminResponse> {
    const response = await fetch(path.startsWith('http') ? path : `${service.url}${BASE}${path}`, {
      method,
      headers: {
        Authorization: `Bearer ${otherToken ?? token}`,
        ...(data === undefined ? {} : { 'Content-Type': 'application/json' }),
        ...headers,
      },
      ...(data === undefined ? {} : { body: JSON.stringify({ data }) }),
    });
    await checkedResponse(response, [otherToken ?? token]);
    const text = await response.text();
    responseTexts.push(text);
    if (response.headers.get('cache-control') !== 'no-store') throw new Error(`${path} may be stored`);
    const { status } = response;
    return { status, headers: response.headers, text, body: text === '' ? {} : JSON.parse(text) };
  }

  async function listAll(path: string): Promise<readonly AdminItem[]> {
    const items: AdminItem[] = [];
    for (let next: string | null | undefined = path; next; ) {
      const { body } = await request('GET', next);
      items.push(...(body.data as unknown as readonly AdminItem[]));
      next = body.links.next;
    }
    return items;
  }

  const auditEntriesOf = async (object: string) =>
    (await listAll('/log')).filter((entry) => entry.object === object);
  return { service, admin: { clientId, token }, request, listAll, auditEntriesOf, responseTexts };
}

/** Whether the service issues a token for these credentials. */
export async function getsToken(service: Service, clientId: string, secret: string): Promise<boolean> {
  return (await service.requestGrant({ clientId, secret })).status === 200;
}
