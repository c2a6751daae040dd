import { expect, test } from 'bun:test';
import { join } from 'node:path';
import { freshFolder } from '../support/folder.ts';
import { AUTHREALM, runCommand, startCommand } from '../support/processes.ts';
import {
  clientOf,
  copyReleaseDatabase,
  linesOf,
  restoreSchema1,
  urlOf,
} from '../support/release_database.ts';
import { createClientOf } from '../support/release_service.ts';
import { unpackRelease } from '../support/release_tree.ts';
import { type ClientSecret, requestToken } from '../support/token_request.ts';

/**
 * The upgrade from release 0.1.0, and the way back as UPGRADING.md describes it. AUTHREALM_TEST_PROGRAM can name the binary or the
 * npm package; test/distro/ tries the Debian package and the image.
 */

/** The same for both releases, so that tokens and links of one are those of the other. */
const BASE_URL = 'https://idp.example';

async function serve(program: string, path: string) {
  const options = ['--port', '0', '--offline', '--base-url', BASE_URL, '--database', `sqlite:${path}`];
  const service = startCommand([program, 'serve', ...options]);
  const url = await urlOf(service);
  return {
    stop: () => service.stop(),
    token: (client: ClientSecret) => requestToken(url, client),
    async send(token: string, method: string, at: string, body?: object) {
      const response = await fetch(url + at, {
        method,
        headers: { Authorization: `Bearer ${token}`, 'Content-Type': 'application/json' },
        ...(body ? { body: JSON.stringify(body) } : {}),
      });
      return { status: response.status, text: await response.text() };
    },
  };
}

/** The paths of both links in the fixture. */
function linkPaths(): readonly string[] {
  return linesOf('0.1.0')
    .filter(({ type }) => /profile_info$/.test(type))
    .map(({ type, id, realm_id, user_authentication_info_id: user }) => {
      const users = `/v2/authentication-realms/${realm_id}/user-authentication-info`;
      return `${users}/${user}/${type.replaceAll('_', '-')}/${id}`;
    });
}

test('release 0.1.0 is upgraded with its links, keys and feed, and serves its copy again after the way back', async () => {
  const oldProgram = join(await unpackRelease('0.1.0'), 'bin', 'authrealm');
  const path = copyReleaseDatabase('0.1.0', freshFolder());
  const client = clientOf('0.1.0');
  const feedReader = await createClientOf(
    oldProgram,
    ['--database', `sqlite:${path}`],
    ['--scope', 'changes:read'],
  );
  const links = linkPaths();
  expect(links).toHaveLength(2);

  const old = await serve(oldProgram, path);
  const token = await old.token(client);
  const before = await Promise.all(links.map((link) => old.send(token, 'GET', link)));
  expect(before.map(({ status }) => status)).toEqual([200, 200]);
  expect(await old.stop()).toBe(0);

  const upgraded = await serve(AUTHREALM, path);
  // A token that a key of 0.1.0 signed is valid, and the answers are the same, byte for byte.
  expect(await Promise.all(links.map((link) => upgraded.send(token, 'GET', link)))).toEqual(before);
  const [realm = ''] = /^\/v2\/authentication-realms\/[^/]+/.exec(links[0] ?? '') ?? [];
  const feed = await upgraded.send(await upgraded.token(feedReader), 'GET', `${realm}/changes`);
  const { data } = JSON.parse(feed.text) as { data: { sequence: string; type: string }[] };
  expect(data.length).toBeGreaterThan(4);
  expect(data.map(({ sequence }) => Number(sequence))).toEqual(data.map((_, index) => index + 1));
  const person = { type: 'user_authentication_info', name: 'Later', email: 'later@example.com' };
  const created = await upgraded.send(token, 'POST', `${realm}/user-authentication-info`, { data: person });
  expect(created.status).toBe(201);
  const user = `${realm}/user-authentication-info/${JSON.parse(created.text).data.id}`;
  expect(await upgraded.stop()).toBe(0);

  const refused = await runCommand([oldProgram, 'serve', '--port', '0', '--database', `sqlite:${path}`]);
  expect([refused.code, refused.stdout]).toEqual([1, '']);
  restoreSchema1(path);
  const again = await serve(oldProgram, path);
  expect(await Promise.all(links.map((link) => again.send(token, 'GET', link)))).toEqual(before);
  // What was written since the upgrade is lost.
  expect((await again.send(token, 'GET', user)).status).toBe(404);
  expect(await again.stop()).toBe(0);
});
