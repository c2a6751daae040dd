import { afterAll, beforeAll, expect, test } from 'bun:test';
import {
  changeClient,
  createClient,
  editClient,
  isSecretOf,
  rotateSecret,
} from '../../src/access/clients.ts';
import { Refusal } from '../../src/domain/fault.ts';
import type { Revision, Uuid } from '../../src/domain/id.ts';
import { LIMITS } from '../../src/domain/limits.ts';
import { type Service, startService } from '../support/service.ts';

/** Clients, as the commands and administration have them. */

const REALM = '0193c1d4-5a2e-7c11-9d0e-6b1f4a7e2c90' as Uuid;

let service: Service;
beforeAll(async () => {
  service = await startService();
});
afterAll(() => service.stop());

const access = () => service.vault.engine.access;
const refusalOf = async (asked: Promise<unknown>): Promise<string> => {
  const error = await asked.then(
    () => undefined,
    (caught: unknown) => caught,
  );
  if (error instanceof Refusal) return error.message;
  throw error ?? new Error('it was not refused');
};

test('an overlap has ended in the instant that it ends', async () => {
  const { clientId, secret } = await service.client('users:read');
  await rotateSecret(access(), clientId, LIMITS.secretOverlapMs, service.ambient);
  const rotated = await access().client(clientId);
  const until = rotated?.previous?.expiresAt ?? 0;
  expect([until - 1, until].map((now) => isSecretOf(rotated, secret, now))).toEqual([true, false]);
});

test('without an overlap nothing is kept of the secret before', async () => {
  const { clientId, secret } = await service.client('users:read');
  await rotateSecret(access(), clientId, 0, service.ambient);
  const rotated = await access().client(clientId);
  expect(rotated?.previous).toBeUndefined();
  expect(isSecretOf(rotated, secret, 0)).toBe(false);
});

test.each([[''], ['a\nb'], ['x'.repeat(256)]])('no client is called %j', async (name) => {
  const { clientId } = await service.client('users:read');
  const rights = { scopes: new Set(['users:read']), realms: '*' } as const;
  const said = 'the name of a client ';
  expect(await refusalOf(createClient(access(), name, rights, service.ambient))).toContain(said);
  expect(await refusalOf(changeClient(access(), clientId, { name }, service.ambient))).toContain(said);
  expect((await access().client(clientId))?.name).toBe('test');
});

test('rights that do not go together are refused, and so is a client that nobody has', async () => {
  const { clientId } = await service.client('admin');
  const limited = { realms: new Set([REALM]) };
  expect(await refusalOf(changeClient(access(), clientId, limited, service.ambient))).toContain(
    'the scope admin reaches every realm',
  );
  expect(await refusalOf(changeClient(access(), clientId, { scopes: new Set() }, service.ambient))).toBe(
    'a client needs at least one scope',
  );
  expect((await access().client(clientId))?.realms).toBe('*');
  expect(await refusalOf(changeClient(access(), 'nobody', limited, service.ambient))).toBe(
    'there is no client nobody: authrealm client list names them all',
  );
});

test('an edit of what was seen lands, and one of what was seen before does not', async () => {
  const { clientId } = await service.client('users:read');
  const seen = (await access().client(clientId))?.revision;
  const edit = (name: string, revision: Revision | undefined) =>
    editClient(access(), clientId, { patch: { name }, seen: revision }, service.ambient);
  expect((await edit('first', seen)).kind).toBe('done');
  expect((await edit('second', seen)).kind).toBe('moved');
  expect((await edit('third', undefined)).kind).toBe('done');
});
