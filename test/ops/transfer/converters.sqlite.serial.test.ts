import { describe, expect, test } from 'bun:test';
import { readFileSync, truncateSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { deriveId, objectsOf } from '../../../examples/convert/import_lines.ts';
import { oidcProfileInfo, user } from '../../../src/model/resources.ts';
import { type ForeignExport, GOOGLE } from '../../support/foreign_export_parts.ts';
import { targetLines, writeForeignExports } from '../../support/foreign_exports.ts';
import { bytesOf } from '../../support/import_fixtures.ts';
import { runMeasured } from '../../support/peak_memory.ts';
import { runAuthrealm, runCommand } from '../../support/processes.ts';
import { freshFolder, startService } from '../../support/service.ts';
import { END_USER, signInTokenOf } from '../../support/sign_in.ts';

/** The converters of examples/convert/ (docs/guides/moving-in.md). */

const CONVERTERS = fileURLToPath(new URL('../../../examples/convert', import.meta.url));
const folder = freshFolder();
const foreign = writeForeignExports(folder);
const at = (name: string) => join(folder, name);
/** A realm for each export. */
const realmOf = (system: string) =>
  `00000000-0000-4000-9000-0000000000${foreign.findIndex((each) => each.system === system)}0`;

for (const { system } of foreign)
  writeFileSync(at(`${system}-realm.ndjson`), bytesOf(targetLines(realmOf(system))));

type Output = Awaited<ReturnType<typeof runCommand>>;

const convert = (system: string, files: readonly string[], args: readonly string[] = []) =>
  runCommand([
    ...[process.execPath, join(CONVERTERS, `${system}.ts`), '--into', at(`${system}-realm.ndjson`)],
    ...[...args, ...files],
  ]);

const service = await startService();
const checker = await signInTokenOf(service);
const reader = await service.token('oidc-profile-infos:read');
const writer = await service.token('users:write');
const runImport = (file: string, importArgs: readonly string[] = []) =>
  runAuthrealm(['import', file, ...importArgs, ...service.database.args]);

/** What each converter wrote, and two imports of it. */
const runs: (ForeignExport & Readonly<Record<'converted' | 'imported' | 'repeated', Output>>)[] = [];
for (const each of foreign) {
  await runImport(at(`${each.system}-realm.ndjson`));
  const converted = await convert(each.system, each.files, each.args);
  const path = at(`${each.system}-users.ndjson`);
  writeFileSync(path, converted.stdout);
  const imported = await runImport(path, each.importArgs);
  runs.push({ ...each, converted, imported, repeated: await runImport(path, each.importArgs) });
}

async function isVerified(system: string, username: string, password: string): Promise<boolean> {
  const realm = realmOf(system);
  const path = `/v2/authentication-realms/${realm}/password-profiles/${realm.slice(0, -1)}1/check`;
  const data = { type: 'password_check', username, password };
  const answer = await service.post(path, checker, { data }, END_USER);
  expect(answer.status).toBe(200);
  return ((await answer.json()) as { data: { verified: boolean } }).data.verified;
}

async function countLinks(system: string, subject: string): Promise<number> {
  const filter = `eq(issuer,${encodeURIComponent(GOOGLE)}):eq(subject,${subject})`;
  const path = `/v2/authentication-realms/${realmOf(system)}/${oidcProfileInfo.collection}?filter=${filter}`;
  return ((await (await service.get(path, reader)).json()) as { data: unknown[] }).data.length;
}

/** The ID of the user with a username, in converted lines. */
function ownerOf({ stdout }: Output, username: string): string {
  const lines = stdout.trim().split('\n');
  const found = lines.map((line) => JSON.parse(line)).find((line) => line.username === username);
  return found.user_authentication_info_id;
}

async function enable(system: string, id: string): Promise<number> {
  const path = `/v2/authentication-realms/${realmOf(system)}/${user.collection}/${id}`;
  return (await service.put(path, writer, { data: { type: user.type, enabled: true } })).status;
}

describe('an export of another system', () => {
  test.each(runs)(
    'all users of an export of $system are imported, and a repetition changes nothing',
    async ({ system, files, args, report, lines, converted, imported, repeated }) => {
      expect([converted.code, converted.stderr]).toEqual([0, report]);
      expect([imported.code, imported.stderr]).toEqual([0, '']);
      expect(imported.stdout).toEndWith(`imported ${lines}, unchanged 0, replaced 0, refused 0\n`);
      expect((await convert(system, files, args)).stdout).toBe(converted.stdout);
      expect(repeated.stdout).toEndWith(`imported 0, unchanged ${lines}, replaced 0, refused 0\n`);
    },
  );

  test.each(runs)('the passwords and links of $system are found', async ({ system, passwords, subjects }) => {
    for (const { username, password } of passwords) {
      expect([username, await isVerified(system, username, `${password}?`)]).toEqual([username, false]);
      expect([username, await isVerified(system, username, password)]).toEqual([username, true]);
    }
    for (const subject of subjects)
      expect([subject, await countLinks(system, subject)]).toEqual([subject, 1]);
  });

  test.each(runs)(
    'no user who is disabled in an export of $system signs in before being enabled here',
    async ({ system, disabled, converted }) => {
      for (const { username, password } of disabled)
        expect([username, await isVerified(system, username, password)]).toEqual([username, false]);
      for (const { username, password } of disabled) {
        expect(await enable(system, ownerOf(converted, username))).toBe(200);
        expect([username, await isVerified(system, username, password)]).toEqual([username, true]);
      }
    },
  );

  test('two users of an export may have one name and one e-mail address', () => {
    for (const { system, converted } of runs.filter(({ system }) => /keycloak|auth0/.test(system))) {
      const lines = converted.stdout.trim().split('\n');
      const users = lines.map((line) => JSON.parse(line));
      const same = users.filter(({ email }) => email === `jane.${system}@example.com`);
      expect(same.map(({ name }) => name)).toEqual(['Jane Doe', 'Jane Doe']);
      expect(new Set(same.map(({ id }) => id)).size).toBe(2);
    }
  });
});

describe('an export that is damaged', () => {
  test.each(foreign)(
    'an export of $system that was cut short ends its conversion with its place, and code 1',
    async ({ system, files, args }) => {
      // The last file with users, cut within the last of them.
      const [whole = ''] = files.filter((path) => !path.includes('federated')).slice(-1);
      const bytes = readFileSync(whole);
      const cut = at(`${system}-cut.json`);
      for (const length of [bytes.length - 5, Math.floor(bytes.length * 0.7), 20]) {
        writeFileSync(cut, bytes);
        truncateSync(cut, length);
        const { code, stderr } = await convert(system, [cut], args);
        expect([length, code, stderr]).toEqual([
          length,
          1,
          expect.stringMatching(/-cut\.json(, line \d+)? is not JSON in UTF-8, or was cut short\n$/),
        ]);
      }
    },
    60_000,
  );

  const jane = { id: 'jane', traits: { email: 'jane@example.com', name: 'Jane Döring' } };
  const text = `${JSON.stringify(jane)}\n`;
  const john = '{"id":"john","traits":{"email":"john@example.com"}}';

  async function convertBytes(bytes: Uint8Array | string) {
    const file = at('damaged.json');
    writeFileSync(file, bytes);
    const { code, stdout, stderr } = await convert('kratos', [file]);
    return { code, stdout, stderr: stderr.replaceAll(folder, '') };
  }

  test('an export with a byte order mark, CRLF and empty lines is converted as one without', async () => {
    const plain = await convertBytes(text + john);
    expect([plain.code, plain.stdout.split('\n').length]).toEqual([0, 3]);
    const marked = await convertBytes(`\ufeff${text.replace('\n', '\r\n\r\n')}${john}\r\n`);
    expect(marked).toEqual(plain);
  });

  const UNREADABLE = 'is not JSON in UTF-8, or was cut short\n';
  const FOREIGN = 'is no user in the format that this converter reads\n';
  test.each([
    ['in Latin-1', Buffer.from(`${john}\n${text}`, 'latin1'), `line 2 ${UNREADABLE}`],
    ['in UTF-16', Buffer.from(`\ufeff${text}`, 'utf16le'), `line 1 ${UNREADABLE}`],
    ['of CSV', 'id,email\njane,jane@example.com\n', `line 1 ${UNREADABLE}`],
    ['with a line that is no JSON', `${john}\n{"id":jane}\n`, `line 2 ${UNREADABLE}`],
    ['with a line that was cut', `${text.slice(0, 40)}\n${john}\n`, `line 1 ${UNREADABLE}`],
    ['with a user without ID', `${john}\n{"traits":{"email":"jane@example.com"}}\n`, `line 2 ${FOREIGN}`],
    ['with a text for a user', '["jane@example.com"]\n', `line 1 ${FOREIGN}`],
  ])('an export %s ends its conversion with the line alone, and code 1', async (_what, bytes, problem) => {
    const { code, stderr } = await convertBytes(bytes);
    expect([code, stderr]).toEqual([1, `/damaged.json, ${problem}`]);
  });

  test('an export without users, and a missing file, end the conversion with code 1', async () => {
    for (const nothing of ['', '\n', '[]'])
      expect(await convertBytes(nothing)).toEqual({ code: 1, stdout: '', stderr: 'no user was converted\n' });
    const missing = await convert('kratos', [at('missing.json')]);
    expect([missing.code, missing.stderr]).toEqual([1, expect.stringContaining('missing.json')]);
  });

  test('an export of all realms of Keycloak in one file has no user of the realm', async () => {
    writeFileSync(at('realms.json'), '[{"realm":"shop","users":[{"id":"1","username":"jane"}]}]');
    const { code, stderr } = await convert('keycloak', [at('realms.json')]);
    expect([code, stderr]).toEqual([1, 'no user was converted\n']);
  });
});

test('a converter refuses wrong arguments, and a realm file with two password profiles', async () => {
  const { files = [] } = foreign[0] ?? {};
  const run = (...words: readonly string[]) =>
    runCommand([process.execPath, join(CONVERTERS, 'keycloak.ts'), ...words]);
  const target = at('keycloak-realm.ndjson');
  const two = at('two.ndjson');
  writeFileSync(two, `${readFileSync(target, 'utf8')}{"type":"password_profile","id":"2"}\n`);
  for (const [words, problem] of [
    [[...files], 'pass --into'],
    [['--into', target], 'and the files of the export'],
    [['--into', target, '--issuer', GOOGLE, ...files], `--issuer is ${GOOGLE}: pass NAME=URL`],
    [['--into', target, '--passwords', target, ...files], '--passwords'],
    [['--into', two, ...files], 'must have the lines of one realm and of one password profile'],
  ] as const) {
    const { code, stdout, stderr } = await run(...words);
    expect([code, stdout, stderr]).toEqual([1, '', expect.stringContaining(problem)]);
  }
});

test('the IDs of a user and of a link that are UUIDs stay', () => {
  const run = runs.find(({ system }) => system === 'supabase');
  const row = JSON.parse(readFileSync(run?.files[0] ?? '', 'utf8').split('\n')[0] ?? '');
  const ids = run?.converted.stdout.split('\n', 3).map((line) => JSON.parse(line).id);
  expect([ids?.[0], ids?.[2]]).toEqual([row.id, row.identities[1].id]);
});

test('an ID that is no UUID becomes the version 5 UUID of a fixed namespace', () => {
  for (const id of ['auth0|5dea9f9c82dd7c0e76e4ec93', 'Zx81AbCdEfGhIjKlMnOpQrStUvW2', 'Jürgen'])
    expect(deriveId(id)).toBe(Bun.randomUUIDv5(id, '652d285b-6c5e-49b0-946c-bd082b59c19c'));
});

test('the users of an export come whole and in order, each with its place', () => {
  const users = ['{"}{][', '"\\', '\u2028', '👩‍👩‍👧'].map((name) => ({ name }));
  const file = at('several.json');
  const placed = (place: (index: number) => string) =>
    users.map((user, index) => [user, `${file}, ${place(index)}`] as const);
  writeFileSync(file, `${JSON.stringify(users.slice(0, 3))}\n\n${JSON.stringify(users[3])}`);
  expect([...objectsOf(file)]).toEqual(placed((index) => `line ${index < 3 ? 1 : 3}`));
  writeFileSync(file, JSON.stringify({ other: [{ users: [{}] }], users }));
  expect([...objectsOf(file, ['federatedUsers', 'users'])]).toEqual(placed((index) => `user ${index + 1}`));
});

test('a converter takes less memory than the file of lines that it reads', async () => {
  const file = at('large.ndjson');
  // Lines longer than a read, whose ends are anywhere within it.
  const lineOf = (id: number) => JSON.stringify({ id: `${id}`, traits: {}, metadata: 'x'.repeat(100_000) });
  const writer = Bun.file(file).writer();
  for (let id = 0; id < 2_000; id += 1) {
    writer.write(`${lineOf(id)}\n`);
    await writer.flush();
  }
  await writer.end();
  const command = [join(CONVERTERS, 'kratos.ts'), '--into', at('kratos-realm.ndjson'), file];
  const { code, stdout, peakMb } = await runMeasured([process.execPath, ...command]);
  expect([code, stdout.trim().split('\n').length]).toEqual([0, 2_000]);
  expect(peakMb).toBeLessThan(143);
}, 60_000);
