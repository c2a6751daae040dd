import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Command } from 'commander';
import { createClient } from '../access/clients.ts';
import { systemAmbient } from '../ambient.ts';
import { openVault, serve, type Vault } from '../app.ts';
import { readSettings } from '../config.ts';
import { commitDrafts } from '../directory/directory.ts';
import { type Draft, draftDescribed } from '../directory/draft.ts';
import { Refusal } from '../domain/fault.ts';
import { parseScopes } from '../domain/principal.ts';
import type { Key, Resource } from '../domain/resource.ts';
import {
  oidcProfile,
  oidcProfileInfo,
  passwordProfile,
  passwordProfileInfo,
  realm,
  user,
} from '../domain/resources.ts';
import { selfLinks } from '../http/links.ts';
import { openLog } from '../observe/log.ts';
import { addSettings, type Desk } from './cli.ts';
import { signalled } from './serve.ts';

/** `demo`: the whole service on a database that ends with it. */
export function addDemo(program: Command, desk: Desk): void {
  addSettings(program.command('demo'), ['port'])
    .description('serve a small realm from a temporary database and look two records up in it')
    .option('--once', 'end after the lookups')
    .action(async ({ once }: { once?: true }, command: Command) => {
      const folder = mkdtempSync(join(tmpdir(), 'authrealm-demo-'));
      try {
        const { port } = desk.flagsOf(command);
        await show(join(folder, 'demo.db'), port ?? '0', once === true);
      } finally {
        rmSync(folder, { recursive: true, force: true });
      }
    });
}

async function show(path: string, port: string, isOnce: boolean): Promise<void> {
  const settings = readSettings({ database: `sqlite:${path}`, port }, {});
  const vault = await openVault(settings, systemAmbient);
  const server = await serve(settings, vault, openLog(), systemAmbient);
  const stopped = signalled('on');
  try {
    const links = await plant(vault, server.url);
    const token = await fetchToken(vault, server.url);
    console.log(`serving a demo realm on ${server.url}\n`);
    for (const link of links) await look(link, token);
    console.log('Try it yourself:\n');
    for (const link of links) console.log(`curl -H 'Authorization: Bearer ${token}' ${link}\n`);
    if (isOnce) return;
    console.log('Ctrl-C ends the demo and removes its database.');
    await stopped;
  } finally {
    await server.stop();
    await vault.engine.close();
  }
}

/** A user with two identities and a username; answers the links of one record of each kind. */
async function plant({ engine }: Vault, baseUrl: string): Promise<readonly string[]> {
  const mint = systemAmbient.mintId;
  const [realmId, google, azure, passwords, jane] = [mint(), mint(), mint(), mint(), mint()];
  const [first, second, name] = [mint(), mint(), mint()];
  const issuers = { google: 'https://accounts.google.com', azure: 'https://login.example.com/' };
  const draft = (resource: Resource, key: Key, members: Record<string, unknown>): Draft =>
    draftDescribed(resource, key, members, { ambient: systemAmbient, actor: 'demo' });
  const profile = (issuer: string) => ({
    discovery_url: `${issuer.replace(/\/$/, '')}/.well-known/openid-configuration`,
    client_id: 'shop',
    issuer,
  });
  await commitDrafts(engine.records, [
    draft(realm, [realmId], { name: 'Buyer Organization' }),
    draft(oidcProfile, [realmId, google], { name: 'Google', ...profile(issuers.google) }),
    draft(oidcProfile, [realmId, azure], { name: 'Company', ...profile(issuers.azure) }),
    draft(passwordProfile, [realmId, passwords], { name: 'Passwords', username_format: 'email' }),
    draft(user, [realmId, jane], { name: 'Jane Doe', email: 'jane@example.com' }),
    draft(oidcProfileInfo, [realmId, jane, first], {
      subject: '110248495921238986420',
      issuer: issuers.google,
      oidc_profile_id: google,
    }),
    draft(oidcProfileInfo, [realmId, jane, second], {
      subject: 'jane.doe',
      issuer: issuers.azure,
      oidc_profile_id: azure,
    }),
    draft(passwordProfileInfo, [realmId, jane, name], {
      username: 'jane@example.com',
      password_profile_id: passwords,
    }),
  ]);
  return [
    selfLinks(oidcProfileInfo, baseUrl)([realmId, jane, first]),
    selfLinks(passwordProfileInfo, baseUrl)([realmId, jane, name]),
  ];
}

async function fetchToken({ engine }: Vault, baseUrl: string): Promise<string> {
  const scopes = parseScopes('profile-infos:read') ?? new Set<string>();
  const { client, secret } = await createClient(
    engine.access,
    'demo',
    { scopes, realms: '*' },
    systemAmbient,
  );
  const answer = await fetch(`${baseUrl}/oauth/access_token`, {
    method: 'POST',
    // Through a proxy of the environment the runtime would send what is meant for this machine.
    proxy: false,
    body: new URLSearchParams({
      grant_type: 'client_credentials',
      client_id: client.clientId,
      client_secret: secret,
    }),
  });
  const { access_token } = (await answer.json()) as { access_token?: string };
  if (access_token === undefined) throw new Refusal(`the demo got no token: status ${answer.status}`);
  return access_token;
}

/** Performs one lookup and prints request and answer. */
async function look(link: string, token: string): Promise<void> {
  const answer = await fetch(link, { headers: { Authorization: `Bearer ${token}` }, proxy: false });
  console.log(`GET ${new URL(link).pathname}\nAuthorization: Bearer ${token.slice(0, 12)}…\n`);
  console.log(`${answer.status} ${answer.statusText}\nETag: ${answer.headers.get('etag')}`);
  console.log(`${JSON.stringify(await answer.json(), null, 2)}\n`);
  if (answer.status !== 200) throw new Refusal(`a lookup of the demo answered ${answer.status}`);
}
