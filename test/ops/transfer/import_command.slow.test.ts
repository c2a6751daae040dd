import { describe, expect, test } from 'bun:test';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { LIMITS } from '../../../src/model/limits.ts';
import { freshDatabase, type TestDatabase } from '../../support/database.ts';
import {
  bytesOf,
  changeEvents,
  type ImportSource,
  manyUserLines,
  mintId,
  realmLines,
  realmRows,
} from '../../support/import_fixtures.ts';
import { AUTHREALM, runAuthrealm, startCommand } from '../../support/processes.ts';
import { verifyCleanRecords } from '../../support/record_verification.ts';
import { freshFolder } from '../../support/service.ts';

describe('authrealm import', () => {
  const folder = freshFolder();
  const file = (name: string, source: ImportSource): string => {
    const path = join(folder, name);
    writeFileSync(path, bytesOf(source));
    return path;
  };
  const run = (input: string, ...args: string[]) => runAuthrealm(['import', ...args], {}, input);
  const users = (count: number) => {
    const { lines } = realmLines();
    return [lines.realm, ...Array.from({ length: count }, () => ({ ...lines.user, id: mintId() }))];
  };
  /** The number of users; zero while the database is missing or not ready. */
  const count = async (database: TestDatabase): Promise<number> => {
    const counted = database.query<{ n: number }>('select count(*) as n from user_info');
    const [row] = await counted.catch(() => []);
    return row?.n ?? 0;
  };

  test('import reads a file or standard input and prints the counts', async () => {
    const { all } = realmLines();
    const { args } = await freshDatabase();
    const first = await run('', file('records.ndjson', all), ...args);
    expect([first.code, first.stderr]).toEqual([0, '']);
    expect(first.stdout.trim().split('\n').at(-1)).toBe('imported 6, unchanged 0, replaced 0, refused 0');
    const second = await run(bytesOf(all).toString(), '-', ...args);
    expect(second).toEqual({
      code: 0,
      stdout: 'imported 0, unchanged 6, replaced 0, refused 0\n',
      stderr: '',
    });
  });

  test('import --firebase-config seals the signer key, which no export has, and a dry run stores none', async () => {
    const { lines } = realmLines();
    const database = await freshDatabase();
    const [signerKey, rest] = [
      'c2lnbmVyIGtleSBvZiB0aGUgcHJvamVjdA==',
      'c2FsdHNhbHQ=$aGFzaGhhc2hoYXNoaGFzaA==$Bw==',
    ];
    const password_hash = `$firescrypt$ln=14,r=8,p=1$${rest}$${signerKey}`;
    const source = file('firebase.ndjson', [
      lines.realm,
      lines.passwords,
      lines.user,
      { ...lines.name, password_hash },
    ]);
    const ofConsole = join(folder, 'hash_config.txt');
    writeFileSync(
      ofConsole,
      `hash_config {\n  algorithm: SCRYPT,\n  base64_signer_key: ${signerKey},\n  rounds: 8,\n}\n`,
    );
    const asJson = join(folder, 'hash_config.json');
    writeFileSync(asJson, JSON.stringify({ base64_signer_key: signerKey, rounds: 8 }));
    const stored = () =>
      database.query<{ name: string }>("select name from instance_secret where name like 'firebase%'");

    const dry = await run('', source, '--dry-run', '--firebase-config', asJson, ...database.args);
    expect([dry.code, dry.stdout]).toEqual([0, expect.stringContaining('imported 4')]);
    expect(await stored()).toEqual([]);
    expect((await run('', source, ...database.args)).stderr).toContain(
      'line 4: password_hash needs the signer key',
    );
    const imported = await run('', source, '--firebase-config', ofConsole, ...database.args);
    expect([imported.code, imported.stderr]).toEqual([0, '']);
    expect(await stored()).toHaveLength(1);
    const exported = join(folder, 'exported.ndjson');
    expect((await runAuthrealm(['export', '--with-secrets', exported, ...database.args])).code).toBe(0);
    const text = readFileSync(exported, 'utf8');
    expect(text).toMatch(/\$scrypt\$ln=14,r=8,p=1,k=[0-9a-f]{16}\$/);
    expect(text).not.toContain(signerKey.slice(0, 20));

    writeFileSync(ofConsole, 'hash_config {}');
    for (const path of [ofConsole, join(folder, 'missing.txt')]) {
      const refused = await run('', source, '--firebase-config', path, ...database.args);
      expect([refused.code, refused.stderr]).toEqual([1, expect.stringContaining(path)]);
    }
  });

  test('import prints which members it ignored and read as enabled, and refuses the former with --strict', async () => {
    const { lines } = realmLines();
    const { args } = await freshDatabase();
    const person = { ...lines.user, phone: '1', '\u001b[2J': 1, blocked: true, active: true };
    const source = file('phones.ndjson', [lines.realm, person]);
    const { code, stdout } = await run('', source, ...args);
    expect([code, ...stdout.trim().split('\n').slice(-3)]).toEqual([
      0,
      'ignored: "\\u001b[2J" 1, "phone" 1',
      'read as enabled: "active" 1, "blocked" 1',
      'imported 2, unchanged 0, replaced 0, refused 0',
    ]);
    const strict = await run('', source, '--strict', ...args);
    expect([strict.code, strict.stderr]).toEqual([
      3,
      expect.stringContaining('line 2: phone is no member of user_'),
    ]);
  });

  test('import prints refusals to standard error and the line from which it can be resumed', async () => {
    const { lines } = realmLines();
    const database = await freshDatabase();
    const { args } = database;
    const source = file('with space.ndjson', [lines.realm, '{', lines.user]);
    const stopped = await run('', source, ...args);
    expect([stopped.code, stopped.stderr]).toEqual([3, 'line 2: is not JSON\n']);
    expect(await count(database)).toBe(0);
    expect(stopped.stdout).toEndWith('run the same command with --from-line 2\n');
    writeFileSync(source, bytesOf([lines.realm, '', lines.user]));
    const resumed = await run('', source, ...args, '--from-line', '2');
    expect([resumed.code, resumed.stderr, await count(database)]).toEqual([0, '', 1]);
    const skipped = await run('{\n[]\n', '-', '--on-error', 'skip', ...args);
    expect([skipped.code, skipped.stderr]).toEqual([
      3,
      'line 1: is not JSON\nline 2: must be a JSON object\n',
    ]);
    expect(skipped.stdout).toBe('imported 0, unchanged 0, replaced 0, refused 2\n');
  });

  test('import refuses wrong arguments before it writes anything', async () => {
    const { args } = await freshDatabase();
    const wrong: [string[], number, RegExp][] = [
      [[join(folder, 'nothing.ndjson'), ...args], 1, /cannot be read/],
      [[folder, ...args], 1, /it is a folder: pass the path of a file/],
      [['-', '--on-error', 'shrug', ...args], 2, /abort, skip/],
      [['-', '--from-line', '0', ...args], 2, /Expected a whole number of at least 1/],
      [[...args], 2, /missing required argument/],
    ];
    const answers = await Promise.all(wrong.map(([args]) => run('', ...args)));
    for (const [at, { code, stdout, stderr }] of answers.entries()) {
      expect([code, stdout]).toEqual([wrong[at]?.[1] ?? 0, '']);
      expect(stderr).toMatch(wrong[at]?.[2] as RegExp);
    }
  }, 300_000);

  test('an import killed in the middle and run again stores the same records as an undisturbed one', async () => {
    const source = users(24_999);
    const [complete, killed] = [await freshDatabase(), await freshDatabase()];
    const path = file('killed.ndjson', source);
    const importing = startCommand([AUTHREALM, 'import', '-', ...killed.args]);
    importing.process.stdin.write(bytesOf(source));
    await importing.process.stdin.flush();
    while ((await count(killed)) < LIMITS.importCommitLines - 1) await Bun.sleep(5);
    importing.process.kill('SIGKILL');
    await importing.process.exited;
    expect(await count(killed)).toBeLessThan(24_999);
    const answers = await Promise.all([run('', path, ...killed.args), run('', path, ...complete.args)]);
    for (const { code, stderr } of answers) expect([code, stderr]).toEqual([0, '']);
    expect(Bun.deepEquals(await realmRows(killed), await realmRows(complete))).toBe(true);
    expect(Bun.deepEquals(await changeEvents(killed), await changeEvents(complete))).toBe(true);
    expect(await changeEvents(killed)).toHaveLength(25_000);
  }, 300_000);

  test('an import of several batches reports every refused line, and logs and verifies every other record', async () => {
    const { args } = await freshDatabase();
    const lines = manyUserLines(500);
    const again = (at: number) => ({ ...lines[at], id: mintId() });
    const source = [
      ...lines.slice(0, 700),
      again(5),
      ...lines.slice(700, 1_300),
      again(6),
      ...lines.slice(1_300),
    ];
    const answer = await run('', file('batches.ndjson', source), '--on-error', 'skip', ...args);
    expect(answer.stderr.trim().split('\n')).toEqual([
      'line 701: another record of the realm has the same issuer and subject',
      'line 1302: another record of the realm has the same password_profile_id and username',
    ]);
    expect(answer.stdout).toEndWith('imported 1504, unchanged 0, replaced 0, refused 2\n');
    expect(await verifyCleanRecords({ args })).toEqual({ covered: 1_504, notCovered: 0 });
  }, 300_000);

  test('SIGTERM ends an import after the current commit with the resume line', async () => {
    const database = await freshDatabase();
    const { args } = database;
    const importing = startCommand([AUTHREALM, 'import', '-', ...args]);
    importing.process.stdin.write(bytesOf(users(LIMITS.importCommitLines + 500)));
    await importing.process.stdin.flush();
    while ((await count(database)) < LIMITS.importCommitLines - 1) await Bun.sleep(5);
    expect(await importing.stop()).toBe(1);
    await importing.line(/^imported 10000, /);
    expect(importing.output()).toContain('--from-line 10001\n');
    expect(await count(database)).toBe(LIMITS.importCommitLines - 1);
  }, 300_000);

  test('an import killed ten times and run again exports the same bytes as an undisturbed one', async () => {
    const source = file('often.ndjson', manyUserLines(10_000));
    const [complete, killed] = [await freshDatabase(), await freshDatabase()];
    await run('', source, ...complete.args);
    for (let kill = 1; kill <= 10; kill += 1) {
      const importing = startCommand([AUTHREALM, 'import', source, ...killed.args]);
      await Bun.sleep(80 * kill);
      importing.process.kill('SIGKILL');
      await importing.process.exited;
    }
    expect((await run('', source, ...killed.args)).code).toBe(0);
    const bytes = await Promise.all(
      [complete, killed].map(async ({ args }) => {
        const out = join(freshFolder(), 'out');
        const exported = await runAuthrealm(['export', '--with-secrets', out, ...args]);
        expect([exported.code, exported.stdout]).toEqual([0, '']);
        return readFileSync(out);
      }),
    );
    expect(bytes[0]?.equals(bytes[1] ?? Buffer.of())).toBe(true);
    expect(await changeEvents(killed)).toHaveLength(30_004);
  }, 300_000);

  test('concurrent imports of two files import both', async () => {
    const database = await freshDatabase();
    const { args } = database;
    const [left, right] = [users(9_999), users(9_999)];
    const sources = [file('left.ndjson', left), file('right.ndjson', right)];
    const answers = await Promise.all(sources.map((source) => run('', source, ...args)));
    for (const { code, stdout, stderr } of answers) {
      expect([code, stderr]).toEqual([0, '']);
      expect(stdout).toEndWith('imported 10000, unchanged 0, replaced 0, refused 0\n');
    }
    expect([await count(database), (await changeEvents(database)).length]).toEqual([19_998, 20_000]);
  }, 300_000);

  test('concurrent imports of one file import every record once', async () => {
    const source = users(14_999);
    const database = await freshDatabase();
    const { args } = database;
    const from = file('both.ndjson', source);
    const answers = await Promise.all([run('', from, ...args), run('', from, ...args)]);
    for (const { code, stderr } of answers) expect([code, stderr]).toEqual([0, '']);
    const imported = answers.map(({ stdout }) => Number(/imported (\d+)/.exec(stdout)?.[1]));
    expect((imported[0] ?? 0) + (imported[1] ?? 0)).toBe(15_000);
    expect([await count(database), (await changeEvents(database)).length]).toEqual([14_999, 15_000]);
  }, 300_000);
});
