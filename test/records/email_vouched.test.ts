import { beforeEach, expect, test } from 'bun:test';
import { user } from '../../src/model/resources.ts';
import { exportRecords } from '../../src/ops/transfer/export.ts';
import { type Json, mintId, realmLines, runImport } from '../support/import_fixtures.ts';
import { verifyCleanRecords } from '../support/record_verification.ts';
import { createFixture, startService } from '../support/service.ts';

/** Whether somebody vouches for the e-mail address of a user: a hidden member, described in src/model/resources.ts. */

const service = await startService();
const { db } = service;
const { realm } = await createFixture(db);
const token = await service.token('users:read users:write changes:read');
const collection = `/v2/authentication-realms/${realm}/user-authentication-info`;
const type = user.type;

const isVouched = async (id: string) =>
  (await db.engine.records.getStored(user, [realm, id as never]))?.email_vouched;
const put = (id: string, data: object) =>
  service.put(`${collection}/${id}`, token, { data: { type, ...data } });

function lineOf(id: string, given: object = {}): Json {
  const { user: line } = realmLines().lines;
  return { ...line, realm_id: realm, id, meta: { ...line.meta, ...given } };
}

async function exported(): Promise<readonly Json[]> {
  const written: string[] = [];
  const snapshot = await db.engine.records.openSnapshot();
  await exportRecords({
    ...{ snapshot, within: realm, open: undefined, signal: new AbortController().signal },
    write: async (lines) => void written.push(lines),
    onProgress: () => undefined,
  });
  await snapshot.close();
  return written
    .join('')
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line) as Json);
}

/** A user for whose address nobody vouches. */
let id = '';
beforeEach(async () => {
  id = mintId();
  await runImport(db, [lineOf(id, { email_vouched: false })]);
});

test('an import with email_vouched false stores it, and an export has it', async () => {
  expect(await isVouched(id)).toBe(false);
  const lines = await exported();
  const line = lines.find((each) => each.id === id) as Json;
  expect(line.meta).toMatchObject({ email_vouched: false });
  expect((await runImport(db, [line])).counts).toMatchObject({ unchanged: 1 });
});

test('an imported line without email_vouched vouches for its address', async () => {
  const other = mintId();
  await runImport(db, [lineOf(other)]);
  expect(await isVouched(other)).toBe(true);
  expect((await runImport(db, [lineOf(id)], { isUpsert: true })).counts).toMatchObject({ replaced: 1 });
  expect(await isVouched(id)).toBe(true);
  const again = await runImport(db, [lineOf(id, { email_vouched: false })], { isUpsert: true });
  expect([again.counts.replaced, await isVouched(id)]).toEqual([1, false]);
});

test('a PUT of the e-mail address vouches for it, and a PUT of the name does not', async () => {
  expect((await put(id, { name: 'Jane Roe' })).status).toBe(200);
  expect(await isVouched(id)).toBe(false);
  expect((await put(id, { email: 'jane@example.com' })).status).toBe(200);
  expect(await isVouched(id)).toBe(true);
});

test('a caller can neither write nor read email_vouched', async () => {
  const meta = { email_vouched: false };
  const data = { type, name: 'Jane Doe', email: 'jane@example.com', ...meta, meta };
  const created = await service.post(collection, token, { data });
  const { id: own } = ((await created.json()) as { data: { id: string } }).data;
  expect(await isVouched(own)).toBe(true);
  expect((await put(own, { ...meta, meta, email: 'jane@example.org' })).status).toBe(200);
  expect(await isVouched(own)).toBe(true);
  const changes = `/v2/authentication-realms/${realm}/changes`;
  for (const path of [`${collection}/${own}`, collection, changes]) {
    const answer = await service.get(path, token);
    expect([answer.status, await answer.text()]).toEqual([200, expect.not.stringContaining('email_vouched')]);
  }
});

test('the records match the log, whether or not somebody vouches for an address', async () => {
  await verifyCleanRecords(service.database);
});
