import { describe, expect, test } from 'bun:test';
import { freshDatabase } from '../../support/database.ts';
import {
  FULL_SCOPE,
  KINDS,
  type Kind,
  type ParentIds,
  type RecordBody,
} from '../../support/resource_cases.ts';
import { checkedResponse } from '../../support/service.ts';
import { type ServiceProcess, startServiceProcess } from '../../support/service_process.ts';

/** `--offline` and `--strict-issuers`, as an operator sets them. */

const [realms, profiles, , users, identities] = KINDS;
const WELL_KNOWN = '/.well-known/openid-configuration';
const LOGIN = 'https://login.example.com';
/** A provider that may write its issuer with a final slash. */
const TENANT = 'https://tenant.example';

interface Offline {
  readonly home: ParentIds;
  post(kind: Kind, data: object): Promise<Response>;
  put(kind: Kind, id: string, data: object): Promise<Response>;
  del(kind: Kind, id: string): Promise<Response>;
  stop(): Promise<void>;
}

async function startOffline(...flags: string[]): Promise<Offline> {
  const database = await freshDatabase();
  const served: ServiceProcess = await startServiceProcess({
    database,
    scope: FULL_SCOPE,
    flags: ['--offline', ...flags],
  });
  const token = await served.token();
  let home: ParentIds = { realm: '', oidcProfile: '', passwordProfile: '', user: '' };
  const call = async (method: string, below: string, data?: object) => {
    const answer = await fetch(`${served.url}${below}`, {
      method,
      headers: { Authorization: `Bearer ${token}`, 'Content-Type': 'application/json' },
      ...(data ? { body: JSON.stringify({ data }) } : {}),
    });
    return checkedResponse(answer, [
      token,
      ...Object.values(data ?? {}).filter((each) => `${each}`.includes('://')),
    ]);
  };
  const offline = {
    post: (kind: Kind, data: object) => call('POST', kind.collection(home), { ...kind.fresh(home), ...data }),
    put: (kind: Kind, id: string, data: object) =>
      call('PUT', `${kind.collection(home)}/${id}`, { type: kind.resource.type, ...data }),
    del: (kind: Kind, id: string) => call('DELETE', `${kind.collection(home)}/${id}`),
    async stop() {
      expect(await served.running.stop()).toBe(0);
    },
  };
  home = { ...home, realm: (await created(offline.post(realms, {}))).id };
  home = { ...home, user: (await created(offline.post(users, {}))).id };
  home = {
    ...home,
    oidcProfile: (await created(offline.post(profiles, { discovery_url: LOGIN + WELL_KNOWN }))).id,
  };
  return { ...offline, home };
}

async function created(answering: Promise<Response>) {
  const answer = await answering;
  expect([answer.status, answer.headers.get('etag') !== null]).toEqual([201, true]);
  return ((await answer.json()) as RecordBody).data;
}

async function refusal(answering: Promise<Response>): Promise<unknown[]> {
  const answer = await answering;
  const { errors = [] } = (await answer.json()) as { errors?: { detail: string }[] };
  return [answer.status, ...errors.map(({ detail }) => detail)];
}

describe('--offline', async () => {
  const service = await startOffline();

  test('an offline service derives the issuer from the discovery URL without a request', async () => {
    const { post } = service;
    // Reserved names (RFC 2606) and addresses that no request may reach.
    for (const issuer of ['https://nobody.invalid', 'https://10.0.0.1/tenant', 'http://127.0.0.1:1']) {
      expect((await created(post(profiles, { discovery_url: issuer + WELL_KNOWN }))).meta.issuer).toBe(
        issuer,
      );
    }
  });

  test('a POST and a PUT state the issuer as the provider writes it, with or without a final slash', async () => {
    const { post, put } = service;
    const fixed = { discovery_url: TENANT + WELL_KNOWN };
    const { id, meta } = await created(post(profiles, { ...fixed, issuer: `${TENANT}/` }));
    expect(meta.issuer).toBe(`${TENANT}/`);
    const issuerAfter = async (data: object) =>
      ((await (await put(profiles, id, data)).json()) as RecordBody).data.meta.issuer;
    // A client that writes back what it reads leaves the issuer as it is.
    expect(await issuerAfter(fixed)).toBe(`${TENANT}/`);
    expect(await issuerAfter({ issuer: TENANT })).toBe(TENANT);
    const rule =
      'data.issuer: must be discovery_url without /.well-known/openid-configuration, with or without a final slash';
    for (const issuer of ['https://sso.example.com', `${TENANT}//`, 'https://TENANT.example']) {
      expect(await refusal(post(profiles, { ...fixed, issuer }))).toEqual([422, rule]);
      expect(await refusal(put(profiles, id, { issuer }))).toEqual([422, rule]);
    }
    const moved = { discovery_url: `https://sso.example.com${WELL_KNOWN}` };
    expect(await refusal(put(profiles, id, moved))).toEqual([
      422,
      'data.client_secret: must be sent as well, because discovery_url changes: the stored one is for the earlier provider',
    ]);
    expect(await issuerAfter({ ...moved, client_secret: 'of the other' })).toBe('https://sso.example.com');
    expect((await put(profiles, '00000000-0000-4000-8000-000000000000', { issuer: TENANT })).status).toBe(
      404,
    );
  });

  test('a PUT corrects an issuer that all links carry already, and no other', async () => {
    const { post, put } = service;
    const { id } = await created(post(profiles, { discovery_url: TENANT + WELL_KNOWN }));
    await created(post(identities, { oidc_profile_id: id, issuer: `${TENANT}/` }));
    expect((await put(profiles, id, { issuer: `${TENANT}/` })).status).toBe(200);
    expect(await refusal(put(profiles, id, { issuer: TENANT }))).toEqual([
      422,
      'data.issuer: cannot change while records with another issuer refer to this one',
    ]);
  });

  test('a PUT may change the issuer until a link refers to the profile', async () => {
    const { post, put, del } = service;
    const { id } = await created(post(profiles, { discovery_url: LOGIN + WELL_KNOWN }));
    const move = (issuer: string) =>
      put(profiles, id, { discovery_url: issuer + WELL_KNOWN, client_secret: 'of the provider there' });
    const moved = (await (await move('https://sso.example.com')).json()) as RecordBody;
    expect(moved.data.meta.issuer).toBe('https://sso.example.com');
    const link = await created(post(identities, { oidc_profile_id: id, issuer: 'https://sso.example.com' }));
    expect(await refusal(move(LOGIN))).toEqual([
      422,
      'data.discovery_url: cannot change while records with another issuer refer to this one',
    ]);
    expect((await move('https://sso.example.com')).status).toBe(200);
    expect((await put(profiles, id, { name: 'SSO' })).status).toBe(200);
    expect((await del(identities, link.id)).status).toBe(204);
    expect((await move(LOGIN)).status).toBe(200);
  });

  test('a link of another issuer than that of its profile is accepted', async () => {
    const { post, put } = service;
    await created(post(identities, { issuer: 'https://elsewhere.example' }));
    const moved = await created(post(identities, { issuer: LOGIN }));
    expect((await put(identities, moved.id, { issuer: 'https://third.example' })).status).toBe(200);
  });
});

describe('--strict-issuers', async () => {
  const service = await startOffline('--strict-issuers');

  test('a link without exactly the issuer of its profile is 422 with --strict-issuers', async () => {
    const { post, put } = service;
    const rule = [422, 'data.issuer: must be the issuer of the record in oidc_profile_id'];
    const { id } = await created(post(identities, { issuer: LOGIN }));
    for (const issuer of ['https://elsewhere.example', `${LOGIN}/`, LOGIN.replace('login', 'LOGIN')]) {
      expect(await refusal(post(identities, { issuer }))).toEqual(rule);
      expect(await refusal(put(identities, id, { issuer }))).toEqual(rule);
    }
    expect((await put(identities, id, { subject: 'another subject' })).status).toBe(200);
    expect((await put(identities, id, { issuer: LOGIN, subject: 'a third' })).status).toBe(200);
  });
});
