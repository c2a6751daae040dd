import { afterEach, describe, expect, test } from 'bun:test';
import { TARGET_RULE } from '../../../src/access/outbound/target.ts';
import { EVENT_NAMES } from '../../../src/deliver/webhooks/targets.ts';
import { LIMITS } from '../../../src/model/limits.ts';
import { type AdminApi, startAdminApi } from './admin_api.ts';

/** Invalid requests about webhook targets. The service does not allow loopback addresses here. */

const api = await startAdminApi();
afterEach(async () => {
  for (const { id } of await api.listAll('/webhooks')) await api.request('DELETE', `/webhooks/${id}`);
});

const TARGET = { name: 'Shop search', url: 'https://search.example/hook', events: '*', realms: '*' };

async function createTarget(data: object = TARGET) {
  const { status, body, headers } = await api.request('POST', '/webhooks', { data });
  expect(status).toBe(201);
  return { path: `/webhooks/${body.data.id}`, etag: headers.get('etag') ?? '', body };
}

describe('invalid webhook requests name every invalid field', () => {
  const OTHER = '01900000-0000-7000-8000-000000000000';
  const ALL = ['name', 'url', 'events', 'realms', 'with_data', 'events_max', 'skipped_client'];
  const url = (address: string): object => ({ ...TARGET, url: address });
  const rows: readonly (readonly [string, object, number, readonly string[]])[] = [
    ['no members', {}, 400, ALL.slice(0, 4)],
    [
      'only invalid values',
      { name: '', url: '', events: [], realms: [], with_data: 1, events_max: 0, skipped_client: '' },
      400,
      ALL,
    ],
    [
      'values of other types',
      { name: 1, url: {}, events: {}, realms: 1, with_data: '', events_max: '1', skipped_client: 1 },
      400,
      ALL,
    ],
    ['a name of two lines', { ...TARGET, name: 'a\nb' }, 400, ['name']],
    ['an unknown event', { ...TARGET, events: [EVENT_NAMES[0], 'user.sneezed'] }, 400, ['events/1']],
    ['a malformed realm ID', { ...TARGET, realms: ['x'] }, 400, ['realms/0']],
    [
      'too many events in a message',
      { ...TARGET, events_max: LIMITS.webhookEventsMax + 1 },
      400,
      ['events_max'],
    ],
    ['a URL without a scheme', url('search.example'), 400, ['url']],
    ['a URL with the scheme ftp', url('ftp://search.example/'), 400, ['url']],
    ['a URL that is too long', url(TARGET.url.padEnd(LIMITS.webhookUrlCharactersMax + 1, 'x')), 400, ['url']],
    ['a URL with the scheme http', url('http://search.example/'), 422, ['url']],
    ['a URL with another port', url('https://search.example:8443/'), 422, ['url']],
    ['a URL with userinfo', url('https://us:secret@search.example/'), 422, ['url']],
    ['a loopback address', url('https://127.0.0.1/'), 422, ['url']],
    ['the name localhost', url('https://localhost/hook'), 422, ['url']],
    ['a name below localhost, with a final dot', url('https://a.localhost./hook'), 422, ['url']],
    ['a private IPv4 address', url('https://10.0.0.1/'), 422, ['url']],
    ['a cloud metadata address', url('https://169.254.169.254/latest'), 422, ['url']],
    ['the address of a cloud platform', url('https://168.63.129.16/'), 422, ['url']],
    ['a private IPv6 address', url('https://[fd00::1]/'), 422, ['url']],
    ['an unknown realm', { ...TARGET, realms: [OTHER] }, 422, ['realms/0']],
    [
      'a private address and an unknown realm',
      { ...url('https://10.0.0.1/'), realms: [OTHER] },
      422,
      ['url', 'realms/0'],
    ],
  ];
  const pointersOf = ({ body }: Awaited<ReturnType<AdminApi['request']>>) =>
    body.errors.map(({ source }) => source?.pointer?.replace('/data/', ''));

  test.each(rows)('create-webhook rejects %s', async (_, data, status, pointers) => {
    const refused = await api.request('POST', '/webhooks', { data });
    expect([refused.status, pointersOf(refused)]).toEqual([status, [...pointers]]);
    expect(await api.listAll('/webhooks')).toEqual([]);
  });

  test.each(rows.slice(1))('update-webhook rejects %s', async (_, data, status, pointers) => {
    const { path, etag } = await createTarget();
    const refused = await api.request('PUT', path, { data });
    expect([refused.status, pointersOf(refused)]).toEqual([status, [...pointers]]);
    expect((await api.request('GET', path)).headers.get('etag')).toBe(etag);
  });

  test('create-webhook rejects a private target with the name of the setting that allows it', async () => {
    const { body } = await api.request('POST', '/webhooks', { data: url('https://localhost/hook') });
    expect(body.errors[0]?.detail).toBe(`data.url: ${TARGET_RULE}`);
  });

  test('create-webhook rejects an unknown start position', async () => {
    const refused = await api.request('POST', '/webhooks', { data: { ...TARGET, from: 'yesterday' } });
    expect([refused.status, pointersOf(refused)]).toEqual([400, ['from']]);
  });

  test('create-webhook accepts a URL of the maximum length', async () => {
    const longest = TARGET.url.padEnd(LIMITS.webhookUrlCharactersMax, 'x');
    expect((await createTarget(url(longest))).body.data.url).toBe(longest);
  });

  test.each([
    [1e300, `must be at most ${LIMITS.secretOverlapHoursMax * 3_600}`],
    [-1e300, 'must be at least 0'],
  ])('rotate-webhook names its own bound to an overlap of %p', async (overlap, rule) => {
    const { path } = await createTarget();
    const refused = await api.request('POST', `${path}/rotate`, { data: { overlap_seconds: overlap } });
    expect(JSON.stringify(refused.body)).toContain(rule);
  });

  test.each([
    [400, undefined],
    [400, 'all'],
    [400, `${OTHER}.0`],
    [400, 42],
    [422, `${OTHER}.1`],
  ])('redeliver-webhook is %p for the message %p', async (status, letter) => {
    const { path } = await createTarget();
    const refused = await api.request('POST', `${path}/redeliver`, { data: { message: letter } });
    expect([refused.status, pointersOf(refused)]).toEqual([status, ['message']]);
  });
});
