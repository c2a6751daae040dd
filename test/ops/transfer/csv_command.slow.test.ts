import { expect, setDefaultTimeout, test } from 'bun:test';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { LIMITS } from '../../../src/model/limits.ts';
import { freshDatabase, type TestDatabase } from '../../support/database.ts';
import { freshFolder } from '../../support/folder.ts';
import { bytesOf, changeEvents, realmLines } from '../../support/import_fixtures.ts';
import { AUTHREALM, runAuthrealm, startCommand } from '../../support/processes.ts';
import { verifyCleanRecords } from '../../support/record_verification.ts';

/** `import --csv` and `export --csv` as commands. */

setDefaultTimeout(300_000);

const folder = freshFolder();
const file = (name: string, text: string): string => {
  const path = join(folder, name);
  writeFileSync(path, text);
  return path;
};
const run = (...args: string[]) => runAuthrealm(args);

/** A database with a realm and its profiles, and a map of CSV files for it. */
async function freshShop() {
  const database = await freshDatabase();
  const { ids, lines } = realmLines();
  const records = file(`${ids.realm}.ndjson`, bytesOf([lines.realm, lines.oidc, lines.passwords]).toString());
  expect((await run('import', records, ...database.args)).code).toBe(0);
  const map = file(
    `${ids.realm}.json`,
    JSON.stringify({
      constants: {
        realm_id: ids.realm,
        'links.login.oidc_profile_id': ids.oidc,
        'links.login.issuer': 'https://login.example.com/',
        'links.password.password_profile_id': ids.passwords,
      },
      columns: {
        No: ['id', 'links.login.subject'],
        Name: 'name',
        'E-mail': ['email', 'links.password.username'],
      },
    }),
  );
  return { database, map };
}

const rowsOf = (count: number, from = 0) =>
  Array.from(
    { length: count },
    (_, at) => `${from + at},User ${from + at},user${from + at}@example.com\r\n`,
  ).join('');

async function countUsers({ query }: Pick<TestDatabase, 'query'>): Promise<number> {
  const [row] = await query<{ n: number }>('select count(*) as n from user_info').catch(() => []);
  return Number(row?.n ?? 0);
}

test('import --csv imports users with their links, and export --csv writes them', async () => {
  const { database, map } = await freshShop();
  const source = file('three.csv', `No,Name,E-mail\r\n${rowsOf(3)}`);
  const dry = await run('import', source, '--csv', map, '--dry-run', ...database.args);
  expect([dry.code, dry.stderr, await countUsers(database)]).toEqual([0, '', 0]);
  expect(dry.stdout).toContain('would have imported 9, unchanged 0');
  const first = await run('import', source, '--csv', map, ...database.args);
  expect([first.code, first.stderr, first.stdout]).toEqual([
    0,
    '',
    'imported 9, unchanged 0, replaced 0, refused 0\n',
  ]);
  const again = await run('import', source, '--csv', map, '--upsert', ...database.args);
  expect(again.stdout).toBe('imported 0, unchanged 9, replaced 0, refused 0\n');
  const path = join(folder, 'users.csv');
  const exported = await run('export', '--csv', path, ...database.args);
  expect([exported.code, exported.stderr]).toEqual([0, `exported 3 users to ${path}\n`]);
  const rows = readFileSync(path, 'utf8').trim().split('\r\n');
  expect(rows).toHaveLength(7);
  expect(rows[0]).toStartWith('"realm_id","id","name","email","given_name","middle_name","family_name"');
  expect(rows[0]).toContain('"links.1.subject"');
  for (const row of rows.slice(1)) expect(row).toMatch(/"(User \d)","user\d@example.com"/);
  expect(rows.filter((row) => row.includes('"https://login.example.com/"'))).toHaveLength(3);
  const printed = await run('export', '--csv', ...database.args);
  expect(printed.stdout).toBe(readFileSync(path, 'utf8'));
  expect(await verifyCleanRecords(database)).toEqual({ covered: 12, notCovered: 0 });
});

test('import --csv prints refused rows, and the first of them, from which it can be resumed', async () => {
  const { database, map } = await freshShop();
  const source = file('wrong row.csv', `No,Name,E-mail\n${rowsOf(1)}1,User 1,no address\n${rowsOf(1, 2)}`);
  const command = ['import', source, '--csv', map, ...database.args];
  const stopped = await run(...command);
  expect([stopped.code, stopped.stderr]).toEqual([3, 'line 3: email must be an e-mail address\n']);
  expect(stopped.stdout).toEndWith('run the same command with --from-line 3\n');
  writeFileSync(source, `No,Name,E-mail\n${rowsOf(3)}`);
  const resumed = await run(...command, '--from-line', '3');
  expect([resumed.code, resumed.stderr, await countUsers(database)]).toEqual([0, '', 3]);
});

test('import --csv refuses a map that does not fit, and changes nothing', async () => {
  const { database, map } = await freshShop();
  const source = file('columns.csv', `Number,Name,E-mail\n${rowsOf(1)}`);
  const refused = await run('import', source, '--csv', map, ...database.args);
  expect([refused.code, refused.stdout]).toEqual([2, '']);
  expect(refused.stderr).toContain('the header row must have the column "No" once');
  const missing = await run('import', source, '--csv', join(folder, 'nothing.json'), ...database.args);
  expect([missing.code, missing.stderr]).toEqual([1, expect.stringContaining('nothing.json cannot be read')]);
  expect(await countUsers(database)).toBe(0);
  // Before the database is opened.
  const unopened = await run('import', source, '--csv', source, '--database', join(folder, 'absent.db'));
  expect([unopened.code, unopened.stderr]).toEqual([2, expect.stringContaining('the map must be JSON')]);
});

test('an import of CSV that is killed and run again has every user once', async () => {
  const { database, map } = await freshShop();
  const users = LIMITS.importCommitLines;
  const source = file('killed.csv', `No,Name,E-mail\n${rowsOf(users)}`);
  const importing = startCommand([AUTHREALM, 'import', source, '--csv', map, ...database.args]);
  while ((await countUsers(database)) === 0) await Bun.sleep(5);
  importing.process.kill('SIGKILL');
  await importing.process.exited;
  const before = await countUsers(database);
  expect(before).toBeLessThan(users);
  const { code, stderr } = await run('import', source, '--csv', map, ...database.args);
  expect([code, stderr, await countUsers(database)]).toEqual([0, '', users]);
  expect(await changeEvents(database)).toHaveLength(3 + 3 * users);
});
