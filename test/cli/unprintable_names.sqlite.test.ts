import { expect, test } from 'bun:test';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { createClient } from '../../src/access/clients/clients.ts';
import { passwordProfile, user } from '../../src/model/resources.ts';
import { systemClock } from '../../src/ops/process/clock.ts';
import { freshFolder } from '../support/folder.ts';
import { runAuthrealm } from '../support/processes.ts';
import { createFixture, insertRecord, startService, userMembers } from '../support/service.ts';

/** Sets the colour of a terminal, and the direction of its text. */
const NAME = 'a\u001b[31mb\u009b1mc\u202ed';
const UNPRINTABLE = /[\u001b\u009b\u202e]/;

const service = await startService();
const { db, database, clock } = service;
const { realm } = await createFixture(db);
const person = systemClock.mintId();
await insertRecord(db, user, [realm, person], { ...userMembers, name: NAME });
const profile = { name: NAME, username_format: 'any', enable_one_time_password_token: false };
await insertRecord(db, passwordProfile, [realm, systemClock.mintId()], profile);
const rights = { scopes: new Set(['users:read']), realms: '*' } as const;
const { client } = await createClient(db.engine.access, NAME, rights, clock);

test.each([
  ['client list', ['client', 'list']],
  ['client list --json', ['client', 'list', '--json']],
  ['client update', ['client', 'update', client.clientId, '--state', 'disabled']],
  ['client delete', ['client', 'delete', client.clientId, '--yes']],
  ['subject-access', ['subject-access', realm, person]],
  ['doctor', ['doctor']],
])('%s prints names with control characters escaped', async (_, words) => {
  const { stdout, stderr } = await runAuthrealm([...words, ...database.args]);
  expect(stdout + stderr).not.toMatch(UNPRINTABLE);
  expect((stdout + stderr).length).toBeGreaterThan(10);
});

test('audit verify --export writes names with control characters escaped', async () => {
  const file = join(freshFolder(), 'log.ndjson');
  await runAuthrealm(['audit', 'verify', '--export', file, ...database.args]);
  const entries = readFileSync(file, 'utf8');
  expect(entries).not.toMatch(UNPRINTABLE);
  expect(entries).toContain('u001b');
});
