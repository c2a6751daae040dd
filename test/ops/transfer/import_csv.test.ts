import { describe, expect, test } from 'bun:test';
import { Refusal } from '../../../src/model/fault.ts';
import type { Uuid } from '../../../src/model/id.ts';
import { LIMITS } from '../../../src/model/limits.ts';
import type { AnyRecord } from '../../../src/model/resource.ts';
import { oidcProfileInfo, passwordProfileInfo, user } from '../../../src/model/resources.ts';
import { exportUsers, parseCsvMap } from '../../../src/ops/transfer/csv_users.ts';
import { EXPORT_START } from '../../../src/ops/transfer/export.ts';
import { readGuide } from '../../support/guides.ts';
import {
  changeEvents,
  importCounts,
  type Json,
  mintId,
  realmLines,
  runImport,
} from '../../support/import_fixtures.ts';
import { PASSWORD_HASH, startService } from '../../support/service.ts';

const service = await startService();
const { db } = service;

/** The map of the guide, and its CSV file. */
const GUIDE =
  readGuide('import-and-export.md')
    .split('\n## ')
    .find((section) => section.startsWith('CSV\n')) ?? '';
const [, MAP = ''] = /^```json\n(.*?)^```/ms.exec(GUIDE) ?? [];
const [, FILE = ''] = /^```csv\n(.*?)^```/ms.exec(GUIDE) ?? [];

/** A realm with a profile of each kind, and the map of a shop that has no UUIDs. */
async function freshRealm() {
  const { ids, lines } = realmLines();
  await runImport(db, [lines.realm, lines.oidc, lines.passwords]);
  const constants: Json = {
    realm_id: ids.realm,
    'links.0.oidc_profile_id': ids.oidc,
    'links.0.issuer': 'https://login.example.com/',
    'links.1.password_profile_id': ids.passwords,
  };
  const columns: Record<string, string | string[]> = {
    Customer: 'id',
    First: ['name', 'given_name'],
    Last: 'name',
    'E-mail': 'email',
    Since: 'meta.created_at',
    Login: 'links.0.subject',
    User: 'links.1.username',
    Hash: 'links.1.password_hash',
  };
  return { ids, map: { constants, columns }, lines };
}

const HEADER = 'Customer,First,Last,E-mail,Since,Login,User,Hash';
const ANNA_CELLS = [
  '7',
  'Anna',
  'Holm',
  'anna@example.com',
  '2021-02-03T04:05:06Z',
  'L7',
  'anna',
  PASSWORD_HASH,
];
// The hash has commas.
const ANNA = ANNA_CELLS.map((cell) => (cell.includes(',') ? `"${cell}"` : cell)).join();
const BO = '8,Bo,,bo@example.com,,,bo,';

const csv = (...rows: string[]) => Buffer.from(`${[HEADER, ...rows].join('\n')}\n`);

const mapOf = (map: object) => parseCsvMap(JSON.stringify(map));

/** The users, links and usernames of a realm. */
async function recordsOf(realm: Uuid) {
  const snapshot = await db.engine.records.openSnapshot();
  const found: AnyRecord[][] = [];
  for (const resource of [user, oidcProfileInfo, passwordProfileInfo]) {
    const page = await snapshot.scan(resource, EXPORT_START, 100, realm);
    found.push(page.map(({ key, record }) => ({ ...record, key })));
  }
  snapshot.close();
  return found;
}

describe('a CSV file', () => {
  test('the CSV file of the guide is imported with its map', async () => {
    const { lines } = realmLines();
    const id = (number: number) => `00000000-0000-4000-8000-00000000000${number}`;
    const realm = { ...lines.realm, id: id(1) };
    const oidc = { ...lines.oidc, realm_id: realm.id, id: id(2) };
    const passwords = { ...lines.passwords, realm_id: realm.id, id: id(3) };
    await runImport(db, [realm, oidc, passwords]);
    const { counts, refusals } = await runImport(db, Buffer.from(FILE), { map: parseCsvMap(MAP) });
    expect([refusals, counts]).toEqual([[], importCounts(5, 0, 0, 0)]);
  });

  test('a row of CSV becomes a user with the links that have a subject or a username', async () => {
    const { ids, map } = await freshRealm();
    const run = await runImport(db, csv(ANNA, BO), { map: mapOf(map), pieceBytes: 7 });
    expect([run.counts, run.refusals]).toEqual([importCounts(5, 0, 0, 0), []]);
    const [users, links, names] = await recordsOf(ids.realm);
    const anna = users?.find(({ email }) => email === 'anna@example.com');
    expect(anna).toMatchObject({ name: 'Anna Holm', given_name: 'Anna', created_at: 1612325106000 });
    expect(users?.map(({ name }) => name).sort()).toEqual(['Anna Holm', 'Bo']);
    expect(links).toMatchObject([{ key: [ids.realm, anna?.id, links?.[0]?.id], subject: 'L7' }]);
    expect(names?.map(({ username, password_hash }) => [username, password_hash]).sort()).toEqual([
      ['anna', PASSWORD_HASH],
      ['bo', undefined],
    ]);
  });

  test('an import of CSV derives the same IDs in every import into a realm, and others in another realm', async () => {
    const [first, second] = [await freshRealm(), await freshRealm()];
    const file = csv(ANNA, BO);
    await runImport(db, file, { map: mapOf(first.map) });
    const events = await changeEvents(service.database);
    const again = await runImport(db, file, { map: mapOf(first.map) });
    expect(again.counts).toEqual(importCounts(0, 5, 0, 0));
    expect(await changeEvents(service.database)).toEqual(events);
    await runImport(db, file, { map: mapOf(second.map) });
    const idsIn = async ({ ids }: typeof first) =>
      (await recordsOf(ids.realm)).flat().map(({ id }) => String(id));
    const [here, there] = [await idsIn(first), await idsIn(second)];
    expect(here).toHaveLength(5);
    expect(here.filter((id) => there.includes(id))).toEqual([]);
    // RFC 9562, 5.5: version 5.
    for (const id of here) expect(id).toMatch(/^[0-9a-f]{8}-[0-9a-f]{4}-5[0-9a-f]{3}-[89ab][0-9a-f]{3}-/);
  });

  test('an import of CSV keeps an ID that is a UUID, in any letter case', async () => {
    const { ids, map } = await freshRealm();
    const [own, link] = [mintId(), mintId()];
    const columns = { ...map.columns, User: 'links.0.id' };
    const row = `${own.toUpperCase()},A,B,a@example.com,,L1,${link},`;
    expect((await runImport(db, csv(row), { map: mapOf({ ...map, columns }) })).refusals).toEqual([]);
    const [users, oidcLinks] = await recordsOf(ids.realm);
    expect([users?.[0]?.id, oidcLinks?.[0]?.id] as string[]).toEqual([own, link]);
  });

  test('an import of CSV changes a user that differs with --upsert alone, and leaves what an empty cell does not state', async () => {
    const { ids, map } = await freshRealm();
    await runImport(db, csv(ANNA), { map: mapOf(map) });
    const renamed = csv('7,Anne,Holm,anna@example.com,,L7,anna,');
    const refused = await runImport(db, renamed, { map: mapOf(map) });
    expect(refused.refusals).toEqual(['line 2: differs from the stored record in name, given_name']);
    const { counts } = await runImport(db, renamed, { map: mapOf(map), isUpsert: true });
    expect(counts).toEqual(importCounts(0, 2, 1, 0));
    const [users, , names] = await recordsOf(ids.realm);
    expect(users?.[0]).toMatchObject({ name: 'Anne Holm', created_at: 1612325106000 });
    expect(names?.[0]).toMatchObject({ password_hash: PASSWORD_HASH });
  });

  test('a cell of true or false is a flag, except for a text member', async () => {
    const { ids, map } = await freshRealm();
    const columns = { ...map.columns, First: 'given_name', Since: 'meta.email_vouched' };
    const rows = csv('1,A,True,a@example.com,FALSE,,,', '2,B,false,b@example.com,true,,,');
    expect((await runImport(db, rows, { map: mapOf({ ...map, columns }) })).refusals).toEqual([]);
    const [users] = await recordsOf(ids.realm);
    const found = users?.map(({ name, email_vouched }) => [name, email_vouched]).sort();
    expect(found).toEqual([
      ['True', false],
      ['false', true],
    ]);
  });

  test.each([
    ['a byte order mark', `\ufeff${HEADER}\n${ANNA}\n`],
    ['Windows line ends', `${HEADER}\r\n${ANNA}\r\n${BO}\r\n`],
    ['line ends of an old Macintosh', `${HEADER}\r${ANNA}\r${BO}`],
    ['both line ends and no last one', `${HEADER}\r\n${ANNA}\n${BO}`],
    ['empty lines and rows of empty cells', `${HEADER}\n\n${ANNA}\n,,,,,,,\n\r\n${BO}\n\n`],
    ['every cell in quotes', `${HEADER}\n${ANNA_CELLS.map((cell) => `"${cell}"`).join()}\n`],
    ['spaces around the names of columns', `${HEADER.replaceAll(',', ' , ')}\n${BO}\n`],
  ])('a CSV file with %s is imported', async (_, text) => {
    const { map } = await freshRealm();
    for (const pieceBytes of [1, 100_000]) {
      const { counts, refusals } = await runImport(db, Buffer.from(text), { map: mapOf(map), pieceBytes });
      expect([counts.refused, refusals]).toEqual([0, []]);
      expect(counts.imported + counts.unchanged).toBeGreaterThan(1);
    }
  });

  test('rows of CSV are counted as in a spreadsheet: a line break in a cell begins no row', async () => {
    const { ids, map } = await freshRealm();
    const rows = csv('1,"A\r\nA","B\nB",a@example.com,,,,', BO, '9,C,C,no address,,,,');
    const one = mapOf({ ...map, columns: { ...map.columns, First: 'name' } });
    const { refusals } = await runImport(db, rows, { map: one });
    expect(refusals).toEqual([
      'line 2: name must hold no control character and no lone surrogate',
      'line 4: email must be an e-mail address',
    ]);
    expect((await recordsOf(ids.realm))[0]?.map(({ name }) => name)).toEqual(['Bo']);
  });
});

describe('a wrong row', async () => {
  const { map, lines } = await freshRealm();
  const taken = { ...lines.user, id: mintId() };
  const name = { ...lines.name, user_authentication_info_id: taken.id, username: 'taken' };
  await runImport(db, [taken, name]);
  const wrongHash = (hash: string) => `9,A,B,a@example.com,,,nine,"${hash}"`;
  const cases: [string, string | Uint8Array, RegExp][] = [
    ['no ID', ',A,B,a@example.com,,,,', /^id is missing$/],
    ['no name', '9,,,a@example.com,,,,', /^name is missing$/],
    ['no e-mail address', '9,A,B,,,,,', /^email is missing$/],
    [
      'an instant of another form',
      '9,A,B,a@example.com,03.02.2021,,,',
      /^meta\.created_at must be an instant/,
    ],
    ['fewer cells than the header', '9,A,B', /^has 3 cells, and the header row 8$/],
    ['more cells than the header', '9,A,B,a@example.com,,,,,', /^has 9 cells, and the header row 8$/],
    [
      'a duplicate username',
      '9,A,B,a@example.com,,,TAKEN,',
      /has the same password_profile_id and username$/,
    ],
    ['a hash of an unknown kind', wrongHash('md5$abc'), /^password_hash must be /],
    [
      'a hash of absurd cost',
      wrongHash(PASSWORD_HASH.replace('m=19456', 'm=9999999')),
      /^password_hash must /,
    ],
    ['Latin-1', Buffer.from('9,J\xfcrgen,B,a@example.com,,,,', 'latin1'), /^is not UTF-8$/],
  ];

  test.each(cases)(
    'a row of CSV with %s is refused with its number, without its values',
    async (_, row, reason) => {
      const file = Buffer.concat([csv(), Buffer.from(row), Buffer.from(`\n${BO}\n`)]);
      const { refusals, counts } = await runImport(db, file, { map: mapOf(map) });
      expect(refusals).toEqual([expect.stringMatching(/^line 2: /)]);
      expect(refusals[0]?.slice('line 2: '.length)).toMatch(reason);
      expect(counts.imported + counts.unchanged).toBeGreaterThan(1);
      expect(refusals.join()).not.toMatch(/rgen|a@example|TAKEN|9999999/);
    },
  );

  test('a row of CSV with a subject and no issuer is refused', async () => {
    const constants = { ...map.constants, 'links.0.issuer': undefined };
    const { refusals } = await runImport(db, csv('9,A,B,a@example.com,,L9,,'), {
      map: mapOf({ ...map, constants }),
    });
    expect(refusals).toEqual(['line 2: issuer is missing']);
  });

  test('two rows of CSV with one e-mail address are both imported', async () => {
    const rows = csv('21,A,B,same@example.com,,,,', '22,C,D,same@example.com,,,,');
    expect((await runImport(db, rows, { map: mapOf(map) })).refusals).toEqual([]);
  });

  test('a row of CSV with the ID of an earlier row is refused', async () => {
    const rows = csv('31,A,B,one@example.com,,,,', '31,A,B,two@example.com,,,,');
    const { refusals } = await runImport(db, rows, { map: mapOf(map) });
    expect(refusals).toEqual(['line 3: differs from the stored record in email']);
  });

  test.each([
    ['a quote that is never closed', `${BO}\n9,"A,B,a@example.com,,,,\n${ANNA}\n`],
    ['text after a quote', `${BO}\n9,"A"x,B,a@example.com,,,,\n${ANNA}\n`],
    ['a quote within a cell', `${BO}\n9,A"x"",B,a@example.com,,,,\n${ANNA}\n`],
    ['a row that is too long', `${BO}\n9,A,"${'x'.repeat(2 * LIMITS.importLineBytesMax)}",,,,,\n${ANNA}\n`],
  ])('%s ends the import of a CSV file', async (_, rows) => {
    const file = Buffer.from(`${HEADER}\n${rows}`);
    const { refusals } = await runImport(db, file, { map: mapOf(map), pieceBytes: 65_536 });
    expect(refusals).toEqual([
      'line 3: has a misplaced or open quote, or is too long: no row after it was read',
    ]);
  });

  test('a CSV file that was cut off in a quoted cell is reported', async () => {
    const whole = csv(BO, ANNA);
    const { refusals } = await runImport(db, whole.subarray(0, whole.length - 10), { map: mapOf(map) });
    expect(refusals).toEqual([expect.stringMatching(/^line 3: has a misplaced or open quote/)]);
  });
});

describe('a map', () => {
  test.each<[string, string]>([
    ['that is no JSON', '{'],
    ['that is a list', '[]'],
    ['with another member', '{"delimiter":";"}'],
    ['with an object as a constant', '{"constants":{"links":{}}}'],
  ])('a map %s is refused', (_, text) => {
    expect(() => parseCsvMap(text)).toThrow('the map must be JSON with the objects columns and constants');
    expect(() => parseCsvMap(text)).toThrow(Refusal);
  });

  test.each<[string, string, string]>([
    ['a column that the header row lacks', 'customer', HEADER],
    ['a column that the header row has twice', 'A', 'A,A'],
  ])('a map with %s is refused', async (_, name, header) => {
    const map = mapOf({ columns: { [name]: 'id' } });
    const file = Buffer.from(`${header}\n1,2\n`);
    const error = await runImport(db, file, { map }).catch((reason: unknown) => reason);
    expect(error).toBeInstanceOf(Refusal);
    expect((error as Refusal).message).toBe(`the header row must have the column "${name}" once`);
  });

  test('a path of a map reaches no object outside of the row', async () => {
    const { map } = await freshRealm();
    const User = ['__proto__.a', 'links.__proto__.b', 'name.c', 'constructor.prototype.d'];
    const columns = { ...map.columns, User };
    const { counts } = await runImport(db, csv(BO), { map: mapOf({ ...map, columns }) });
    expect(counts.imported + counts.refused).toBeGreaterThan(0);
    expect(['a', 'b', 'c', 'd'].filter((name) => name in {})).toEqual([]);
  });

  test('a constant is the value of rows whose cell is empty', async () => {
    const { ids, map } = await freshRealm();
    const constants = { ...map.constants, email: 'none@example.com' };
    await runImport(db, csv('1,A,A,,,,,', BO), { map: mapOf({ ...map, constants }) });
    const [users] = await recordsOf(ids.realm);
    expect(users?.map(({ email }) => email).sort()).toEqual(['bo@example.com', 'none@example.com']);
  });
});

describe('an export of users as CSV', () => {
  async function exported(database: typeof db, isWithSecrets = false) {
    const snapshot = await database.engine.records.openSnapshot();
    let text = '';
    const users = await exportUsers({
      ...{ snapshot, within: undefined, signal: new AbortController().signal },
      open: isWithSecrets
        ? (place, sealed) => database.keyring.open('oidc-client-secret', place, sealed)
        : undefined,
      write: async (rows) => {
        text += rows;
      },
      onProgress: () => undefined,
    });
    snapshot.close();
    return { text, users };
  }

  /** A database with two realms: users with unusual texts, without links, and with several. */
  async function population() {
    const own = await startService();
    const [first, second] = [realmLines(), realmLines()];
    const odd = [
      ...["=cmd|' /C calc'!A0", '+1', '-1', '@SUM(1)', "'t Hooft", "'", "''", "'=1"],
      ...['True', '"a", b; c', 'Ünï👩‍👩‍👧'],
    ];
    const users = odd.map((name, at) => ({
      ...{ ...first.lines.user, id: mintId(), name, given_name: name, email: `user${at}@example.com` },
      ...{ enabled: at % 3 > 0, meta: { ...first.lines.user.meta, email_vouched: at % 2 === 0 } },
    }));
    const links = users.slice(1).flatMap(({ id }, at) =>
      Array.from({ length: at % 4 }, (_, count) => ({
        ...first.lines.link,
        ...{ id: mintId(), user_authentication_info_id: id, subject: `=${count}-${id}` },
      })),
    );
    const names = users.slice(2).map(({ id }) => ({
      ...first.lines.name,
      ...{ id: mintId(), user_authentication_info_id: id, username: `-name-${id}` },
    }));
    await runImport(own.db, [...first.all, ...second.all, ...users, ...links, ...names] as Json[]);
    const profiles = [first, second].flatMap(({ lines }) => [lines.realm, lines.oidc, lines.passwords]);
    return { ...own, profiles, userCount: users.length + 2 };
  }

  test('an export of CSV has a row for each user and each further link, and an import of it has the same export', async () => {
    const source = await population();
    const { text, users } = await exported(source.db, true);
    expect(users).toBe(source.userCount);
    const target = await startService();
    await runImport(target.db, source.profiles as Json[]);
    const { refusals } = await runImport(target.db, Buffer.from(text), { map: parseCsvMap('{}') });
    expect(refusals).toEqual([]);
    expect((await exported(target.db, true)).text).toBe(text);
  });

  test('an export of CSV has no cell that a spreadsheet takes for a formula, and no secret without the option', async () => {
    const source = await population();
    const { text } = await exported(source.db);
    const cells = [...text.matchAll(/"((?:[^"]|"")*)"/g)].map(([, cell = '']) => cell);
    expect(cells.length).toBeGreaterThan(100);
    expect(cells.filter((cell) => /^[=+\-@\t\r]/.test(cell))).toEqual([]);
    expect(cells).toContain("'=cmd|' /C calc'!A0");
    expect(cells).toContain("''t Hooft");
    expect(cells).toContain("'''");
    expect(text).not.toMatch(/argon2|password_hash/);
  });

  test('an export of CSV has a header row alone if there are no users', async () => {
    const { db: empty } = await startService();
    const { text, users } = await exported(empty);
    expect([users, text.split('\r\n')]).toEqual([0, [expect.stringMatching(/^"realm_id","id","name"/), '']]);
  });
});
