import { expect, test } from 'bun:test';
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { startAdminApi } from '../http/admin/admin_api.ts';
import { freshDatabase } from '../support/database.ts';
import { createFixture, freshFolder, startService } from '../support/service.ts';

/** PostgreSQL without `--checkpoint-file`, which has no default there. */

test('an erasure without a checkpoint file is answered 201, and reported by the first start that has one', async () => {
  const database = await freshDatabase('postgres');
  const { service, request } = await startAdminApi(database.flags);
  const { realm, user } = await createFixture(service.db);
  const erased = await request('POST', '/erasures', { data: { realm_id: realm, user_id: user } });
  expect(erased.status).toBe(201);
  await service.stop();
  expect(await database.query('select user_id from erasure where told_at is null')).toEqual([
    { user_id: user },
  ]);
  const checkpointFile = join(freshFolder(), 'points');
  await (await startService({ ...database.flags, checkpointFile })).stop();
  expect(existsSync(checkpointFile)).toBe(true);
  const lines = readFileSync(checkpointFile, 'utf8').trim().split('\n');
  expect(lines.map((line) => JSON.parse(line))).toContainEqual(
    expect.objectContaining({ kind: 'erasure', realm_id: realm, user_id: user }),
  );
});
