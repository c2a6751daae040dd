import type { Flags } from '../../../src/config/parse.ts';
import type { Engine } from '../../../src/store/open.ts';
import type { Json } from '../../support/json_schema.ts';
import { judged, type Service, startService } from '../../support/service.ts';

/** What administration answered, its body read. */
export interface Told {
  readonly status: number;
  readonly headers: Headers;
  readonly text: string;
  readonly body: Body;
}

/** A body of administration, as far as tests look into it. */
export interface Body {
  readonly data: Item;
  readonly links: Readonly<Record<string, string | null>>;
  readonly errors: readonly {
    readonly detail: string;
    readonly source?: { pointer?: string; parameter?: string };
  }[];
}

export type Item = Readonly<Record<string, Json>> & { readonly id: string };

/** A service, and an administrator who asks it by HTTP. */
export interface Office {
  readonly service: Service;
  readonly admin: { readonly clientId: string; readonly token: string };
  ask(method: string, path: string, sent?: Asking): Promise<Told>;
  /** All pages of a list, from the first one. */
  all(path: string): Promise<readonly Item[]>;
  /** The entries of the log of the installation that tell of an object. */
  actsOn(object: string): Promise<readonly Item[]>;
  /** Every answer of administration so far, as text. */
  readonly answers: readonly string[];
}

interface Asking {
  readonly data?: unknown;
  readonly token?: string;
  readonly headers?: Readonly<Record<string, string>>;
}

const BASE = '/admin/v1';

export async function openOffice(flags: Flags = {}, wrap?: (engine: Engine) => Engine): Promise<Office> {
  const service = await startService({ offline: 'true', ...flags }, wrap);
  const { clientId, secret } = await service.client('admin');
  const token = await tokenOf(service, clientId, secret);
  const answers: string[] = [];

  async function ask(
    method: string,
    path: string,
    { data, token: other, headers }: Asking = {},
  ): Promise<Told> {
    const answer = await fetch(path.startsWith('http') ? path : `${service.url}${BASE}${path}`, {
      method,
      headers: {
        Authorization: `Bearer ${other ?? token}`,
        ...(data === undefined ? {} : { 'Content-Type': 'application/json' }),
        ...headers,
      },
      ...(data === undefined ? {} : { body: JSON.stringify({ data }) }),
    });
    await judged(answer, [other ?? token]);
    const text = await answer.text();
    answers.push(text);
    if (answer.headers.get('cache-control') !== 'no-store') throw new Error(`${path} may be stored`);
    const { status } = answer;
    return { status, headers: answer.headers, text, body: text === '' ? {} : JSON.parse(text) };
  }

  async function all(path: string): Promise<readonly Item[]> {
    const items: Item[] = [];
    for (let next: string | null | undefined = path; next; ) {
      const { body } = await ask('GET', next);
      items.push(...(body.data as unknown as readonly Item[]));
      next = body.links.next;
    }
    return items;
  }

  const actsOn = async (object: string) => (await all('/log')).filter((entry) => entry.object === object);
  return { service, admin: { clientId, token }, ask, all, actsOn, answers };
}

/** A token by these credentials; throws where they are refused. */
export async function tokenOf(service: Service, clientId: string, secret: string): Promise<string> {
  const form = { grant_type: 'client_credentials', client_id: clientId, client_secret: secret };
  const answer = await service.grant(form);
  if (answer.status !== 200) throw new Error(`${answer.status}`);
  return ((await answer.json()) as { access_token: string }).access_token;
}

/** Whether these credentials get a token now. */
export async function areAccepted(service: Service, clientId: string, secret: string): Promise<boolean> {
  return tokenOf(service, clientId, secret).then(
    () => true,
    () => false,
  );
}
