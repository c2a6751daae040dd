import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { Provider } from 'oidc-provider';
import { realm } from '../../src/model/resources.ts';
import { atEnd } from './ending.ts';
import { CLIENT_SECRET, createOidcProfile } from './oidc_sign_in.ts';
import { startService } from './service.ts';
import { createSettingsRealms } from './settings_realms.ts';

/**
 * Starts a service whose account members sign in at a real provider (oidc-provider from npm, on loopback). What a person enters there
 * as the name is the subject.
 */
export async function startProviderService(redirect_uris: readonly string[], configuration: object = {}) {
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  atEnd(() => {
    server.closeAllConnections();
    server.close();
  });
  const issuer = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const service = await startService({ allowPrivate: '127.0.0.0/8' });
  const { accounts, buyers } = await createSettingsRealms(service.db);
  const profile = await createOidcProfile(service.db, accounts, issuer);
  const writer = await service.token('realms:write profiles:read users:read');
  const path = `/v2/authentication-realms/${accounts}`;
  const changed = await service.put(path, writer, { data: { type: realm.type, redirect_uris } });
  const read = await service.get(`${path}/oidc-profiles/${profile}`, writer);
  if (changed.status !== 200 || read.status !== 200) throw new Error(`${changed.status} ${read.status}`);
  const { links } = (await read.json()) as { readonly links: Readonly<Record<string, string>> };
  const provider = new Provider(issuer, {
    clients: [
      { client_id: 'shop', client_secret: CLIENT_SECRET, redirect_uris: [links['callback-endpoint']] },
    ],
    claims: { openid: ['sub'], email: ['email', 'email_verified'], profile: ['name'] },
    findAccount: (_: unknown, id: string) => ({
      accountId: id,
      claims: () => ({ sub: id, email: 'anna@example.com', email_verified: true, name: 'Anna Holm' }),
    }),
    ...configuration,
  });
  server.on('request', provider.callback());
  const store = await service.db.engine.access.storeId();
  return { service, issuer, accounts, buyers, place: { store, realm: accounts, profile }, writer, path };
}
