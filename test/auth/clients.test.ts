import { afterAll, beforeAll, expect, test } from 'bun:test';
import {
  type ClientEdit,
  changeClient,
  deleteClient,
  isSecretOf,
  rotateSecret,
} from '../../src/auth/clients/clients.ts';
import { Fault } from '../../src/domain/fault.ts';
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

const access = () => service.db.engine.access;
/** The code and the first rule of the fault that was thrown. */
const faultOf = async (asked: Promise<unknown>): Promise<readonly [string, string | undefined]> => {
  const error = await asked.catch((caught: unknown) => caught);
  if (error instanceof Fault) return [error.code, error.complaints[0]?.rule];
  throw new Error('it was not refused', { cause: error });
};

test('an overlap has ended in the instant that it ends', async () => {
  const { clientId, secret } = await service.client('users:read');
  await rotateSecret(access(), clientId, { overlapMs: LIMITS.secretOverlapMs }, service.clock);
  const rotated = await access().client(clientId);
  const until = rotated?.previous?.expiresAt ?? 0;
  expect([until - 1, until].map((now) => isSecretOf(rotated, secret, now))).toEqual([true, false]);
});

test('without an overlap nothing is kept of the secret before', async () => {
  const { clientId, secret } = await service.client('users:read');
  await rotateSecret(access(), clientId, { overlapMs: 0 }, service.clock);
  const rotated = await access().client(clientId);
  expect(rotated?.previous).toBeUndefined();
  expect(isSecretOf(rotated, secret, 0)).toBe(false);
});

test('rights that do not go together are refused, and so is an unknown client', async () => {
  const { clientId } = await service.client('admin');
  const limited = { realms: new Set([REALM]) };
  const change = (id: string, edit: ClientEdit) => faultOf(changeClient(access(), id, edit, service.clock));
  const rule = 'the scope admin reaches every realm: a client that holds it cannot be limited to some realms';
  expect(await change(clientId, limited)).toEqual(['conflict', rule]);
  expect(await change(clientId, { scopes: new Set() })).toEqual([
    'conflict',
    'a client needs at least one scope',
  ]);
  expect((await access().client(clientId))?.realms).toBe('*');
  expect(await change('nobody', limited)).toEqual(['not_found', undefined]);
});

test('a rotation and a deletion of what was seen land, and those of what was seen before do not', async () => {
  const { clientId } = await service.client('users:read');
  const seen = (await access().client(clientId))?.revision;
  const rotate = (revision: Revision | undefined) =>
    rotateSecret(access(), clientId, { overlapMs: 0, seen: revision }, service.clock);
  const rotated = await rotate(seen);
  expect(await faultOf(rotate(seen))).toEqual(['precondition_failed', undefined]);
  await rotate(undefined);
  const remove = (revision: Revision) => deleteClient(access(), clientId, revision, service.clock);
  expect(await faultOf(remove(rotated.client.revision))).toEqual(['precondition_failed', undefined]);
  expect(await remove((await access().client(clientId))?.revision as Revision)).toBe(true);
});
