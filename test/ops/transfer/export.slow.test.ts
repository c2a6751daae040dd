import { afterAll, describe, expect, test } from 'bun:test';
import { mkdirSync, readdirSync, readFileSync, renameSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { writeNewFile } from '../../../src/cli/output.ts';
import type { Uuid } from '../../../src/model/id.ts';
import { RESOURCES } from '../../../src/model/resources.ts';
import { systemClock } from '../../../src/ops/process/clock.ts';
import { exportRecords } from '../../../src/ops/transfer/export.ts';
import { freshDatabase, type TestDatabase } from '../../support/database.ts';
import {
  bytesOf,
  importCounts,
  type Json,
  manyUserLines,
  mintId,
  realmLines,
  runImport,
} from '../../support/import_fixtures.ts';
import { AUTHREALM, runAuthrealm, runCommand } from '../../support/processes.ts';
import {
  createFixture,
  freshFolder,
  oidcPath,
  PASSWORD_HASH,
  passwordPath,
  startService,
} from '../../support/service.ts';

const folder = freshFolder();
const at = (name: string): string => join(folder, name);
const run = (command: string, ...args: string[]) => runAuthrealm([command, ...args]);
const linesOf = (path: string): Json[] =>
  readFileSync(path, 'utf8')
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line) as Json);
/** The flags of a database, quoted for a shell. */
const quoted = ({ args }: TestDatabase): string => args.map((word) => `"${word}"`).join(' ');
const partialFiles = (): string[] => readdirSync(folder).filter((name) => name.includes('partial'));

const manyRecords = manyUserLines(1_500);
const fewRecords = realmLines();
const [ofMany, ofFew] = [await freshDatabase(), await freshDatabase()];

for (const [name, { args }, source] of [
  ['many', ofMany, manyRecords],
  ['few', ofFew, [...fewRecords.all, ...realmLines().all]],
] as const) {
  writeFileSync(at(`${name}.in`), bytesOf(source));
  expect((await run('import', at(`${name}.in`), ...args)).code).toBe(0);
}
afterAll(() => expect(partialFiles()).toEqual([]));

describe('an export of an import', () => {
  test('an export, imported into a fresh database and exported again, has the same bytes', async () => {
    const second = await freshDatabase();
    const first = await run('export', '--with-secrets', at('first'), ...ofMany.args);
    expect(first).toEqual({
      code: 0,
      stdout: '',
      stderr: `exported ${manyRecords.length} records to ${at('first')}\n`,
    });
    const again = await run('import', at('first'), ...second.args);
    expect([again.code, again.stderr]).toEqual([0, '']);
    expect((await run('export', '--with-secrets', at('second'), ...second.args)).code).toBe(0);
    expect(readFileSync(ofMany.masterKeyFile, 'utf8')).not.toBe(readFileSync(second.masterKeyFile, 'utf8'));
    expect(readFileSync(at('first')).equals(readFileSync(at('second')))).toBe(true);
  }, 300_000);

  test('an export holds every imported line, parents first, in the order of keys', () => {
    const exported = linesOf(at('first'));
    const order = RESOURCES.map(({ type }) => type);
    const positions = exported.map(
      (line) => `${order.indexOf(line.type as string)} ${line.realm_id ?? ''} ${line.id}`,
    );
    expect(positions).toEqual(positions.toSorted());
    const byId = new Map(exported.map((line) => [line.id, line]));
    for (const line of manyRecords) expect(byId.get(line.id)).toMatchObject(line);
    expect(exported.every((line) => !('revision' in line))).toBe(true);
  });

  test('an export file has mode 0600', () => expect(statSync(at('first')).mode & 0o777).toBe(0o600));
});

describe('an export without secrets', () => {
  test('an export to standard output has no secrets and hashes, and needs no master key', async () => {
    renameSync(ofMany.masterKeyFile, at('elsewhere'));
    const plain = await run('export', ...ofMany.args);
    const guarded = await run('export', '--with-secrets', at('never'), ...ofMany.args);
    renameSync(at('elsewhere'), ofMany.masterKeyFile);
    expect([plain.code, plain.stderr]).toEqual([0, `exported ${manyRecords.length} records\n`]);
    for (const secret of ['client_secret', 'password_hash', '$argon2', 'of-the-provider'])
      expect(plain.stdout).not.toContain(secret);
    const silent = linesOf(at('first')).map(({ client_secret, password_hash, ...line }) => line);
    expect(plain.stdout === bytesOf(silent).toString()).toBe(true);
    expect([guarded.code, guarded.stderr]).toEqual([
      1,
      expect.stringMatching(/master key file .* (is missing|cannot be read)/),
    ]);
    expect(readdirSync(folder)).not.toContain('never');
  });

  test('an exported line holds the members of a GET answer, and its parents', async () => {
    const service = await startService();
    const created = await createFixture(service.db);
    const token = await service.token('profile-infos:read');
    const written: string[] = [];
    const snapshot = await service.db.engine.records.openSnapshot();
    await exportRecords({
      snapshot,
      within: created.realm,
      open: undefined,
      signal: new AbortController().signal,
      write: async (lines) => void written.push(lines),
      onProgress: () => undefined,
    });
    await snapshot.close();
    const lines = written
      .join('')
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line) as Json);
    for (const path of [oidcPath(created), passwordPath(created)]) {
      const { data } = (await (await service.get(path, token)).json()) as { data: Json };
      const line = lines.find(({ id }) => id === data.id);
      expect(line).toEqual({
        ...data,
        realm_id: created.realm,
        user_authentication_info_id: created.user,
      });
    }
  });
});

describe('an export while records are written', async () => {
  const WRITERS = 4;
  const service = await startService();
  const fixtures = await Promise.all(Array.from({ length: WRITERS }, () => createFixture(service.db)));

  /** Exports while each realm gets one user after the other, first its link and then its username. */
  async function exportDuringWrites(within?: Uuid): Promise<readonly Json[]> {
    let isWriting = true;
    let count = 0;
    const writers = fixtures.map(async ({ realm, oidcProfile, passwordProfile }) => {
      for (; isWriting; count += 1) await createFixture(service.db, { realm, oidcProfile, passwordProfile });
    });
    const lines: string[] = [];
    const snapshot = await service.db.engine.records.openSnapshot();
    await exportRecords({
      snapshot,
      within,
      open: undefined,
      signal: new AbortController().signal,
      async write(text) {
        lines.push(text);
        for (const before = count; count < before + 2 * WRITERS; ) await Bun.sleep(5);
      },
      onProgress: () => undefined,
    });
    await snapshot.close();
    isWriting = false;
    await Promise.all(writers);
    const text = lines.join('').trim();
    return text.split('\n').map((line) => JSON.parse(line) as Json);
  }

  function expectOneMoment(lines: readonly Json[], realm: Uuid): void {
    const ofType = (type: string) => lines.filter((line) => line.realm_id === realm && line.type === type);
    const users = ofType('user_authentication_info').map(({ id }) => id);
    const [oidc, password] = ['oidc', 'password'].map((kind) =>
      ofType(`user_authentication_${kind}_profile_info`).map((line) => line.user_authentication_info_id),
    ) as [unknown[], unknown[]];
    expect(users.length).toBeGreaterThan(0);
    expect(oidc.filter((id) => !users.includes(id as string))).toEqual([]);
    expect(password.filter((id) => !oidc.includes(id))).toEqual([]);
    // The snapshot was taken between two writes of the realm's writer, so at most one user has no username yet.
    expect(users.length - password.length).toBeLessThanOrEqual(1);
  }

  test('an export of all realms has every realm as of one moment', async () => {
    const lines = await exportDuringWrites();
    for (const { realm } of fixtures) expectOneMoment(lines, realm);
  }, 300_000);

  test('an export of one realm has it as of one moment', async () => {
    for (const { realm } of fixtures) expectOneMoment(await exportDuringWrites(realm), realm);
  }, 300_000);
});

describe('export --realm', () => {
  test('export --realm exports only that realm, in any letter case', async () => {
    const { stdout, code } = await run(
      'export',
      '--realm',
      fewRecords.ids.realm.toUpperCase(),
      ...ofFew.args,
    );
    const ids = stdout
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line).id);
    expect([code, ids]).toEqual([0, fewRecords.all.map(({ id }) => id) as never]);
  });

  test('export --realm with a missing or malformed realm is refused', async () => {
    const unknown = await run('export', at('no'), '--realm', mintId(), ...ofFew.args);
    expect([unknown.code, unknown.stderr]).toEqual([1, expect.stringMatching(/^authrealm: no realm /)]);
    const wrong = await run('export', at('no'), '--realm', 'shop', ...ofFew.args);
    expect([wrong.code, wrong.stderr]).toEqual([2, expect.stringContaining('Expected an ID')]);
    expect(readdirSync(folder)).not.toContain('no');
  });
});

describe('an export that cannot write', () => {
  const expectRefused = async (sentence: RegExp, code: number, ...args: string[]): Promise<void> => {
    const answer = await run('export', ...args, ...ofFew.args);
    expect([answer.code, answer.stdout]).toEqual([code, '']);
    expect(answer.stderr).toMatch(sentence);
  };

  test('an export never overwrites a file', async () => {
    writeFileSync(at('existing'), 'mine');
    for (const flags of [[], ['--with-secrets']])
      await expectRefused(
        /existing could not be written: it exists, and is never overwritten/,
        1,
        at('existing'),
        ...flags,
      );
    expect(readFileSync(at('existing'), 'utf8')).toBe('mine');
  });

  test('an export never overwrites a file that is created while it writes', async () => {
    const exported = writeNewFile(at('raced'), systemClock, async (write) => {
      await write('exported');
      writeFileSync(at('raced'), 'concurrent');
    });
    await expect(exported).rejects.toThrow(/it exists, and is never overwritten/);
    expect(readFileSync(at('raced'), 'utf8')).toBe('concurrent');
  });

  test('an export with secrets to a pipe, a terminal or a folder is refused', async () => {
    await runCommand(['mkfifo', at('pipe')]);
    mkdirSync(at('folder'));
    await expectRefused(/--with-secrets requires a FILE/, 2, '--with-secrets');
    await expectRefused(/--with-secrets requires a FILE/, 2, '--with-secrets', '-');
    for (const path of [at('pipe'), at('folder'), '/dev/stdout', '/dev/tty'])
      await expectRefused(
        /it exists, and is never overwritten: choose another name/,
        1,
        '--with-secrets',
        path,
      );
  });

  test('an export to a missing or unwritable folder is refused', async () => {
    await expectRefused(/could not be written: /, 1, join(folder, 'nowhere', 'file'));
    await expectRefused(/could not be written: /, 1, '/proc/authrealm');
  });

  test('an export to a full disk is refused', async () => {
    const full = await runCommand(['sh', '-c', `"${AUTHREALM}" export ${quoted(ofFew)} >/dev/full`]);
    expect([full.code, full.stderr]).toEqual([
      1,
      expect.stringMatching(/standard output .* the disk is full/),
    ]);
  });

  // Needs the privilege to mount a file system; the mount ends with its process.
  const canMount = Bun.spawnSync(['unshare', '-m', 'mount', '-t', 'tmpfs', 'none', '/mnt']).exitCode === 0;
  test.if(canMount)('an export that fills the disk leaves no files', async () => {
    mkdirSync(at('small'));
    const script = `mount -t tmpfs -o size=256k none "${at('small')}"
      "${AUTHREALM}" export "${at('small')}/out" ${quoted(ofMany)}; echo "code $?"; ls -A "${at('small')}"`;
    const { stdout, stderr } = await runCommand(['unshare', '-m', 'sh', '-c', script]);
    expect(stdout).toBe('code 1\n');
    expect(stderr).toMatch(/out could not be written: the disk is full/);
  });

  test('an export whose output is closed early fails quietly', async () => {
    const script = `{ "${AUTHREALM}" export ${quoted(ofMany)}; echo "code $?" >&2; } | head -c 10`;
    const { stdout, stderr } = await runCommand(['sh', '-c', script]);
    expect(stdout).toHaveLength(10);
    expect(stderr).toBe('code 1\n');
  });

  test('an export of a missing or in-memory database is refused', async () => {
    const none = await run('export', '--database', `sqlite:${at('none.db')}`);
    expect([none.code, none.stderr]).toEqual([
      1,
      expect.stringMatching(/database .*none\.db is missing or empty/),
    ]);
    const memory = await run('export', '--database', 'sqlite::memory:');
    expect([memory.code, memory.stderr]).toEqual([1, expect.stringMatching(/:memory: is missing or empty/)]);
    expect(readdirSync(folder).some((name) => name.startsWith('none.db'))).toBe(false);
  });
});

test('a signal ends an export after the current lines', async () => {
  const service = await startService();
  await runImport(service.db, manyRecords, { pieceBytes: 1 << 20 });
  const stop = new AbortController();
  const snapshot = await service.db.engine.records.openSnapshot();
  const progress: number[] = [];
  const records = await exportRecords({
    snapshot,
    within: undefined,
    open: undefined,
    signal: stop.signal,
    write: async () => stop.abort(),
    onProgress: (done) => progress.push(done),
  });
  expect([records, progress]).toEqual([1, [1]]);
  await snapshot.close();
});

test('an export fails with the record of a secret that cannot be decrypted', async () => {
  const service = await startService();
  await runImport(service.db, fewRecords.all);
  const broken = new Error('not this key');
  const snapshot = await service.db.engine.records.openSnapshot();
  const exporting = exportRecords({
    snapshot,
    within: undefined,
    open: () => {
      throw broken;
    },
    signal: new AbortController().signal,
    write: async () => undefined,
    onProgress: () => undefined,
  });
  await expect(exporting).rejects.toThrow(
    `client_secret of the oidc-profile ${fewRecords.ids.oidc} cannot be decrypted with this master key`,
  );
  await snapshot.close();
});

test('an import refuses the last line of a truncated export, and accepts one without its last newline', async () => {
  const service = await startService();
  const bytes = bytesOf(linesOf(at('first')).filter(({ realm_id, id }) => !realm_id || id));
  const truncated = await runImport(service.db, bytes.subarray(0, bytes.length - 20), {
    pieceBytes: 1 << 20,
  });
  expect(truncated.counts).toEqual(importCounts(manyRecords.length - 1, 0, 0, 1));
  expect(truncated.refusals).toEqual([`line ${manyRecords.length}: is not JSON`]);
  const complete = await runImport(service.db, bytes.subarray(0, bytes.length - 1), { pieceBytes: 1 << 20 });
  expect(complete.counts).toEqual(importCounts(1, manyRecords.length - 1, 0, 0));
});

test('an export --with-secrets contains client secrets and password hashes', () => {
  const lines = linesOf(at('first'));
  const secrets = lines.flatMap(({ client_secret }) => (client_secret === undefined ? [] : [client_secret]));
  expect(secrets).toEqual(['of-the-provider 🗝']);
  expect(lines.filter(({ password_hash }) => password_hash === PASSWORD_HASH)).toHaveLength(750);
});
