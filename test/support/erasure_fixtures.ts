import { expect } from 'bun:test';
import type { Uuid } from '../../src/domain/id.ts';
import { user } from '../../src/domain/resources.ts';
import { systemClock } from '../../src/platform/clock.ts';
import { type OpenDatabase, openDatabase } from '../../src/service/open_database.ts';
import type { TestDatabase } from './database.ts';
import { AUTHREALM, runCommand } from './processes.ts';
import { FULL_SCOPE } from './resource_cases.ts';
import { createFixture, type Fixture, insertRecord, startService, userMembers } from './service.ts';

export interface ErasureFixture {
  readonly database: TestDatabase;
  readonly fixture: Fixture;
  /** Every text about the person, older ones among them. */
  readonly texts: readonly string[];
}

/** A user of whom nobody else has a text, with an e-mail address of before, in a service that is then stopped. */
export async function createErasureFixture(): Promise<ErasureFixture> {
  const service = await startService();
  const mark = systemClock.mintId();
  const base = await createFixture(service.db);
  const id = systemClock.mintId();
  const name = `Josefine ${mark}`;
  await insertRecord(service.db, user, [base.realm, id], {
    ...userMembers,
    name,
    email: `old-${mark}@example.com`,
    given_name: `Given ${mark}`,
  });
  const given = {
    ...base,
    user: id,
    subject: `subject|${mark}`,
    username: `User-${mark}`,
    oidcLink: systemClock.mintId(),
    passwordLink: systemClock.mintId(),
  };
  const planted = await createFixture(service.db, given);
  const token = await service.token(FULL_SCOPE);
  const path = `/v2/authentication-realms/${base.realm}/user-authentication-info/${id}`;
  const data = { type: 'user_authentication_info', email: `new-${mark}@example.com` };
  const answer = await service.put(path, token, { data }, { 'Idempotency-Key': mark });
  expect(answer.status).toBe(200);
  await service.stop();
  const texts = [
    ...[name, `Given ${mark}`, `old-${mark}@example.com`, `new-${mark}@example.com`],
    ...[`subject|${mark}`, `User-${mark}`],
  ];
  return {
    database: service.database,
    fixture: planted,
    texts: texts.flatMap((text) => [text, text.toLowerCase()]),
  };
}

export const runErase = ({ args }: TestDatabase, realm: Uuid, id: Uuid) =>
  runCommand([AUTHREALM, 'erase', 'user', realm, id, ...args]);

/** What the work comes to on an open database, which is closed afterwards. */
export async function withDatabase<T>(
  database: TestDatabase,
  work: (db: OpenDatabase) => Promise<T>,
): Promise<T> {
  const db = await openDatabase(database.settings(), systemClock);
  try {
    return await work(db);
  } finally {
    await db.engine.close();
  }
}
