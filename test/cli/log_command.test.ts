import { expect, test } from 'bun:test';
import { runAuthrealm } from '../support/processes.ts';
import { createFixture, startService } from '../support/service.ts';

/** `authrealm log`: the changes of realms on the command line. */

const service = await startService();
const jane = await createFixture(service.db);
const writer = await service.client('users:write');
const path = `/v2/authentication-realms/${jane.realm}/user-authentication-info/${jane.user}`;
const data = { type: 'user_authentication_info', name: 'Renamed once' };
expect((await service.put(path, await service.grant(writer), { data })).status).toBe(200);
const log = (...words: string[]) => runAuthrealm(['log', ...words, ...service.database.args]);

test('log prints the changes that match, newest first, and the values before and after with --json', async () => {
  const all = await log();
  const [heading, newest, ...older] = all.stdout.trimEnd().split('\n');
  expect(heading).toMatch(/^at +log +what +object +actor +members$/);
  expect(newest?.split(/ +/).slice(2)).toEqual([
    'user-authentication-info.updated',
    jane.user,
    writer.clientId,
    '["name"]',
  ]);
  expect(older).toHaveLength(6);
  const { stdout } = await log('--actor', writer.clientId, '--json');
  const found = JSON.parse(stdout);
  expect(found).toMatchObject({
    log: jane.realm,
    what: 'user-authentication-info.updated',
    object: jane.user,
    actor: writer.clientId,
    personal: { before: { name: 'Jane Doe' }, after: { name: 'Renamed once' } },
  });
  expect(
    (await log('--realm', jane.realm, '--user', jane.user, '--limit', '2')).stdout.split('\n'),
  ).toHaveLength(4);
  expect((await log('--realm', crypto.randomUUID())).stdout).toBe('');
});

test('log rejects an ID that is none, and a time that is none', async () => {
  const [user, time] = [await log('--user', 'jane'), await log('--from', 'yesterday')];
  expect([user.code, user.stderr]).toEqual([2, expect.stringContaining('must be the identifier of a user')]);
  expect([time.code, time.stderr]).toEqual([2, expect.stringContaining('must be an instant')]);
});
