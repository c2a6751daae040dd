import { expect, test } from 'bun:test';
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
import { startService } from '../support/service.ts';

/** Changes of clients, as the commands and the admin API make them. */

const REALM = '0193c1d4-5a2e-7c11-9d0e-6b1f4a7e2c90' as Uuid;

const service = await startService();

const access = () => service.db.engine.access;
/** The code and the first rule of the thrown fault. */
const faultOf = async (work: Promise<unknown>): Promise<readonly [string, string | undefined]> => {
  const error = await work.catch((caught: unknown) => caught);
  if (error instanceof Fault) return [error.code, error.fieldErrors[0]?.rule];
  throw new Error('no fault was thrown', { cause: error });
};

test('the previous secret is rejected from the end of the overlap on', async () => {
  const { clientId, secret } = await service.client('users:read');
  await rotateSecret(access(), clientId, { overlapMs: LIMITS.secretOverlapMs }, service.clock);
  const rotated = await access().client(clientId);
  const until = rotated?.previous?.expiresAt ?? 0;
  expect([until - 1, until].map((now) => isSecretOf(rotated, secret, now))).toEqual([true, false]);
});

test('a rotation without overlap deletes the previous secret', async () => {
  const { clientId, secret } = await service.client('users:read');
  await rotateSecret(access(), clientId, { overlapMs: 0 }, service.clock);
  const rotated = await access().client(clientId);
  expect(rotated?.previous).toBeUndefined();
  expect(isSecretOf(rotated, secret, 0)).toBe(false);
});

test('a client cannot combine admin with some realms or lose its last scope, and an unknown client is not found', async () => {
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

test('a rotation and a deletion require the current revision of the client', async () => {
  const { clientId } = await service.client('users:read');
  const revision = (await access().client(clientId))?.revision;
  const rotate = (seen: Revision | undefined) =>
    rotateSecret(access(), clientId, { overlapMs: 0, seen }, service.clock);
  const rotated = await rotate(revision);
  expect(await faultOf(rotate(revision))).toEqual(['precondition_failed', undefined]);
  await rotate(undefined);
  const remove = (seen: Revision) => deleteClient(access(), clientId, seen, service.clock);
  expect(await faultOf(remove(rotated.client.revision))).toEqual(['precondition_failed', undefined]);
  expect(await remove((await access().client(clientId))?.revision as Revision)).toBe(true);
});
