import { afterAll, beforeAll, expect, test } from 'bun:test';
import {
  keySetAt,
  mintSigningKey,
  rotateSigningKey,
  withdrawSigningKey,
} from '../../../src/auth/keys/signing.ts';
import type { SigningKeyInsertion } from '../../../src/auth/port.ts';
import { createAuditEntry } from '../../../src/domain/audit_entry.ts';
import { FAULTS, Fault } from '../../../src/domain/fault.ts';
import { LIMITS } from '../../../src/domain/limits.ts';
import { AUTHREALM, runCommand } from '../../support/processes.ts';
import { oidcPath, plant } from '../../support/service.ts';
import { type Item, type Office, openOffice, tokenOf } from './office.ts';

let office: Office;

beforeAll(async () => {
  office = await openOffice();
});
afterAll(() => office.service.stop());

const states = async () =>
  Object.fromEntries((await office.all('/signing-keys')).map(({ id, state }) => [id, state]));

test('a new key is published first, and read at its address', async () => {
  const [first] = await office.all('/signing-keys');
  const made = await office.ask('POST', '/signing-keys');
  const { id } = made.body.data;
  expect([made.status, made.body.data]).toEqual([
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
  const read = await office.ask('GET', made.headers.get('location') ?? '');
  expect([read.status, read.text]).toEqual([200, made.text]);
  expect(await states()).toEqual({ [first?.id ?? '']: 'signs', [id]: 'next' });
  office.service.clock.advance(1_000);
  const published = (await (await office.service.get('/.well-known/jwks.json')).json()) as {
    keys: readonly { kid: string }[];
  };
  expect(published.keys.map(({ kid }) => kid)).toContain(id);
  expect(await office.actsOn(id)).toMatchObject([
    {
      what: 'signing-key.created',
      actor: office.admin.clientId,
      address: '127.0.0.1',
      detail: { kid: id, signs_from: made.body.data.signs_from ?? '' },
    },
  ]);
});

test('a withdrawn key ends what it signed within a second, also for who withdrew it; another one signs at once', async () => {
  const { service } = office;
  const planted = await plant(service.db);
  const { clientId, secret } = await service.client('oidc-profile-infos:read');
  const token = await tokenOf(service, clientId, secret);
  const [signer] = Object.entries(await states()).find(([, state]) => state === 'signs') ?? [];
  const withdrawn = await office.ask('POST', `/signing-keys/${signer}/withdraw`, {
    headers: { 'X-Request-Id': 'desk-2' },
  });
  expect([withdrawn.status, withdrawn.body.data.state]).toEqual([200, 'withdrawn']);
  service.clock.advance(1_000);
  expect((await service.get(oidcPath(planted), token)).status).toBe(401);
  expect((await office.ask('GET', '/signing-keys')).status).toBe(401);
  expect((await service.get(oidcPath(planted), await tokenOf(service, clientId, secret))).status).toBe(200);

  const anew = await tokenOf(service, ...(await adminCredentials()));
  const again = await office.ask('POST', `/signing-keys/${signer}/withdraw`, { token: anew });
  expect([again.status, again.text]).toEqual([200, withdrawn.text]);
  for (const kid of [crypto.randomUUID(), 'a%00b']) {
    const statuses = [
      (await office.ask('GET', `/signing-keys/${kid}`, { token: anew })).status,
      (await office.ask('POST', `/signing-keys/${kid}/withdraw`, { token: anew })).status,
    ];
    expect([kid, ...statuses]).toEqual([kid, 404, 404]);
  }
  const log = await office.ask('GET', '/log?page%5Blimit%5D=100', { token: anew });
  const acts = (log.body.data as unknown as readonly Item[]).filter(({ object }) => object === signer);
  expect(acts.map(({ what, request_id }) => [what, request_id])).toEqual([
    ['signing-key.created', null],
    ['signing-key.withdrawn', 'desk-2'],
  ]);
});

test('pages of two follow each other to the end, and a key does on one what it does among all', async () => {
  const { service, ...full } = await openOffice();
  const { access } = service.db.engine;
  const made = [];
  for (let count = 0; count < 4; count += 1)
    made.push((await rotateSigningKey(access, service.db.keyring, service.clock)).kid);
  await full.ask('POST', `/signing-keys/${made[1]}/withdraw`);
  const all = await full.all('/signing-keys?page%5Blimit%5D=2');
  expect(all.map(({ id }) => id).slice(1)).toEqual(made);
  expect(all.map(({ state }) => state)).toEqual(['signs', 'next', 'withdrawn', 'next', 'next']);
  await service.stop();
});

test('every state that a key comes to is told, and when it was withdrawn', async () => {
  const { clock, db } = office.service;
  const told = async () => {
    const token = await tokenOf(office.service, ...(await adminCredentials()));
    const { body } = await office.ask('GET', '/signing-keys?page%5Blimit%5D=100', { token });
    return new Map((body.data as unknown as readonly Item[]).map((key) => [key.id, key]));
  };
  const [before] = [...(await told()).values()].filter(({ state }) => state === 'signs');
  const next = await rotateSigningKey(db.engine.access, db.keyring, clock);
  const beside = await mintSigningKey(db.keyring, clock, next.signsFrom);
  const auditEntry = createAuditEntry('signing-key.created', { object: beside.kid, detail: {} }, clock);
  await db.engine.access.insertSigningKey(beside, { supersededBefore: 0 }, auditEntry);
  const states = async () => {
    const keys = await told();
    return [before?.id ?? '', next.kid, beside.kid].map((kid) => keys.get(kid)?.state);
  };
  expect(await states()).toEqual(['signs', 'next', 'next']);
  clock.advance(next.signsFrom - clock.now());
  const [first, ...both] = await states();
  // Of two that sign from the same moment on one does.
  expect([first, both.sort()]).toEqual(['accepted', ['accepted', 'signs']]);
  clock.advance(LIMITS.tokenLifetimeSecondsMax * 1_000 + LIMITS.clockLeewayMs);
  expect((await states())[0]).toBe('retired');
  const withdrawn = [...(await told()).values()].filter(({ withdrawn_at: at }) => at !== null);
  expect(withdrawn.map(({ state }) => state)).toEqual(['withdrawn']);
  expect(Date.parse(String(withdrawn[0]?.withdrawn_at))).toBeLessThan(clock.now());
});

test(`${LIMITS.signingKeysMax} are in use at once, however many ask: one more is 422 until one is withdrawn, or its tokens have ended`, async () => {
  const { service, ...full } = await openOffice();
  const create = () => full.ask('POST', '/signing-keys');
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

  const made = answers.find(({ status }) => status === 201)?.body.data.id;
  expect((await full.ask('POST', `/signing-keys/${made}/withdraw`)).status).toBe(200);
  expect(statuses([await create(), await create()])).toEqual({ 201: 1, 422: 1 });

  const refusal = rotateSigningKey(service.db.engine.access, service.db.keyring, service.clock);
  await expect(refusal).rejects.toThrow(/^32 signing keys are in use, .*: withdraw one/);
  service.clock.advance(2 * LIMITS.tokenLifetimeSecondsMax * 1_000);
  await rotateSigningKey(service.db.engine.access, service.db.keyring, service.clock);
  await service.stop();
});

test('one that has signed for long is one of them, and so is the one that takes its place', async () => {
  const { service } = await openOffice();
  const { access } = service.db.engine;
  const rotate = () => rotateSigningKey(access, service.db.keyring, service.clock);
  service.clock.advance(2 * LIMITS.tokenLifetimeSecondsMax * 1_000);
  for (let made = 1; made < LIMITS.signingKeysMax; made += 1) await rotate();
  await expect(rotate()).rejects.toThrow(/withdraw one that does not sign/);
  const keys = async () => keySetAt(await access.signingKeys(), service.clock.now());
  expect((await keys()).accepted.size).toBe(LIMITS.signingKeysMax);
  const signer = (await keys()).signer?.kid ?? '';
  await withdrawSigningKey(signer, access, service.db.keyring, service.clock);
  expect((await keys()).accepted.size).toBe(LIMITS.signingKeysMax);
  await expect(rotate()).rejects.toThrow(/withdraw one that does not sign/);
  const { code, stderr } = await runCommand([AUTHREALM, 'keys', 'rotate', ...service.database.words]);
  expect([code, stderr]).toEqual([1, expect.stringContaining('withdraw one that does not sign')]);
  await service.stop();
});

test('the document names every state', async () => {
  const document = (await (await office.service.get('/openapi.json')).json()) as {
    readonly components: { readonly schemas: Readonly<Record<string, object>> };
  };
  expect(document.components.schemas.signing_key).toMatchObject({
    properties: {
      data: { properties: { state: { enum: ['signs', 'next', 'accepted', 'retired', 'withdrawn'] } } },
    },
  });
});

test('503 where the master key is changed in that moment; other trouble is told as what it is', async () => {
  let trouble: () => Promise<SigningKeyInsertion> = async () => 'unproven';
  const busy = await openOffice({}, (engine) => ({
    ...engine,
    access: {
      ...engine.access,
      insertSigningKey: () => trouble(),
      withdrawSigningKey: async () => false,
    },
  }));
  const answer = async () => {
    const { status, body } = await busy.ask('POST', '/signing-keys');
    return [status, body.errors[0]?.detail];
  };
  expect(await answer()).toEqual([503, FAULTS.unavailable.detail]);
  const [signer] = await busy.all('/signing-keys');
  expect((await busy.ask('POST', `/signing-keys/${signer?.id}/withdraw`)).status).toBe(503);
  trouble = () => Promise.reject(new Fault('unknown_outcome'));
  expect(await answer()).toEqual([503, FAULTS.unknown_outcome.detail]);
  await busy.service.stop();
});

test('a body that nobody asks for is not read', async () => {
  const token = await tokenOf(office.service, ...(await adminCredentials()));
  const path = `/admin/v1/signing-keys/${crypto.randomUUID()}/withdraw`;
  const answer = await office.service.post(path, token, 'kid=all', { 'Content-Type': 'text/plain' });
  expect(answer.status).toBe(404);
});

async function adminCredentials(): Promise<[string, string]> {
  const { clientId, secret } = await office.service.client('admin');
  return [clientId, secret];
}
