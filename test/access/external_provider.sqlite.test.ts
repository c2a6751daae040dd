import { afterAll, expect, test } from 'bun:test';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { Provider } from 'oidc-provider';
import { AUDIENCE, issuersFile } from '../support/issuers.ts';
import { createFixture, LOOKUPS, passwordPath, startService } from '../support/service.ts';

/** Access tokens of a real provider: oidc-provider from npm, on loopback. */

const { path } = LOOKUPS[0];
const CLIENTS = { reader: 'https://directory.example', stranger: 'https://other.example' } as const;

const server = createServer();
await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
const issuer = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
const provider = new Provider(issuer, {
  clients: Object.keys(CLIENTS).map((id) => ({
    ...{ client_id: id, client_secret: `${id} has this secret`, grant_types: ['client_credentials'] },
    ...{ redirect_uris: [], response_types: [] },
  })),
  features: {
    clientCredentials: { enabled: true },
    devInteractions: { enabled: false },
    resourceIndicators: {
      enabled: true,
      getResourceServerInfo: (_context: unknown, audience: string) => ({
        ...{ scope: 'directory.read directory.write', audience, accessTokenFormat: 'jwt' },
        ...{ accessTokenTTL: 600, jwt: { sign: { alg: 'RS256' } } },
      }),
    },
  },
});
server.on('request', provider.callback());
let service = await startService({ allowPrivate: 'localhost 127.0.0.0/8' });
const fixture = await createFixture(service.db);
const neighbour = await createFixture(service.db);
await service.stop();
const rights = [
  { claim: 'scope', value: 'directory.read', scopes: 'oidc-profile-infos:read', realms: [fixture.realm] },
];
service = await startService({
  ...service.database.flags,
  allowPrivate: 'localhost 127.0.0.0/8',
  issuersFile: issuersFile({ name: 'acme', issuer, audience: AUDIENCE, rights }),
});
afterAll(async () => {
  server.closeAllConnections();
  server.close();
});

async function tokenOf(client: keyof typeof CLIENTS, scope: string, resource = AUDIENCE): Promise<string> {
  const answer = await fetch(`${issuer}/token`, {
    method: 'POST',
    headers: {
      Authorization: `Basic ${btoa(`${client}:${encodeURIComponent(`${client} has this secret`)}`)}`,
    },
    body: new URLSearchParams({ grant_type: 'client_credentials', scope, resource }),
  });
  const body = (await answer.json()) as { access_token: string };
  if (!answer.ok) throw new Error(JSON.stringify(body));
  return body.access_token;
}

test('a token of the provider has the rights of the issuers file in its realms only', async () => {
  const token = await tokenOf('reader', 'directory.read');
  expect((await service.get(path(fixture), token)).status).toBe(200);
  expect((await service.get(path(neighbour), token)).status).toBe(404);
  expect((await service.get(passwordPath(fixture), token)).status).toBe(403);
  expect((await service.del(path(fixture), token)).status).toBe(403);
});

test('a scope of the provider without an entry gives no right', async () => {
  const token = await tokenOf('reader', 'directory.write');
  expect((await service.get(path(fixture), token)).status).toBe(403);
});

test('a token for another audience is refused', async () => {
  const token = await tokenOf('stranger', 'directory.read', CLIENTS.stranger);
  expect((await service.get(path(fixture), token)).status).toBe(401);
});
