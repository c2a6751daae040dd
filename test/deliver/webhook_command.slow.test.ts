import { expect, test } from 'bun:test';
import { LIMITS } from '../../src/model/limits.ts';
import { freshDatabase } from '../support/database.ts';
import { runAuthrealm } from '../support/processes.ts';

/** `authrealm webhook`, as an operator runs it. */

const database = await freshDatabase();
await runAuthrealm(['init', ...database.args]);

const run = (...words: readonly string[]) =>
  runAuthrealm(['webhook', ...words, ...(words.includes('--help') ? [] : database.args)]);

async function json<T>(...words: readonly string[]): Promise<T> {
  const { stdout, stderr, code } = await run(...words, '--json');
  if (code !== 0) throw new Error(stderr);
  return JSON.parse(stdout) as T;
}

type ShownTarget = Readonly<Record<string, unknown>> & { readonly webhook_id: string };

const URL_OF_TARGET = 'https://hooks.example.com/in';
const REALM = '01900000-0000-7000-8000-000000000001';

test('a webhook target is created, listed, changed, disabled, enabled, rotated and deleted', async () => {
  const { secret, ...created } = await json<ShownTarget>(
    'create',
    '--name',
    'search',
    '--url',
    URL_OF_TARGET,
  );
  expect(String(secret)).toMatch(/^whsec_[A-Za-z0-9+/]{43}=$/);
  const id = created.webhook_id;
  expect(created).toMatchObject({
    name: 'search',
    url: URL_OF_TARGET,
    events: '*',
    realms: '*',
    events_max: 1,
  });
  expect(created).toMatchObject({ with_data: false, skipped_client: null, state: 'enabled' });
  expect(await json<ShownTarget[]>('list')).toEqual([
    {
      ...created,
      last_delivery: null,
      last_error: null,
      behind_since: null,
      failing_realms: 0,
      dead_letters: 0,
    },
  ]);

  const events = 'user-authentication-info.created user-authentication-info.deleted';
  const words = ['--event', events, '--realm', REALM, '--events-max', '50', '--with-data', 'true'];
  const changed = await json<ShownTarget>('update', id, ...words, '--skip-client', 'me', '--name', 'found');
  expect(changed).toMatchObject({
    events: events.split(' '),
    realms: [REALM],
    events_max: 50,
    with_data: true,
  });
  expect(changed).toMatchObject({ skipped_client: 'me', name: 'found', url: URL_OF_TARGET });
  const unrestricted = await json<ShownTarget>(
    'update',
    id,
    '--all-events',
    '--all-realms',
    '--skip-client',
    '',
  );
  expect(unrestricted).toMatchObject({ events: '*', realms: '*', skipped_client: null, with_data: true });

  expect(await json<ShownTarget>('update', id, '--state', 'disabled')).toMatchObject({ state: 'disabled' });
  expect(await json<ShownTarget>('update', id, '--state', 'enabled')).toMatchObject({ state: 'enabled' });
  const rotated = await json<ShownTarget>('rotate', id, '--overlap', '2');
  expect(rotated.secret).not.toBe(secret);
  expect(await json<unknown[]>('deliveries', id)).toEqual([]);
  expect(await json<unknown[]>('deliveries', id, '--dead')).toEqual([]);
  expect((await run('redeliver', id, '--all')).stdout).toStartWith('0 dead letters and 0 failed messages');
  expect((await run('delete', '--yes', id)).code).toBe(0);
  expect(await json<ShownTarget[]>('list')).toEqual([]);
  const entries = await database.query<{ action: string }>(
    'select action from act where object = ? order by seq',
    id,
  );
  expect(entries.map(({ action }) => action.split('.')[1])).toEqual([
    ...['created', 'changed', 'changed', 'changed', 'changed', 'rotated', 'deleted'],
  ]);
}, 300_000);

test('--with-data is a flag of webhook create, and needs a value in webhook update', async () => {
  expect((await run('update', '--help')).stdout).toContain('--with-data <BOOLEAN>');
  const created = await json<ShownTarget>('create', '--with-data', '--name', 'a', '--url', URL_OF_TARGET);
  expect(created).toMatchObject({ with_data: true, name: 'a' });
  expect((await run('delete', '--yes', created.webhook_id)).code).toBe(0);
});

test.each([
  [['update', '--state', 'disabled', 'none'], /no webhook target none/],
  [['update', '--state', 'yes', 'none'], /Allowed choices are enabled, disabled/],
  [['delete', '--yes', 'none'], /no webhook target none/],
  [['rotate', 'none'], /no webhook target none/],
  [['create', '--name', 'a', '--url', ''], /^authrealm: --url: must be an absolute http or https URL/m],
  [['create', '--name', 'a', '--url', 'http://example.com/'], /^authrealm: --url: must be an https URL/m],
  [['create', '--name', 'a', '--url', 'https://127.0.0.1/'], /^authrealm: --url: must be/m],
  [
    ['create', '--name', 'a', '--url', URL_OF_TARGET, '--event', 'x'],
    /^authrealm: --event, value 1: must be one of /m,
  ],
  [
    ['create', '--name', 'a', '--url', URL_OF_TARGET, '--events-max', String(LIMITS.webhookEventsMax + 1)],
    /^authrealm: --events-max: must be at most 100/m,
  ],
  [
    ['create', '--name', 'a', '--url', URL_OF_TARGET, '--realm', 'x'],
    /^authrealm: --realm, value 1: must be the identifier of a realm/m,
  ],
  [['create', '--name', 'a', '--url', URL_OF_TARGET, '--from', 'now'], /Allowed choices are present, oldest/],
  [['update', 'none'], /nothing to change/],
  [['update', 'none', '--with-data', 'maybe'], /^authrealm: --with-data: must be true or false/m],
  [['create', '--name', 'a', '--url', URL_OF_TARGET, '--with-data', 'false'], /too many arguments/],
  [['update', 'none', '--event', 'x', '--all-events'], /cannot be used with/],
  [['redeliver', 'none'], /choose messages/],
])('webhook %j is rejected with the reason', async (words, reason) => {
  const { code, stderr } = await run(...words);
  expect([code === 1 || code === 2, reason.test(stderr), stderr]).toEqual([true, true, stderr]);
});
