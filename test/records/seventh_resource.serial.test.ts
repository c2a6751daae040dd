import { afterAll, beforeAll, describe, expect, test } from 'bun:test';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { freshFolder } from '../support/folder.ts';
import { mintId } from '../support/import_fixtures.ts';
import { type Json, type JsonObject, openSchemaValidator } from '../support/json_schema.ts';
import { ofRecord } from '../support/log_rows.ts';
import type { OperationResponse } from '../support/openapi_client.ts';
import { AUTHREALM, runClientCreate, runCommand } from '../support/processes.ts';
import {
  createSevenResourceProgram,
  createSixResourceDatabase,
  type RequestInput,
  SCOPES,
  SECRET,
  type SevenResourceService,
  type ShownRecord,
  startSevenResourceService,
} from '../support/seventh_resource.ts';

/**
 * A new resource needs one description and one migration. These tests run a copy of the program with only those two
 * added, on a database that the program without them created. Every answer over HTTP is validated against the OpenAPI
 * document of the running service.
 */

const program = await createSevenResourceProgram();
const base = await createSixResourceDatabase();
const { ids, lines } = base;
let service: SevenResourceService;
const send = (name: string, request?: RequestInput) => service.send(name, request);
const createDevice = (more?: Readonly<Record<string, Json>>) => service.createDevice(more);

afterAll(async () => {
  expect(await service.running.stop()).toBe(0);
});

test('a database without the added resource is migrated by a start, and by no other command', async () => {
  const create = ['client', 'create', '--name', 'n', '--scope', SCOPES, ...base.database.args];
  const refused = await runCommand([program.authrealm, ...create]);
  const reason = expect.stringContaining('has schema 1, but this program needs 2');
  expect([refused.code, refused.stderr]).toEqual([1, reason]);
  service = await startSevenResourceService(program, base);
  for (const [name, id, line] of [
    ['oidc-profile', ids.oidc, lines.oidc],
    ['password-profile', ids.passwords, lines.passwords],
    ['user-authentication-info', ids.user, lines.user],
    ['user-authentication-password-profile-info', ids.name, lines.name],
  ] as const) {
    expect((await send(`get-${name}`, { id })).body).toMatchObject({ data: { id, meta: line.meta } });
  }
  // The program without the resource refuses it from now on, and does not know its scopes.
  const older = await runCommand([AUTHREALM, 'serve', '--port', '0', ...base.database.args]);
  expect([older.code, older.stderr]).toEqual([1, expect.stringContaining('has schema 2')]);
  expect((await runClientCreate(base.database, 'devices:read')).code).toBe(2);
}, 300_000);

/** The number of its event in the log: that of the resource, and of the verb. */
const DEVICE_CREATED = 7 * 8 + 1;

interface LogLine {
  readonly what: string;
  readonly user_id?: string;
  readonly object?: string;
  readonly members?: readonly string[];
}

/** The log entries of a record, as the program exports them. */
async function entriesOf(id: string) {
  const file = join(freshFolder(), 'log.ndjson');
  await runCommand([program.authrealm, 'audit', 'verify', '--export', file, ...base.database.args]);
  const lines = readFileSync(file, 'utf8')
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line) as LogLine);
  const ofRecord = lines.filter(({ object }) => object === id);
  return ofRecord.map(({ what, members, user_id }) => ({ what, members, user_id }));
}

const textOf = (value: unknown): string =>
  value instanceof Uint8Array ? Buffer.from(value).toString('latin1') : String(value);

const dataOf = ({ body }: OperationResponse): ShownRecord => (body as unknown as { data: ShownRecord }).data;

test('a record of the added resource is created, read, changed and removed; each write updates its user', async () => {
  const before = (await send('get-user-authentication-info', { id: ids.user })).headers.get('etag');
  const input = service.newDevice({
    transports: ['usb', 'nfc'],
    relationships: { maker: 'Yubico' },
    pinned: true,
  });
  const made = await send('create-device', { data: input });
  const data = dataOf(made);
  const path = `${service.url}/v2/authentication-realms/${ids.realm}/user-authentication-info/${ids.user}/devices/${data.id}`;
  expect(made.headers.get('location')).toBe(path);
  const { attestation: _, pin: __, pinned: ___, ...visible } = input;
  const [{ id: store } = { id: '' }] = await base.database.query<{ id: string }>(
    'select store_id as id from instance',
  );
  expect(made.body).toEqual({
    data: {
      ...visible,
      ...{ id: data.id, note: null, state: 'active', address: null },
      meta: { level: 'low', created_at: expect.any(String), updated_at: expect.any(String) },
    },
    links: {
      self: path,
      enrolment: `${service.url}/oidc-idp/devices/${store}/${ids.realm}/${data.id}?step=1`,
    },
  });
  const read = await send('get-device', { id: data.id });
  expect([read.status, read.text]).toEqual([200, made.text]);
  const etag = read.headers.get('etag') ?? '';
  expect((await send('get-device', { id: data.id, headers: { 'If-None-Match': etag } })).status).toBe(304);

  const change = { type: 'device', state: 'lost', note: 'ausgemustert', password_profile_id: mintId() };
  const headers = { 'If-Match': etag };
  const changed = await send('update-device', { id: data.id, data: change, headers });
  expect(changed.body).toMatchObject({ data: { ...visible, state: 'lost', note: 'ausgemustert' } });
  expect((await send('update-device', { id: data.id, data: change, headers })).status).toBe(412);
  expect((await send('delete-device', { id: data.id, headers })).status).toBe(412);
  expect((await send('delete-device', { id: data.id })).status).toBe(204);
  expect((await send('get-device', { id: data.id })).status).toBe(404);

  expect(await entriesOf(data.id)).toEqual([
    { what: 'device.created', members: undefined, user_id: ids.user },
    { what: 'device.updated', members: ['note', 'state'], user_id: ids.user },
    { what: 'device.deleted', members: undefined, user_id: ids.user },
  ]);
  const entries = await base.database.query<object>('select * from log_entry');
  const values = entries.flatMap((entry) => Object.values(entry).map(textOf));
  expect(values.join('\n')).not.toMatch(/serial-number|Handy|ausgemustert/);
  expect(entries).toContainEqual(
    expect.objectContaining({ event: DEVICE_CREATED, personal: expect.anything() }),
  );
  const after = (await send('get-user-authentication-info', { id: ids.user })).headers.get('etag');
  expect(after).not.toBe(before);
  expect((await entriesOf(ids.user)).filter(({ what }) => what.endsWith('.updated'))).toHaveLength(3);
});

test('secrets of the added resource are stored and never returned; a repeated request creates one record', async () => {
  const data = service.newDevice();
  const headers = { 'Idempotency-Key': `key-${ids.realm}` };
  const first = await send('create-device', { data, headers });
  const again = await send('create-device', { data, headers });
  expect([again.status, again.text]).toEqual([201, first.text]);
  const other = await send('create-device', { data: service.newDevice(), headers });
  expect(other.status).toBe(422);
  const { id } = dataOf(first);
  const [row] = await base.database.query<{
    attestation_sealed: Uint8Array;
    pin_hash: string;
    pin_normalised: number;
  }>(`select * from device where ${ofRecord(base.database.address.engine)}`, id);
  expect(Buffer.from(row?.attestation_sealed ?? []).includes(SECRET)).toBe(false);
  expect(row?.pin_hash).toMatch(/^\$argon2id\$/);
  expect(row?.pin_normalised).toBe(1);
  expect(first.text).not.toMatch(new RegExp(`${SECRET}|argon2|pin`));
});

/** Invalid members of a POST, each with the expected answer. */
const WRONG: [what: string, members: Readonly<Record<string, Json>>, status: number, detail: string][] = [
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
    { password_profile_id: mintId() },
    422,
    'data.password_profile_id: must name a record',
  ],
  [
    'a profile of another kind',
    { password_profile_id: ids.oidc },
    422,
    'data.password_profile_id: must name',
  ],
  ['a serial in use', { serial: 'taken' }, 422, 'data.serial: must be unique in the realm'],
];

describe('invalid records of the added resource', () => {
  beforeAll(() => createDevice({ serial: 'taken' }));

  test.each(WRONG)(
    'a device with %s is refused with the name of the member',
    async (_what, members, status, detail) => {
      const { status: answered, body } = await send('create-device', { data: service.newDevice(members) });
      const [error] = (body as unknown as { errors: { detail: string }[] }).errors;
      expect([answered, error?.detail]).toEqual([status, expect.stringContaining(detail)]);
    },
  );

  test('a serial that differs in case is distinct, and a change to one in use is refused', async () => {
    const { id } = await createDevice({ serial: 'TAKEN' });
    const moved = await send('update-device', { id, data: { type: 'device', serial: 'taken' } });
    const foreign = await send('update-device', { id, data: { type: 'device', id: ids.user } });
    expect([moved.status, foreign.status]).toEqual([422, 422]);
  });
});

const OPERATIONS: [name: string, request: () => RequestInput, success: number][] = [
  ['list-device', () => ({}), 200],
  ['create-device', () => ({ data: service.newDevice() }), 201],
  ['get-device', () => ({}), 200],
  ['update-device', () => ({ data: { type: 'device', state: 'lost' } }), 200],
  ['find-device', () => ({ query: 'filter=eq(serial,x)' }), 200],
  ['search-device', () => ({ body: { filter: 'eq(serial,x)' } }), 200],
  ['delete-device', () => ({}), 204],
];

test.each(OPERATIONS)(
  '%s requires a token, its scope and existing parents',
  async (name, request, success) => {
    const { id } = await createDevice();
    const isWrite = /^(create|update|delete)/.test(name);
    const others = await service.requestToken(
      SCOPES.replace(isWrite ? ' devices:write' : ' devices:read', ''),
    );
    expect((await send(name, { ...request(), id, token: undefined })).status).toBe(401);
    expect((await send(name, { ...request(), id, token: others })).status).toBe(403);
    expect((await send(name, { ...request(), id, path: { realm_id: mintId() } })).status).toBe(404);
    if (!/^(find|search)/.test(name))
      expect((await send(name, { ...request(), id, path: { user_id: mintId() } })).status).toBe(404);
    expect((await send(name, { ...request(), id })).status).toBe(success);
  },
);

describe('lists and lookups of the added resource', () => {
  const found = ({ body }: OperationResponse) =>
    (body as unknown as { data: { id: string }[] }).data.map(({ id }) => id);
  let blue: string;
  let red: string;
  beforeAll(async () => {
    blue = (await createDevice({ serial: 'blue,1', label: 'STRASSE blau' })).id;
    red = (await createDevice({ serial: 'red', label: 'Straße rot', note: 'old' })).id;
  });

  test('a list of the added resource is filtered and sorted by the members in its description', async () => {
    const list = async (query: string) => found(await send('list-device', { query }));
    expect(await list('filter=like(label,strasse*)')).toEqual([red, blue]);
    expect(await list('filter=like(label,strasse*)&sort=created_at&page[limit]=1')).toEqual([blue]);
    expect(await list('filter=ilike(label,*rot):eq(note,OLD)')).toEqual([red]);
    expect(await list(`filter=(eq(serial,"blue,1")|eq(serial,red)):is_null(note)`)).toEqual([blue]);
    expect((await list('page[after]=')).slice(0, 2)).toEqual([red, blue]);
    expect((await send('list-device', { query: 'filter=eq(pin,x)' })).status).toBe(400);
    expect((await send('list-device', { query: 'filter=like(serial,r*)' })).status).toBe(400);
  });

  test('a reverse lookup finds the added resource in its realm, by URL and by body', async () => {
    const answer = await send('find-device', { query: 'filter=eq(label,STRASSE%20ROT)' });
    expect(answer.body).toMatchObject({
      data: [{ id: red, relationships: { user_authentication_info: { data: { id: ids.user } } } }],
    });
    const search = (filter: string) => send('search-device', { body: { filter } });
    expect(found(await search('eq(serial,"blue,1")'))).toEqual([blue]);
    expect(found(await search('eq(serial,RED)'))).toEqual([]);
    expect(found(await search(`in(id,${red},${blue},${mintId()})`)).sort()).toEqual([red, blue].sort());
    expect((await search('like(label,s*)')).status).toBe(400);
    expect((await send('find-device', { query: 'page[limit]=1' })).status).toBe(400);
  });
});

test('the OpenAPI document and the metadata have the operations, schemas and scopes of the resource', async () => {
  const validate = openSchemaValidator(service.document);
  for (const { body, responses } of service.operations.filter(({ path }) => path.includes('/devices'))) {
    const media = Object.values(responses).flatMap(({ content = {} }) => Object.values(content));
    for (const { schema, example, examples } of [...media, ...(body ? [body.media] : [])]) {
      const shown = examples ? Object.values(examples).map(({ value }) => value) : [example as Json];
      expect(shown.length).toBeGreaterThan(0);
      for (const each of shown) expect(validate(schema, each)).toEqual([]);
    }
  }
  const names = service.operations.filter(({ path }) => path.includes('/devices')).map(({ id }) => id);
  expect(names.sort()).toEqual(OPERATIONS.map(([name]) => name).sort());
  const { schemas } = service.document.components as { schemas: JsonObject };
  expect(Object.keys(schemas).filter((name) => /^device\b/.test(name))).toContain('device.create');
  const metadata = await fetch(`${service.url}/.well-known/oauth-authorization-server`);
  const { scopes_supported } = (await metadata.json()) as { scopes_supported: string[] };
  const index = scopes_supported.indexOf('devices:read');
  expect(scopes_supported.slice(index - 1, index + 3)).toEqual([
    ...['password-profile-infos:write', 'devices:read', 'devices:write', 'users:read'],
  ]);
});
