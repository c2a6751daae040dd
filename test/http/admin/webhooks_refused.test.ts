import { afterAll, afterEach, beforeAll, describe, expect, test } from 'bun:test';
import { LIMITS } from '../../../src/domain/limits.ts';
import { EVENT_NAMES } from '../../../src/events/webhooks/targets.ts';
import { type Office, openOffice } from './office.ts';

/** What is said about webhook targets and is wrong; nothing here may be sent to this machine. */

let office: Office;

beforeAll(async () => {
  office = await openOffice();
});
afterAll(() => office.service.stop());
afterEach(async () => {
  for (const { id } of await office.all('/webhooks')) await office.ask('DELETE', `/webhooks/${id}`);
});

const WISH = { name: 'Shop search', url: 'https://search.example/hook', events: '*', realms: '*' };

async function make(data: object = WISH) {
  const { status, body, headers } = await office.ask('POST', '/webhooks', { data });
  expect(status).toBe(201);
  return { path: `/webhooks/${body.data.id}`, etag: headers.get('etag') ?? '', body };
}

describe('what is wrong is named, all of it', () => {
  const OTHER = '01900000-0000-7000-8000-000000000000';
  const ALL = ['name', 'url', 'events', 'realms', 'with_data', 'events_max', 'skipped_client'];
  const url = (said: string): object => ({ ...WISH, url: said });
  const rows: readonly (readonly [string, object, number, readonly string[]])[] = [
    ['nothing said', {}, 400, ALL.slice(0, 4)],
    [
      'everything wrong',
      { name: '', url: '', events: [], realms: [], with_data: 1, events_max: 0, skipped_client: '' },
      400,
      ALL,
    ],
    [
      'other types',
      { name: 1, url: {}, events: {}, realms: 1, with_data: '', events_max: '1', skipped_client: 1 },
      400,
      ALL,
    ],
    ['a name of two lines', { ...WISH, name: 'a\nb' }, 400, ['name']],
    ['an event that is none', { ...WISH, events: [EVENT_NAMES[0], 'user.sneezed'] }, 400, ['events/1']],
    ['a realm that is none', { ...WISH, realms: ['x'] }, 400, ['realms/0']],
    [
      'more events than a message holds',
      { ...WISH, events_max: LIMITS.webhookEventsMax + 1 },
      400,
      ['events_max'],
    ],
    ['what is no URL', url('search.example'), 400, ['url']],
    ['a scheme that nobody sends to', url('ftp://search.example/'), 400, ['url']],
    ['a URL that is too long', url(WISH.url.padEnd(LIMITS.webhookUrlCharactersMax + 1, 'x')), 400, ['url']],
    ['http', url('http://search.example/'), 422, ['url']],
    ['another port', url('https://search.example:8443/'), 422, ['url']],
    ['userinfo', url('https://us:secret@search.example/'), 422, ['url']],
    ['this machine', url('https://127.0.0.1/'), 422, ['url']],
    ['an address inside', url('https://10.0.0.1/'), 422, ['url']],
    ['where machines tell about themselves', url('https://169.254.169.254/latest'), 422, ['url']],
    ['an address inside, in IPv6', url('https://[fd00::1]/'), 422, ['url']],
    ['a realm that nobody has', { ...WISH, realms: [OTHER] }, 422, ['realms/0']],
    ['both', { ...url('https://10.0.0.1/'), realms: [OTHER] }, 422, ['url', 'realms/0']],
  ];
  const pointersOf = ({ body }: Awaited<ReturnType<Office['ask']>>) =>
    body.errors.map(({ source }) => source?.pointer?.replace('/data/', ''));

  test.each(rows)('to make one: %s', async (_, data, status, pointers) => {
    const refused = await office.ask('POST', '/webhooks', { data });
    expect([refused.status, pointersOf(refused)]).toEqual([status, [...pointers]]);
    expect(await office.all('/webhooks')).toEqual([]);
  });

  test.each(rows.slice(1))('to change one: %s', async (_, data, status, pointers) => {
    const { path, etag } = await make();
    const refused = await office.ask('PUT', path, { data });
    expect([refused.status, pointersOf(refused)]).toEqual([status, [...pointers]]);
    expect((await office.ask('GET', path)).headers.get('etag')).toBe(etag);
  });

  test('where it begins', async () => {
    const refused = await office.ask('POST', '/webhooks', { data: { ...WISH, from: 'yesterday' } });
    expect([refused.status, pointersOf(refused)]).toEqual([400, ['from']]);
  });

  test('the longest URL is one', async () => {
    const longest = WISH.url.padEnd(LIMITS.webhookUrlCharactersMax, 'x');
    expect((await make(url(longest))).body.data.url).toBe(longest);
  });

  test.each([[-1], [LIMITS.secretOverlapHoursMax * 3_600 + 1], [1.5], ['1'], [null]])(
    'an overlap of %p',
    async (overlap) => {
      const { path, etag } = await make();
      const refused = await office.ask('POST', `${path}/rotate`, { data: { overlap_seconds: overlap } });
      expect([refused.status, pointersOf(refused)]).toEqual([400, ['overlap_seconds']]);
      expect((await office.ask('GET', path)).headers.get('etag')).toBe(etag);
    },
  );

  test.each([
    [400, undefined],
    [400, 'all'],
    [400, `${OTHER}.0`],
    [400, 42],
    [422, `${OTHER}.1`],
  ])('to send again, %p: %p', async (status, letter) => {
    const { path } = await make();
    const refused = await office.ask('POST', `${path}/redeliver`, { data: { dead_letter: letter } });
    expect([refused.status, pointersOf(refused)]).toEqual([status, ['dead_letter']]);
  });

  test.each([
    ['', 'page%5Blimit%5D=0'],
    ['', 'page%5Bafter%5D=a%20b'],
    ['/deliveries', 'page%5Blimit%5D=101'],
    ['/deliveries', 'page%5Bafter%5D=1'],
    ['/dead-letters', 'page%5Bafter%5D=1'],
  ])('a list %p by %s', async (below, query) => {
    const { path } = await make();
    const { status, body } = await office.ask('GET', `${below ? path + below : '/webhooks'}?${query}`);
    expect([status, body.errors.map(({ source }) => source?.parameter)]).toEqual([
      400,
      [decodeURIComponent(query).split('=')[0]],
    ]);
  });

  test('404 for a target that nobody has, 403 for whoever is no administrator', async () => {
    const token = await office.service.token('profile-infos:read changes:read');
    const { path } = await make();
    for (const [method, below, data] of [
      ['GET', '', undefined],
      ['PUT', '', { name: 'x' }],
      ['PUT', '', { url: 'https://10.0.0.1/' }],
      ['DELETE', '', undefined],
      ['POST', '/rotate', {}],
      ['POST', '/disable', undefined],
      ['POST', '/enable', undefined],
      ['GET', '/deliveries', undefined],
      ['GET', '/dead-letters', undefined],
      ['POST', '/redeliver', { dead_letter: '*' }],
    ] as const) {
      const unknown = await office.ask(method, `/webhooks/${OTHER}${below}`, { data });
      const refused = await office.ask(method, path + below, { data, token });
      expect([method, below, unknown.status, refused.status]).toEqual([method, below, 404, 403]);
    }
    for (const [method, data] of [['GET'], ['POST', WISH]] as const) {
      expect((await office.ask(method, '/webhooks', { data, token })).status).toBe(403);
    }
  });
});
