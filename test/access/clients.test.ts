import { expect, test } from 'bun:test';
import { changeClient, isSecretOf, rotateSecret } from '../../src/access/clients/clients.ts';
import { LIMITS } from '../../src/model/limits.ts';
import { startService } from '../support/service.ts';

/** Changes of clients, as the commands and the admin API make them. */

const service = await startService();

const access = () => service.db.engine.access;

test('the previous secret is rejected from the end of the overlap on', async () => {
  const { clientId, secret } = await service.client('users:read');
  await rotateSecret(access(), clientId, { overlapMs: LIMITS.secretOverlapMs }, service.clock);
  const rotated = await access().client(clientId);
  const until = rotated?.previous?.expiresAt ?? 0;
  expect([until - 1, until].map((now) => isSecretOf(rotated, secret, now))).toEqual([true, false]);
});

test('a client cannot lose its last scope', async () => {
  const { clientId } = await service.client('admin');
  const change = changeClient(access(), clientId, { scopes: new Set() }, service.clock);
  await expect(change).rejects.toMatchObject({
    code: 'conflict',
    fieldErrors: [{ rule: 'a client needs at least one scope' }],
  });
});
