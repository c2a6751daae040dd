import { afterAll, beforeAll, describe, expect, test } from 'bun:test';
import type { Received } from '../support/document_caller.ts';
import { mint } from '../support/import_fixtures.ts';
import { type Json, type JsonObject, judgeOf } from '../support/json_schema.ts';
import { AUTHREALM, clientCreate, runCommand } from '../support/processes.ts';
import {
  databaseOfSix,
  houseOfSeven,
  type Said,
  SCOPES,
  SECRET,
  type Shown,
  serveSeven,
  type World,
} from '../support/seventh.ts';

/**
 * A seventh resource touches one description and one migration: everything below is answered by a copy of the program in
 * which nothing else is new, started on a database that the program of six has made. Every answer over HTTP is held to
 * the document of the running service.
 */

const house = await houseOfSeven();
const six = await databaseOfSix();
const { ids, lines } = six;
let world: World;
const send = (name: string, said?: Said) => world.send(name, said);
const make = (more?: Readonly<Record<string, Json>>) => world.make(more);

afterAll(async () => {
  expect(await world.running.stop()).toBe(0);
});

test('a database of six is brought up by a start, and by nothing else', async () => {
  const create = ['client', 'create', '--name', 'n', '--scope', SCOPES, ...six.database.words];
  const refused = await runCommand([house.authrealm, ...create]);
  const reason = expect.stringContaining('has schema 2, this program needs 3');
  expect([refused.code, refused.stderr]).toEqual([1, reason]);
  world = await serveSeven(house, six);
  for (const [name, id, line] of [
    ['oidc-profile', ids.oidc, lines.oidc],
    ['password-profile', ids.passwords, lines.passwords],
    ['user-authentication-info', ids.user, lines.user],
    ['user-authentication-password-profile-info', ids.name, lines.name],
  ] as const) {
    expect((await send(`get-${name}`, { id })).body).toMatchObject({ data: { id, meta: line.meta } });
  }
  // The program of six refuses it from now on, and knows no such scope.
  const older = await runCommand([AUTHREALM, 'serve', '--port', '0', ...six.database.words]);
  expect([older.code, older.stderr]).toEqual([1, expect.stringContaining('has schema 3')]);
  expect((await clientCreate(six.database, 'devices:read')).code).toBe(2);
}, 300_000);

const eventsOf = (id: string) =>
  six.database.ask<{ event: string; members: string; user_id: string }>(
    'select event, members, user_id from change where record_id = ? order by seq',
    id,
  );

const textOf = (value: unknown): string =>
  value instanceof Uint8Array ? Buffer.from(value).toString('latin1') : String(value);

const dataOf = ({ body }: Received): Shown => (body as unknown as { data: Shown }).data;

test('it is created, read, changed and removed; each write moves its user and leaves its change', async () => {
  const before = (await send('get-user-authentication-info', { id: ids.user })).headers.get('etag');
  const said = world.fresh({ transports: ['usb', 'nfc'], relationships: { maker: 'Yubico' }, pinned: true });
  const made = await send('create-device', { data: said });
  const data = dataOf(made);
  const path = `${world.url}/v2/authentication-realms/${ids.realm}/user-authentication-info/${ids.user}/devices/${data.id}`;
  expect(made.headers.get('location')).toBe(path);
  const { attestation: _, pin: __, pinned: ___, ...visible } = said;
  const [{ id: store } = { id: '' }] = await six.database.ask<{ id: string }>(
    'select store_id as id from instance',
  );
  expect(made.body).toEqual({
    data: {
      ...visible,
      ...{ id: data.id, note: null, state: 'active', address: null },
      meta: { level: 'low', created_at: expect.any(String), updated_at: expect.any(String) },
    },
    links: { self: path, enrolment: `${world.url}/oidc-idp/devices/${store}/${ids.realm}/${data.id}?step=1` },
  });
  const read = await send('get-device', { id: data.id });
  expect([read.status, read.text]).toEqual([200, made.text]);
  const etag = read.headers.get('etag') ?? '';
  expect((await send('get-device', { id: data.id, headers: { 'If-None-Match': etag } })).status).toBe(304);
  expect((await send('visit-enrolment', { path: { store: store ?? '', realm: ids.realm } })).status).toBe(
    501,
  );

  const change = { type: 'device', state: 'lost', note: 'ausgemustert', password_profile_id: mint() };
  const headers = { 'If-Match': etag };
  const changed = await send('update-device', { id: data.id, data: change, headers });
  expect(changed.body).toMatchObject({ data: { ...visible, state: 'lost', note: 'ausgemustert' } });
  expect((await send('update-device', { id: data.id, data: change, headers })).status).toBe(412);
  expect((await send('delete-device', { id: data.id, headers })).status).toBe(412);
  expect((await send('delete-device', { id: data.id })).status).toBe(204);
  expect((await send('get-device', { id: data.id })).status).toBe(404);

  expect(await eventsOf(data.id)).toEqual([
    { event: 'device.created', members: '', user_id: ids.user },
    { event: 'device.updated', members: 'note state', user_id: ids.user },
    { event: 'device.deleted', members: '', user_id: ids.user },
  ]);
  const entries = await six.database.ask<object>('select * from change');
  const kept = entries.flatMap((entry) => Object.values(entry).map(textOf));
  expect(kept.join('\n')).not.toMatch(/serial-number|Handy|ausgemustert/);
  expect(entries).toContainEqual(
    expect.objectContaining({ event: 'device.created', personal: expect.anything() }),
  );
  const after = (await send('get-user-authentication-info', { id: ids.user })).headers.get('etag');
  expect(after).not.toBe(before);
  expect((await eventsOf(ids.user)).filter(({ event }) => event.endsWith('.updated'))).toHaveLength(3);
});

test('its secrets are kept and never told, and a repeated request makes one record', async () => {
  const data = world.fresh();
  const headers = { 'Idempotency-Key': `key-${ids.realm}` };
  const first = await send('create-device', { data, headers });
  const again = await send('create-device', { data, headers });
  expect([again.status, again.text]).toEqual([201, first.text]);
  const other = await send('create-device', { data: world.fresh(), headers });
  expect(other.status).toBe(422);
  const { id } = dataOf(first);
  const [row] = await six.database.ask<{
    attestation_sealed: Uint8Array;
    pin_hash: string;
    pin_normalised: number;
  }>('select * from device where id = ?', id);
  expect(Buffer.from(row?.attestation_sealed ?? []).includes(SECRET)).toBe(false);
  expect(row?.pin_hash).toMatch(/^\$argon2id\$/);
  expect(row?.pin_normalised).toBe(1);
  expect(first.text).not.toMatch(new RegExp(`${SECRET}|argon2|pin`));
});

/** What is wrong with a POST of it, and how that is answered. */
const WRONG: [what: string, said: Readonly<Record<string, Json>>, status: number, detail: string][] = [
  ['another type', { type: 'devices' }, 400, 'data.type: must be device'],
  ['no serial', { serial: null }, 400, 'data.serial: must be a string'],
  ['a blank label', { label: ' ' }, 400, 'data.label: must not be blank'],
  ['an unknown state', { state: 'sold' }, 400, 'data.state: must be one of active, lost'],
  [
    'too many transports',
    { transports: ['a', 'b', 'c', 'd', 'e'] },
    400,
    'data.transports: must have at most 4',
  ],
  ['an empty secret', { attestation: '' }, 400, 'data.attestation: must not be blank'],
  ['a short password', { pin: 'short' }, 400, 'data.pin: '],
  [
    'an unknown profile',
    { password_profile_id: mint() },
    422,
    'data.password_profile_id: must name a record',
  ],
  [
    'a profile of another kind',
    { password_profile_id: ids.oidc },
    422,
    'data.password_profile_id: must name',
  ],
  ['a serial that is taken', { serial: 'taken' }, 422, 'data.serial: must be unique in the realm'],
];

describe('what breaks its rules is refused by name', () => {
  beforeAll(() => make({ serial: 'taken' }));

  test.each(WRONG)('%s', async (_what, said, status, detail) => {
    const { status: answered, body } = await send('create-device', { data: world.fresh(said) });
    const [error] = (body as unknown as { errors: { detail: string }[] }).errors;
    expect([answered, error?.detail]).toEqual([status, expect.stringContaining(detail)]);
  });

  test('a serial that differs in case is another one, a change to one that is taken is refused', async () => {
    const { id } = await make({ serial: 'TAKEN' });
    const moved = await send('update-device', { id, data: { type: 'device', serial: 'taken' } });
    const foreign = await send('update-device', { id, data: { type: 'device', id: ids.user } });
    expect([moved.status, foreign.status]).toEqual([422, 422]);
  });
});

const OPERATIONS: [name: string, said: () => Said, success: number][] = [
  ['list-device', () => ({}), 200],
  ['create-device', () => ({ data: world.fresh() }), 201],
  ['get-device', () => ({}), 200],
  ['update-device', () => ({ data: { type: 'device', state: 'lost' } }), 200],
  ['find-device', () => ({ query: 'filter=eq(serial,x)' }), 200],
  ['search-device', () => ({ body: { filter: 'eq(serial,x)' } }), 200],
  ['delete-device', () => ({}), 204],
];

test.each(OPERATIONS)(
  '%s asks for a token, its scope, and what stands above',
  async (name, said, success) => {
    const { id } = await make();
    const isWrite = /^(create|update|delete)/.test(name);
    const others = await world.granted(SCOPES.replace(isWrite ? ' devices:write' : ' devices:read', ''));
    expect((await send(name, { ...said(), id, token: undefined })).status).toBe(401);
    expect((await send(name, { ...said(), id, token: others })).status).toBe(403);
    expect((await send(name, { ...said(), id, path: { realm_id: mint() } })).status).toBe(404);
    if (!/^(find|search)/.test(name))
      expect((await send(name, { ...said(), id, path: { user_id: mint() } })).status).toBe(404);
    expect((await send(name, { ...said(), id })).status).toBe(success);
  },
);

describe('lists and lookups', () => {
  const found = ({ body }: Received) =>
    (body as unknown as { data: { id: string }[] }).data.map(({ id }) => id);
  let blue: string;
  let red: string;
  beforeAll(async () => {
    blue = (await make({ serial: 'blue,1', label: 'STRASSE blau' })).id;
    red = (await make({ serial: 'red', label: 'Straße rot', note: 'old' })).id;
  });

  test('a list is narrowed and sorted by what the description says', async () => {
    const list = async (query: string) => found(await send('list-device', { query }));
    expect(await list('filter=like(label,strasse*)')).toEqual([red, blue]);
    expect(await list('filter=like(label,strasse*)&sort=created_at&page[limit]=1')).toEqual([blue]);
    expect(await list('filter=ilike(label,*rot):eq(note,OLD)')).toEqual([red]);
    expect(await list(`filter=(eq(serial,"blue,1")|eq(serial,red)):is_null(note)`)).toEqual([blue]);
    expect((await list('page[after]=')).slice(0, 2)).toEqual([red, blue]);
    expect((await send('list-device', { query: 'filter=eq(pin,x)' })).status).toBe(400);
    expect((await send('list-device', { query: 'filter=like(serial,r*)' })).status).toBe(400);
  });

  test('its records are found in their realm, by URL and by body', async () => {
    const told = await send('find-device', { query: 'filter=eq(label,STRASSE%20ROT)' });
    expect(told.body).toMatchObject({
      data: [{ id: red, relationships: { user_authentication_info: { data: { id: ids.user } } } }],
    });
    const search = (filter: string) => send('search-device', { body: { filter } });
    expect(found(await search('eq(serial,"blue,1")'))).toEqual([blue]);
    expect(found(await search('eq(serial,RED)'))).toEqual([]);
    expect(found(await search(`in(id,${red},${blue},${mint()})`)).sort()).toEqual([red, blue].sort());
    expect((await search('like(label,s*)')).status).toBe(400);
    expect((await send('find-device', { query: 'page[limit]=1' })).status).toBe(400);
  });
});

test('the document has it: operations, schemas, scopes', async () => {
  const judge = judgeOf(world.document);
  for (const { body, answers } of world.operations.filter(({ path }) => path.includes('/devices'))) {
    const media = Object.values(answers).flatMap(({ content = {} }) => Object.values(content));
    for (const { schema, example, examples } of [...media, ...(body ? [body.media] : [])]) {
      const told = examples ? Object.values(examples).map(({ value }) => value) : [example as Json];
      expect(told.length).toBeGreaterThan(0);
      for (const each of told) expect(judge(schema, each)).toEqual([]);
    }
  }
  const names = world.operations.filter(({ path }) => path.includes('/devices')).map(({ id }) => id);
  expect(names.sort()).toEqual(['visit-enrolment', ...OPERATIONS.map(([name]) => name)].sort());
  const { schemas } = world.document.components as { schemas: JsonObject };
  expect(Object.keys(schemas).filter((name) => /^device\b/.test(name))).toContain('device.create');
  const metadata = await fetch(`${world.url}/.well-known/oauth-authorization-server`);
  const { scopes_supported } = (await metadata.json()) as { scopes_supported: string[] };
  const place = scopes_supported.indexOf('devices:read');
  expect(scopes_supported.slice(place - 1, place + 3)).toEqual([
    ...['password-profile-infos:write', 'devices:read', 'devices:write', 'users:read'],
  ]);
});
