import { expect } from 'bun:test';
import { type OpenDatabase, openDatabase } from '../../src/app/open_database.ts';
import type { Uuid } from '../../src/model/id.ts';
import { user } from '../../src/model/resources.ts';
import { systemClock } from '../../src/ops/process/clock.ts';
import type { TestDatabase } from './database.ts';
import { AUTHREALM, runCommand } from './processes.ts';
import { FULL_SCOPE } from './resource_cases.ts';
import { createFixture, type Fixture, insertRecord, startService, userMembers } from './service.ts';

export interface ErasureFixture {
  readonly database: TestDatabase;
  readonly fixture: Fixture;
  /** Every text about the person, including replaced ones. */
  readonly texts: readonly string[];
}

/** Creates a user with unique texts and a changed e-mail address, and stops the service. */
export async function createErasureFixture(): Promise<ErasureFixture> {
  const service = await startService();
  const unique = systemClock.mintId();
  const base = await createFixture(service.db);
  const id = systemClock.mintId();
  const name = `Josefine ${unique}`;
  await insertRecord(service.db, user, [base.realm, id], {
    ...userMembers,
    name,
    email: `old-${unique}@example.com`,
    given_name: `Given ${unique}`,
  });
  const given = {
    ...base,
    user: id,
    subject: `subject|${unique}`,
    username: `User-${unique}`,
    oidcLink: systemClock.mintId(),
    passwordLink: systemClock.mintId(),
  };
  const created = await createFixture(service.db, given);
  const token = await service.token(FULL_SCOPE);
  const path = `/v2/authentication-realms/${base.realm}/user-authentication-info/${id}`;
  const data = { type: 'user_authentication_info', email: `new-${unique}@example.com` };
  const answer = await service.put(path, token, { data }, { 'Idempotency-Key': unique });
  expect(answer.status).toBe(200);
  await service.stop();
  const texts = [
    ...[name, `Given ${unique}`, `old-${unique}@example.com`, `new-${unique}@example.com`],
    ...[`subject|${unique}`, `User-${unique}`],
    // As an index of words stores it.
    unique.slice(-12),
  ];
  return {
    database: service.database,
    fixture: created,
    texts: texts.flatMap((text) => [text, text.toLowerCase()]),
  };
}

export const runErase = ({ args }: TestDatabase, realm: Uuid, id: Uuid) =>
  runCommand([AUTHREALM, 'erase', 'user', '--yes', realm, id, ...args]);

/** Runs work on a database, and closes it afterwards. */
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
