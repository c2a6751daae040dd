import { describe, expect, setDefaultTimeout, test } from 'bun:test';
import { join } from 'node:path';
import { AUTHREALM, runCommand } from '../support/processes.ts';
import { createClientOf, serveWith } from '../support/release_service.ts';
import { unpackRelease } from '../support/release_tree.ts';
import { sendRequest } from '../support/service.ts';

/** Settings, the mapping and tokens by the ID of a client alone on a database that release 0.1.0 serves concurrently (docs/wire.md#settings). */

setDefaultTimeout(300_000);

/** Each process reads its clients again after this time. */
const CLIENTS_AGE_MS = 1_000;

async function createClient(args: readonly string[], more: readonly string[]) {
  const created = await createClientOf(AUTHREALM, args, more);
  await Bun.sleep(CLIENTS_AGE_MS);
  return created;
}

describe('settings concurrently with release 0.1.0, which has none', () => {
  test('a prefix stays while release 0.1.0 changes its realm, and each release reads the other realm', async () => {
    const authrealm = join(await unpackRelease('0.1.0'), 'bin', 'authrealm');
    const old = await serveWith(authrealm);
    const made = await runCommand([authrealm, 'init', '--preset-realms', ...old.filled.args]);
    expect([made.stderr, made.code]).toEqual(['', 0]);
    const own = await serveWith(AUTHREALM, old.filled);
    const create = (...more: readonly string[]) => createClient(old.filled.args, more);
    const settings = await own.as(await create('--scope', 'settings:read settings:write users:read'));
    const { data } = (await (await settings('GET', '/v2/merchant-realm-mappings')).json()) as Mapping;
    expect(data.prefix).toBeNull();
    const mapping = `/v2/merchant-realm-mappings/${data.id}`;
    const shop = { type: 'merchant-realm-mappings', prefix: 'shop' };
    expect((await settings('PUT', mapping, shop)).status).toBe(200);

    const realms = await old.as(await create('--scope', 'realms:read realms:write'));
    const realm = `/v2/authentication-realms/${data.id}`;
    const renamed = { type: 'authentication-realm', name: 'Renamed by release 0.1.0' };
    const answer = await realms('PUT', realm, renamed);
    expect([answer.status, JSON.stringify(await answer.json())]).toEqual([
      200,
      expect.not.stringContaining('shop'),
    ]);
    expect(await (await settings('GET', mapping)).json()).toMatchObject({ data: { prefix: 'shop' } });
    const changed = { type: 'merchant-realm-mappings', prefix: 'another' };
    expect((await settings('PUT', mapping, changed)).status).toBe(200);
    expect(await (await realms('GET', realm)).json()).toMatchObject({ data: { name: renamed.name } });

    // The realm of account members that release 0.1.0 created, and a user that it creates there.
    const account = await settings('GET', '/v2/settings/account-authentication');
    const accounts = ((await account.json()) as AccountSettings).data.relationships.authentication_realm.data;
    const users = await old.as(await create('--scope', 'users:write'));
    const person = { type: 'user_authentication_info', name: 'Later', email: 'later@example.com' };
    const user = await users(
      'POST',
      `/v2/authentication-realms/${accounts.id}/user-authentication-info`,
      person,
    );
    const { id } = ((await user.json()) as Mapping).data;
    expect((await settings('GET', `/v2/account-members/${id}`)).status).toBe(200);
    expect([await own.running.stop(), await old.running.stop()]).toEqual([0, 0]);
  });

  test('the ID of a client alone gets no token from release 0.1.0, and its tokens are rejected there', async () => {
    const old = await serveWith(join(await unpackRelease('0.1.0'), 'bin', 'authrealm'));
    const own = await serveWith(AUTHREALM, old.filled);
    const { realm } = old.filled.ids;
    const rights = ['--scope', 'profiles:read', '--realm', realm, '--rate-per-address', '60/60'];
    const shop = [...rights, '--implicit', 'profiles:read'];
    const { client_id } = await createClient(old.filled.args, shop);
    const ask = async (url: string, form: Record<string, string>) => {
      const answer = await fetch(`${url}/oauth/access_token`, {
        method: 'POST',
        body: new URLSearchParams({ client_id, ...form }),
      });
      return [answer.status, (await answer.json()) as { access_token: string; error: string }] as const;
    };
    const [granted, { access_token: token }] = await ask(own.url, { grant_type: 'implicit' });
    expect(granted).toBe(200);
    const profiles = `/v2/authentication-realms/${realm}/oidc-profiles`;
    const statusAt = async (url: string) =>
      (await sendRequest(url, 'GET', profiles, { token, body: undefined, headers: undefined })).status;
    expect(await statusAt(own.url)).toBe(200);
    expect((await ask(old.url, { grant_type: 'implicit' }))[0]).toBe(400);
    expect(await statusAt(old.url)).toBe(401);
    expect([await own.running.stop(), await old.running.stop()]).toEqual([0, 0]);
  });
});

interface Mapping {
  readonly data: { readonly id: string; readonly prefix: string | null };
}
interface AccountSettings {
  readonly data: {
    readonly relationships: { readonly authentication_realm: { readonly data: { readonly id: string } } };
  };
}
