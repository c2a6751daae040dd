import { expect, test } from 'bun:test';
import {
  keySetAt,
  mintSigningKey,
  rotateSigningKey,
  withdrawSigningKey,
} from '../../../src/access/keys/signing.ts';
import type { SigningKeyInsertion } from '../../../src/access/store/access.ts';
import { FAULTS, Fault } from '../../../src/model/fault.ts';
import { LIMITS } from '../../../src/model/limits.ts';
import { createAuditEntry } from '../../../src/model/log/audit_entry.ts';
import { runAuthrealm } from '../../support/processes.ts';
import { testInProcess } from '../../support/program_service.ts';
import { createFixture, oidcPath } from '../../support/service.ts';
import { type AdminItem, startAdminApi } from './admin_api.ts';

const api = await startAdminApi();

const LIMIT_RULE =
  'at most 32 are in use: withdraw one that does not sign, or wait until the tokens of an old one have ended';
const AT_LIMIT = { code: 'conflict', fieldErrors: [{ rule: LIMIT_RULE }] };

const states = async () =>
  Object.fromEntries((await api.listAll('/signing-keys')).map(({ id, state }) => [id, state]));

test('a new signing key is published before it signs, and can be read at its Location', async () => {
  const [first] = await api.listAll('/signing-keys');
  const created = await api.request('POST', '/signing-keys');
  const { id } = created.body.data;
  expect([created.status, created.body.data]).toEqual([
    201,
    {
      id,
      type: 'signing_key',
      state: 'next',
      signs_from: expect.any(String),
      withdrawn_at: null,
      meta: { created_at: expect.any(String) },
    },
  ]);
  const read = await api.request('GET', created.headers.get('location') ?? '');
  expect([read.status, read.text]).toEqual([200, created.text]);
  expect(await states()).toEqual({ [first?.id ?? '']: 'signs', [id]: 'next' });
  api.service.clock.advance(1_000);
  const published = (await (await api.service.get('/.well-known/jwks.json')).json()) as {
    keys: readonly { kid: string }[];
  };
  expect(published.keys.map(({ kid }) => kid)).toContain(id);
  expect(await api.auditEntriesOf(id)).toMatchObject([
    {
      what: 'signing-key.created',
      actor: api.admin.clientId,
      address: '127.0.0.1',
      detail: { kid: id, signs_from: created.body.data.signs_from ?? '' },
    },
  ]);
});

test('tokens of a withdrawn key are rejected within a second, its caller included; another key signs at once', async () => {
  const { service } = api;
  const fixture = await createFixture(service.db);
  const { clientId, secret } = await service.client('oidc-profile-infos:read');
  const token = await service.grant({ clientId, secret });
  const [signer] = Object.entries(await states()).find(([, state]) => state === 'signs') ?? [];
  const withdrawn = await api.request('POST', `/signing-keys/${signer}/withdraw`, {
    headers: { 'X-Request-Id': 'request-2' },
  });
  expect([withdrawn.status, withdrawn.body.data.state]).toEqual([200, 'withdrawn']);
  service.clock.advance(1_000);
  expect((await service.get(oidcPath(fixture), token)).status).toBe(401);
  expect((await api.request('GET', '/signing-keys')).status).toBe(401);
  expect((await service.get(oidcPath(fixture), await service.grant({ clientId, secret }))).status).toBe(200);

  const newToken = await service.token('admin');
  const again = await api.request('POST', `/signing-keys/${signer}/withdraw`, { token: newToken });
  expect([again.status, again.text]).toEqual([200, withdrawn.text]);
  for (const kid of [crypto.randomUUID(), 'a%00b']) {
    const statuses = [
      (await api.request('GET', `/signing-keys/${kid}`, { token: newToken })).status,
      (await api.request('POST', `/signing-keys/${kid}/withdraw`, { token: newToken })).status,
    ];
    expect([kid, ...statuses]).toEqual([kid, 404, 404]);
  }
  const log = await api.request('GET', '/log?page%5Blimit%5D=100', { token: newToken });
  const entries = (log.body.data as unknown as readonly AdminItem[]).filter(
    ({ object }) => object === signer,
  );
  expect(entries.map(({ what, request_id }) => [what, request_id])).toEqual([
    ['signing-key.created', null],
    ['signing-key.withdrawn', 'request-2'],
  ]);
});

test('list-signing-keys returns all keys in pages of two, with the same states on every page', async () => {
  const { service, ...full } = await startAdminApi();
  const { access } = service.db.engine;
  const created = [];
  for (let count = 0; count < 4; count += 1)
    created.push((await rotateSigningKey(access, service.db.keyring, service.clock)).kid);
  await full.request('POST', `/signing-keys/${created[1]}/withdraw`);
  const all = await full.listAll('/signing-keys?page%5Blimit%5D=2');
  expect(all.map(({ id }) => id).slice(1)).toEqual(created);
  expect(all.map(({ state }) => state)).toEqual(['signs', 'next', 'withdrawn', 'next', 'next']);
});

testInProcess('list-signing-keys reports each state of a key, and the time of its withdrawal', async () => {
  const { clock, db } = api.service;
  const keysById = async () => {
    const token = await api.service.token('admin');
    const { body } = await api.request('GET', '/signing-keys?page%5Blimit%5D=100', { token });
    return new Map((body.data as unknown as readonly AdminItem[]).map((key) => [key.id, key]));
  };
  const [before] = [...(await keysById()).values()].filter(({ state }) => state === 'signs');
  const next = await rotateSigningKey(db.engine.access, db.keyring, clock);
  const concurrent = await mintSigningKey(db.keyring, clock, next.signsFrom);
  const auditEntry = createAuditEntry('signing-key.created', { object: concurrent.kid, detail: {} }, clock);
  await db.engine.access.insertSigningKey(concurrent, { supersededBefore: 0 }, auditEntry);
  const states = async () => {
    const keys = await keysById();
    return [before?.id ?? '', next.kid, concurrent.kid].map((kid) => keys.get(kid)?.state);
  };
  expect(await states()).toEqual(['signs', 'next', 'next']);
  clock.advance(next.signsFrom - clock.now());
  const [first, ...both] = await states();
  // One of two keys that can sign from the same instant signs.
  expect([first, both.sort()]).toEqual(['accepted', ['accepted', 'signs']]);
  clock.advance(LIMITS.tokenLifetimeSecondsMax * 1_000 + LIMITS.clockLeewayMs);
  expect((await states())[0]).toBe('retired');
  const withdrawn = [...(await keysById()).values()].filter(({ withdrawn_at: at }) => at !== null);
  expect(withdrawn.map(({ state }) => state)).toEqual(['withdrawn']);
  expect(Date.parse(String(withdrawn[0]?.withdrawn_at))).toBeLessThan(clock.now());
});

testInProcess(
  `at most ${LIMITS.signingKeysMax} signing keys are in use: one more is 422 until one is withdrawn or its tokens expired`,
  async () => {
    const { service, ...full } = await startAdminApi();
    const create = () => full.request('POST', '/signing-keys');
    const statuses = (answers: readonly { readonly status: number }[]) =>
      Object.fromEntries(
        [...Map.groupBy(answers, ({ status }) => status)].map(([status, { length }]) => [status, length]),
      );
    const answers = await Promise.all(Array.from({ length: LIMITS.signingKeysMax + 3 }, create));
    expect(statuses(answers)).toEqual({ 201: LIMITS.signingKeysMax - 1, 422: 4 });
    const refused = answers.find(({ status }) => status === 422);
    expect(refused?.text).toContain('signing_keys: at most 32 are in use');
    const published = async () =>
      ((await (await service.get('/.well-known/jwks.json')).json()) as { keys: readonly unknown[] }).keys
        .length;
    service.clock.advance(1_000);
    expect(await published()).toBe(LIMITS.signingKeysMax);

    const created = answers.find(({ status }) => status === 201)?.body.data.id;
    expect((await full.request('POST', `/signing-keys/${created}/withdraw`)).status).toBe(200);
    expect(statuses([await create(), await create()])).toEqual({ 201: 1, 422: 1 });

    const refusal = rotateSigningKey(service.db.engine.access, service.db.keyring, service.clock);
    await expect(refusal).rejects.toMatchObject(AT_LIMIT);
    service.clock.advance(2 * LIMITS.tokenLifetimeSecondsMax * 1_000);
    await rotateSigningKey(service.db.engine.access, service.db.keyring, service.clock);
  },
);

testInProcess(
  'the limit of signing keys counts the current signing key, and its replacement after a withdrawal',
  async () => {
    const { service } = await startAdminApi();
    const { access } = service.db.engine;
    const rotate = () => rotateSigningKey(access, service.db.keyring, service.clock);
    service.clock.advance(2 * LIMITS.tokenLifetimeSecondsMax * 1_000);
    for (let created = 1; created < LIMITS.signingKeysMax; created += 1) await rotate();
    await expect(rotate()).rejects.toMatchObject(AT_LIMIT);
    const keys = async () => keySetAt(await access.signingKeys(), service.clock.now());
    expect((await keys()).accepted.size).toBe(LIMITS.signingKeysMax);
    const signer = (await keys()).signer?.kid ?? '';
    await withdrawSigningKey(signer, access, service.db.keyring, service.clock);
    expect((await keys()).accepted.size).toBe(LIMITS.signingKeysMax);
    await expect(rotate()).rejects.toMatchObject(AT_LIMIT);
    const { code, stderr } = await runAuthrealm(['keys', 'rotate', ...service.database.args]);
    expect([code, stderr]).toEqual([1, expect.stringContaining('withdraw one that does not sign')]);
  },
);

test('the OpenAPI document lists every state of a signing key', async () => {
  const document = (await (await api.service.get('/openapi.json')).json()) as {
    readonly components: { readonly schemas: Readonly<Record<string, object>> };
  };
  expect(document.components.schemas.signing_key).toMatchObject({
    properties: {
      data: { properties: { state: { enum: ['signs', 'next', 'accepted', 'retired', 'withdrawn'] } } },
    },
  });
});

testInProcess(
  'create-signing-key is 503 unavailable while the master key changes; other errors keep their own detail',
  async () => {
    let insertion: () => Promise<SigningKeyInsertion> = async () => 'unproven';
    const busy = await startAdminApi({}, (engine) => ({
      ...engine,
      access: {
        ...engine.access,
        insertSigningKey: () => insertion(),
        withdrawSigningKey: async () => false,
      },
    }));
    const create = async () => {
      const { status, body } = await busy.request('POST', '/signing-keys');
      return [status, body.errors[0]?.detail];
    };
    expect(await create()).toEqual([503, FAULTS.unavailable.detail]);
    const [signer] = await busy.listAll('/signing-keys');
    expect((await busy.request('POST', `/signing-keys/${signer?.id}/withdraw`)).status).toBe(503);
    insertion = () => Promise.reject(new Fault('unknown_outcome'));
    expect(await create()).toEqual([503, FAULTS.unknown_outcome.detail]);
  },
);

test('the body of withdraw-signing-key, which has none, is not read', async () => {
  const token = await api.service.token('admin');
  const path = `/admin/v1/signing-keys/${crypto.randomUUID()}/withdraw`;
  const response = await api.service.post(path, token, 'kid=all', { 'Content-Type': 'text/plain' });
  expect(response.status).toBe(404);
});
