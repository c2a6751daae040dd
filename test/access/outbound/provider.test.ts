import { afterAll, describe, expect, spyOn, test } from 'bun:test';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { Provider } from 'oidc-provider';
import { DISCOVERY_FAILURES } from '../../../src/access/outbound/discovery.ts';
import { TARGET_RULE } from '../../../src/access/outbound/target.ts';
import { findPort } from '../../support/daemons.ts';
import { testInProcess } from '../../support/program_service.ts';
import {
  createParents,
  createRecord,
  FULL_SCOPE,
  KINDS,
  type RecordBody,
  rowCounts,
  uniqueWord,
} from '../../support/resource_cases.ts';
import { errorsOf, startService } from '../../support/service.ts';

/** OIDC profiles of a real provider: oidc-provider from npm, on loopback. */

const TENANT = '/tenants/one';
const WELL_KNOWN = '/.well-known/openid-configuration';
const profiles = KINDS[1];
const identities = KINDS[4];

const server = createServer();
await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
/** The providers' addresses: one at the root of its host, one below a path, one whose issuer ends in a slash. */
const root = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
const atRoot = new Provider(root).callback();
const below = new Provider(`${root}${TENANT}`).callback();
const slashed = new Provider(`${root}/slashed/`).callback();
let requests = 0;
server.on('request', (request, response) => {
  requests += 1;
  const { url = '' } = request;
  if (url.startsWith('/hello')) response.end('hello');
  else if (url.startsWith('/list')) response.setHeader('Content-Type', 'application/json').end('[]');
  else if (url.startsWith('/common')) {
    const issuer = `https://sts.example/{tenantid}/${'x'.repeat(300)}`;
    response.setHeader('Content-Type', 'application/json').end(JSON.stringify({ issuer }));
  } else if (url.startsWith('/moved')) response.writeHead(302, { Location: `${root}${WELL_KNOWN}` }).end();
  else if (url.startsWith(TENANT)) {
    request.url = url.slice(TENANT.length);
    below(request, response);
  } else if (url.startsWith('/slashed')) {
    request.url = url.slice('/slashed'.length);
    slashed(request, response);
  } else atRoot(request, response);
});
const service = await startService({ allowPrivate: 'localhost 127.0.0.0/8' });
const token = await service.token(FULL_SCOPE);
const home = await createParents(service, token, { discovery_url: `${root}${WELL_KNOWN}` });
afterAll(async () => {
  server.closeAllConnections();
  server.close();
});

async function issuerAt(discovery_url: string): Promise<unknown> {
  const { body } = await createRecord(service, token, { kind: profiles, home, data: { discovery_url } });
  return body.data.meta.issuer;
}

test('creating a profile stores the issuer in the document of the provider', async () => {
  expect(await issuerAt(`${root}${WELL_KNOWN}`)).toBe(root);
  expect(await issuerAt(`${root}${TENANT}${WELL_KNOWN}`)).toBe(`${root}${TENANT}`);
  expect(await issuerAt(`${root}/slashed${WELL_KNOWN}`)).toBe(`${root}/slashed/`);
});

test('no GET of the API sends a request to the provider of a profile', async () => {
  const { paths } = (await (await service.get('/openapi.json')).json()) as {
    paths: Record<string, { get?: object }>;
  };
  const ids: Readonly<Record<string, string | undefined>> = {
    realm_id: home.realm,
    realm: home.realm,
    id: home.oidcProfile,
  };
  const reads = Object.keys(paths).filter((path) => paths[path]?.get && path.includes('oidc'));
  expect(reads.length).toBeGreaterThan(4);
  requests = 0;
  for (const path of reads) {
    const { status } = await service.get(
      path.replace(/\{(\w+)\}/g, (_, name) => ids[name] ?? service.clock.mintId()),
      token,
    );
    expect([200, 400, 404]).toContain(status);
  }
  expect(requests).toBe(0);
});

const NO_ISSUER = `must be an issuer followed by ${WELL_KNOWN}`;

/** Wrong addresses, each with its answer: no detail of a failure but the issuers. */
const WRONG: [what: string, url: () => string | Promise<string>, phrase: string][] = [
  [
    'another spelling of the address',
    () => `${root}/.${WELL_KNOWN}`,
    `issuer differs: the document names ${root}, this URL belongs to ${root}/.`,
  ],
  ['the document with a query', () => `${root}${WELL_KNOWN}?tenant=one`, NO_ISSUER],
  ['its key set', () => `${root}/jwks`, NO_ISSUER],
  ['the provider itself', () => root, NO_ISSUER],
  [
    'a template for tenants',
    () => `${root}/common${WELL_KNOWN}`,
    `issuer differs: the document names ${`https://sts.example/{tenantid}/${'x'.repeat(300)}`.slice(0, 255)}, this URL belongs to ${root}/common; use the URL of one tenant, whose issuer has no placeholder`,
  ],
  [
    'a closed port',
    async () => `http://127.0.0.1:${findPort()}${WELL_KNOWN}`,
    DISCOVERY_FAILURES.unreachable,
  ],
  ['a page that is no provider', () => `${root}/hello${WELL_KNOWN}`, 'not an OpenID provider'],
  ['JSON that is no object', () => `${root}/list${WELL_KNOWN}`, 'not an OpenID provider'],
  ['a redirect to the provider', () => `${root}/moved${WELL_KNOWN}`, DISCOVERY_FAILURES.redirect],
  ['a private address', () => `https://10.0.0.1${WELL_KNOWN}`, TARGET_RULE],
  ['a private address in another form', () => `https://[::ffff:192.168.0.1]${WELL_KNOWN}`, TARGET_RULE],
  ['a cloud metadata service', () => `http://169.254.169.254${WELL_KNOWN}`, TARGET_RULE],
];

describe('an address that does not lead to a provider is 422', () => {
  test.each(WRONG)('a discovery URL of %s is 422', async (_what, url, phrase) => {
    const { path } = await createRecord(service, token, {
      kind: profiles,
      home,
      data: { discovery_url: `${root}${WELL_KNOWN}` },
    });
    const before = await rowCounts(service);
    const discovery_url = await url();
    const data = { ...profiles.fresh(home), discovery_url };
    for (const answer of [
      await service.post(profiles.collection(home), token, { data }),
      await service.put(path, token, { data: { type: profiles.resource.type, discovery_url } }),
    ]) {
      expect(answer.status).toBe(422);
      expect(await errorsOf(answer)).toEqual([
        {
          status: '422',
          title: 'Unprocessable Entity',
          detail: `data.discovery_url: ${phrase}`,
          code: 'conflict',
          source: { pointer: '/data/discovery_url' },
        },
      ]);
    }
    expect(await rowCounts(service)).toEqual(before);
  });
});

testInProcess(
  'what the name of a provider resolves to is in the log, and in the answer to admin alone',
  async () => {
    const lookup = spyOn(Bun.dns, 'lookup').mockImplementation((async () => [
      { address: '10.1.2.3', family: 4 },
    ]) as never);
    const data = { ...profiles.fresh(home), discovery_url: `https://keycloak.internal${WELL_KNOWN}` };
    const detailFor = async (scope: string) => {
      const answer = await service.post(profiles.collection(home), await service.token(scope), { data });
      return (await errorsOf(answer))[0]?.detail;
    };
    expect(await detailFor('profiles:write')).toBe(`data.discovery_url: ${DISCOVERY_FAILURES.unreachable}`);
    expect(await detailFor('profiles:write admin')).toBe(
      'data.discovery_url: unreachable: its name resolves to 10.1.2.3, see --allow-private',
    );
    lookup.mockRestore();
    expect(service.log.filter(({ event }) => event === 'private_address_refused')).toContainEqual({
      event: 'private_address_refused',
      host: 'keycloak.internal',
      address: '10.1.2.3',
      count: 1,
    });
  },
);

const { type } = profiles.resource;
const urlBelow = (where: string) => `${root}${where}${WELL_KNOWN}`;
const STATED =
  'must be sent as well, because discovery_url changes: the stored one is for the earlier provider';

test('a PUT of another discovery URL is 422 without the client secret, and changes nothing', async () => {
  const data = { discovery_url: urlBelow('') };
  const { path } = await createRecord(service, token, { kind: profiles, home, data });
  const before = await rowCounts(service);
  const moved = { type, discovery_url: urlBelow(TENANT), name: 'Moved' };
  const refused = await service.put(path, token, { data: moved });
  expect([refused.status, await errorsOf(refused)]).toEqual([
    422,
    [
      {
        ...{ status: '422', title: 'Unprocessable Entity', code: 'conflict' },
        ...{ detail: `data.client_secret: ${STATED}`, source: { pointer: '/data/client_secret' } },
      },
    ],
  ]);
  const requests = [{ method: 'PUT', path, body: { data: moved } }];
  const batch = `/v2/authentication-realms/${home.realm}/batch`;
  const [error] = await errorsOf(await service.post(batch, token, { requests }));
  expect(error?.source).toEqual({ pointer: '/requests/0/body/data/client_secret' });
  expect(await rowCounts(service)).toEqual(before);
  const stored = ((await (await service.get(path, token)).json()) as RecordBody).data;
  expect([stored.discovery_url, stored.meta.issuer]).toEqual([urlBelow(''), root]);
});

test('a PUT of another discovery URL is accepted with a client secret, and one of the same without', async () => {
  const data = { discovery_url: urlBelow('') };
  const { path } = await createRecord(service, token, { kind: profiles, home, data });
  const put = async (more: object) => (await service.put(path, token, { data: { type, ...more } })).status;
  expect(await put({ discovery_url: urlBelow(''), client_id: 'another' })).toBe(200);
  expect(await put({ discovery_url: urlBelow(TENANT), client_secret: 'of the other' })).toBe(200);
});

describe('the issuer of a profile that has links', () => {
  const move = (path: string, where: string) =>
    service.put(path, token, {
      data: {
        ...{ type: profiles.resource.type, discovery_url: `${root}${where}${WELL_KNOWN}` },
        client_secret: 'of the provider there',
      },
    });

  test('a PUT that changes the issuer of a profile with links is 422 until the last link is gone', async () => {
    const profile = await createRecord(service, token, {
      kind: profiles,
      home,
      data: { discovery_url: `${root}${WELL_KNOWN}` },
    });
    expect((await move(profile.path, TENANT)).status).toBe(200);
    const where = { ...home, oidcProfile: profile.id };
    const link = await createRecord(service, token, {
      kind: identities,
      home: where,
      data: { issuer: `${root}${TENANT}` },
    });
    const refused = await move(profile.path, '');
    expect([refused.status, (await errorsOf(refused))[0]?.detail]).toEqual([
      422,
      'data.discovery_url: cannot change while records with another issuer refer to this one',
    ]);
    // The same address again, and changes of other members, are allowed.
    expect((await move(profile.path, TENANT)).status).toBe(200);
    const rename = { data: { type: profiles.resource.type, name: uniqueWord('Login') } };
    expect((await service.put(profile.path, token, rename)).status).toBe(200);
    await service.del(link.path, token);
    const moved = await move(profile.path, '');
    expect(((await moved.json()) as RecordBody).data.meta.issuer).toBe(root);
  });

  test('links may have another issuer than their profile unless the service has strict issuers', async () => {
    const where = { ...home, oidcProfile: home.oidcProfile };
    await createRecord(service, token, {
      kind: identities,
      home: where,
      data: { issuer: 'https://elsewhere.example' },
    });
    const strict = await startService({ offline: 'true', strictIssuers: 'true' });
    const bearer = await strict.token(FULL_SCOPE);
    const strictHome = await createParents(strict, bearer);
    const profile = await strict.get(`${profiles.collection(strictHome)}/${strictHome.oidcProfile}`, bearer);
    const { issuer } = ((await profile.json()) as RecordBody).data.meta;
    const rule = 'data.issuer: must be the issuer of the record in oidc_profile_id';
    const { path } = await createRecord(strict, bearer, {
      kind: identities,
      home: strictHome,
      data: { issuer },
    });
    const other = { ...identities.fresh(strictHome), issuer: `${issuer}/` };
    for (const answer of [
      await strict.post(identities.collection(strictHome), bearer, { data: other }),
      await strict.put(path, bearer, { data: { type: identities.resource.type, issuer: other.issuer } }),
    ]) {
      expect([answer.status, (await errorsOf(answer))[0]?.detail]).toEqual([422, rule]);
    }
    const renamed = { type: identities.resource.type, subject: uniqueWord('subject'), issuer };
    expect((await strict.put(path, bearer, { data: renamed })).status).toBe(200);
  });
});
