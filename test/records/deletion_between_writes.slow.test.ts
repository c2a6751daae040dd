import { expect, test } from 'bun:test';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { realm } from '../../src/model/resources.ts';
import { freshDatabase } from '../support/database.ts';
import { populationLines, REALM } from '../support/population.ts';
import { AUTHREALM, runCommand, startCommand } from '../support/processes.ts';
import { freshFolder, realmMembers } from '../support/service.ts';
import { anotherUser, commitWritten, insert, mintId } from './contract/store_fixtures.ts';

/** Each user has three records; a page has a thousand. */
const USERS = 10_000;

test('a waiting write of another process is committed between two pages of a deletion', async () => {
  const folder = freshFolder();
  const file = join(folder, 'lines.ndjson');
  writeFileSync(file, [...populationLines(USERS)].join('\n'));
  const database = await freshDatabase();
  expect((await runCommand([AUTHREALM, 'import', file, ...database.args])).code).toBe(0);
  const { records, close } = await database.open();
  const other = { realm: mintId() };
  await commitWritten(records, insert(realm, [other.realm], realmMembers));
  const connection = database.connect();
  const lastSequence = async () => {
    const clock = 'select seq from realm_clock where realm_id = ?';
    return (await connection.ask<{ seq: number }>(clock, REALM))[0]?.seq ?? 0;
  };

  const imported = await lastSequence();
  const { process: deletion } = startCommand([
    ...[AUTHREALM, 'delete', '--in-pages', '--yes', 'realm', REALM, ...database.args],
  ]);
  while ((await lastSequence()) === imported) await Bun.sleep(1);
  /** The number of pages during each write. */
  const pages: number[] = [];
  while (deletion.exitCode === null) {
    const before = await lastSequence();
    await commitWritten(records, anotherUser(other));
    pages.push(((await lastSequence()) - before) / 1_000);
  }
  expect(deletion.exitCode).toBe(0);
  const waits = pages.filter((passed) => passed >= 1);
  expect(waits.length).toBeGreaterThan(USERS / 1_000);
  // A busy machine can make a writer miss its turn.
  expect(waits.filter((passed) => passed >= 2).length).toBeLessThan(waits.length / 2);
  await connection.close();
  await close();
}, 300_000);
