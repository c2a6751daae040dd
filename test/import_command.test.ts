import { Database } from 'bun:sqlite';
import { describe, expect, test } from 'bun:test';
import { readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { LIMITS } from '../src/domain/limits.ts';
import { bytesOf, changesOf, family, mint, multitude, rowsOf, type Source } from './bringing.ts';
import { freshFolder } from './kit.ts';
import { AUTHREALM, runCommand, start } from './processes.ts';

describe('the command', () => {
  const folder = freshFolder();
  const file = (name: string, source: Source): string => {
    const path = join(folder, name);
    writeFileSync(path, bytesOf(source));
    return path;
  };
  const database = (name: string) => ({ path: join(folder, name), url: `sqlite:${join(folder, name)}` });
  const run = (input: string, ...args: string[]) => runCommand([AUTHREALM, 'import', ...args], {}, input);
  const users = (count: number) => {
    const { lines } = family();
    return [lines.realm, ...Array.from({ length: count }, () => ({ ...lines.user, id: mint() }))];
  };
  const count = (path: string): number => {
    try {
      const db = new Database(path, { readonly: true });
      const found = db.query<{ n: number }, []>('select count(*) as n from user_info').get()?.n ?? 0;
      db.close();
      return found;
    } catch {
      return 0;
    }
  };

  test('reads a file or standard input and tells what became of it', async () => {
    const { all } = family();
    const { url } = database('told.db');
    const first = await run('', file('told.ndjson', all), '--database', url);
    expect([first.code, first.stderr]).toEqual([0, '']);
    expect(first.stdout.trim().split('\n').at(-1)).toBe('imported 6, unchanged 0, replaced 0, refused 0');
    const second = await run(bytesOf(all).toString(), '-', '--database', url);
    expect(second).toEqual({
      code: 0,
      stdout: 'imported 0, unchanged 6, replaced 0, refused 0\n',
      stderr: '',
    });
  });

  test('refusals stand on standard error, the command to go on with can be pasted', async () => {
    const { lines } = family();
    const { path, url } = database("o'clock.db");
    const source = file('with space.ndjson', [lines.realm, '{', lines.user]);
    const stopped = await run('', source, '--database', url);
    expect([stopped.code, stopped.stderr]).toEqual([3, 'line 2: is not JSON\n']);
    expect(count(path)).toBe(0);
    const advice = stopped.stdout.trim().split('\n').at(-1) ?? '';
    expect(advice).toEndWith('--from-line 2');
    writeFileSync(source, bytesOf([lines.realm, '', lines.user]));
    const resumed = await runCommand(['sh', '-c', advice.replace('authrealm', AUTHREALM)]);
    expect([resumed.code, resumed.stderr, count(path)]).toEqual([0, '', 1]);
    const skipped = await run('{\n[]\n', '-', '--on-error', 'skip', '--database', url);
    expect([skipped.code, skipped.stderr]).toEqual([
      3,
      'line 1: is not JSON\nline 2: must be a JSON object\n',
    ]);
    expect(skipped.stdout).toBe('imported 0, unchanged 0, replaced 0, refused 2\n');
  });

  test('what it cannot do is said before anything is made', async () => {
    const { url } = database('never.db');
    const wrong: [string[], number, RegExp][] = [
      [[join(folder, 'nothing.ndjson'), '--database', url], 1, /cannot be read/],
      [[folder, '--database', url], 1, /is a folder/],
      [['-', '--dry-run', '--database', 'sqlite::memory:'], 1, /a database in memory/],
      [['-', '--dry-run', '--database', url], 1, /there is no database/],
      [['-', '--on-error', 'shrug', '--database', url], 2, /abort, skip/],
      [['-', '--from-line', '0', '--database', url], 2, /counted from 1/],
      [['--database', url], 2, /missing required argument/],
    ];
    const answers = await Promise.all(wrong.map(([args]) => run('', ...args)));
    for (const [at, { code, stdout, stderr }] of answers.entries()) {
      expect([code, stdout]).toEqual([wrong[at]?.[1] ?? 0, '']);
      expect(stderr).toMatch(wrong[at]?.[2] as RegExp);
    }
    expect(readdirSync(folder).filter((name) => name.startsWith('never'))).toEqual([]);
  }, 10_000);

  test('--dry-run tells what would happen and changes nothing', async () => {
    const { lines, all } = family();
    const { path, url } = database('dry.db');
    await run('', file('dry.ndjson', all), '--database', url);
    const before = [rowsOf(path, []), changesOf(path)];
    const source = file('more.ndjson', [
      lines.realm,
      { ...lines.user, name: 'Renamed' },
      { ...lines.user, id: mint() },
      { ...lines.link, id: mint() },
      { ...lines.oidc, client_secret: 'of-the-provider' },
    ]);
    const dry = await run('', source, '--dry-run', '--upsert', '--on-error', 'skip', '--database', url);
    expect(dry).toEqual({
      code: 3,
      stdout: 'dry run, nothing was changed; it would have imported 1, unchanged 2, replaced 1, refused 1\n',
      stderr: 'line 4: another record of the realm has the same issuer and subject\n',
    });
    expect([rowsOf(path, []), changesOf(path)]).toEqual(before);
    expect(readdirSync(dirname(path)).filter((name) => name.includes('dry-run'))).toEqual([]);
  });

  test('--dry-run removes what a killed one left, and nothing of one that runs', async () => {
    const { url } = database('stale.db');
    const source = file('stale.ndjson', family().all);
    await run('', source, '--database', url);
    const names = () => readdirSync(folder).filter((name) => name.includes('dry-run'));
    const killed = start([AUTHREALM, 'import', '-', '--dry-run', '--database', url]);
    while (names().length === 0) await Bun.sleep(2);
    const [left = ''] = names();
    const beside = await run('', source, '--dry-run', '--database', url);
    expect([beside.code, names()]).toEqual([0, [left]]);
    killed.process.kill('SIGKILL');
    await killed.process.exited;
    expect(names()).toEqual([left]);
    expect((await run('', source, '--dry-run', '--database', url)).code).toBe(0);
    expect(names()).toEqual([]);
  }, 10_000);

  test('--dry-run without room for its copy says so', async () => {
    const { path, url } = database('roomless.db');
    const source = file('roomless.ndjson', family().all);
    await run('', source, '--database', url);
    // A file may grow to a half of what the copy needs.
    const blocks = Math.floor(statSync(path).size / 1_024);
    const script = `ulimit -f ${blocks}; trap '' XFSZ; exec "${AUTHREALM}" import "${source}" --dry-run --database "${url}"`;
    const { code, stdout, stderr } = await runCommand(['sh', '-c', script]);
    expect([code, stdout]).toEqual([1, '']);
    expect(stderr).toMatch(/^authrealm: --dry-run works on a copy of the database in the same folder/);
    expect(readdirSync(folder).filter((name) => name.includes('dry-run'))).toEqual([]);
  });

  test('killed in the middle and run again, it ends as if nothing had been', async () => {
    const source = users(24_999);
    const [whole, killed] = [database('whole.db'), database('killed.db')];
    const path = file('killed.ndjson', source);
    const victim = start([AUTHREALM, 'import', '-', '--database', killed.url]);
    victim.process.stdin.write(bytesOf(source));
    await victim.process.stdin.flush();
    while (count(killed.path) < LIMITS.importCommitLines - 1) await Bun.sleep(5);
    victim.process.kill('SIGKILL');
    await victim.process.exited;
    expect(count(killed.path)).toBeLessThan(24_999);
    const answers = await Promise.all([
      run('', path, '--database', killed.url),
      run('', path, '--database', whole.url),
    ]);
    for (const { code, stderr } of answers) expect([code, stderr]).toEqual([0, '']);
    expect(Bun.deepEquals(rowsOf(killed.path), rowsOf(whole.path))).toBe(true);
    expect(Bun.deepEquals(changesOf(killed.path), changesOf(whole.path))).toBe(true);
    expect(changesOf(killed.path)).toHaveLength(25_000);
  }, 20_000);

  test('SIGTERM ends it after the commit under way with the line to resume from', async () => {
    const { path, url } = database('signalled.db');
    const importing = start([AUTHREALM, 'import', '-', '--database', url]);
    importing.process.stdin.write(bytesOf(users(LIMITS.importCommitLines + 500)));
    await importing.process.stdin.flush();
    while (count(path) < LIMITS.importCommitLines - 1) await Bun.sleep(5);
    expect(await importing.stop()).toBe(1);
    await importing.line(/^imported 10000, /);
    expect(importing.output()).toContain('--from-line 10001\n');
    expect(count(path)).toBe(LIMITS.importCommitLines - 1);
  }, 20_000);

  test('killed ten times and run again each time, it exports the same bytes as one that was not', async () => {
    const source = file('often.ndjson', multitude(10_000));
    const [whole, often] = [database('never_killed.db'), database('often_killed.db')];
    await run('', source, '--database', whole.url);
    for (let kill = 1; kill <= 10; kill += 1) {
      const victim = start([AUTHREALM, 'import', source, '--database', often.url]);
      await Bun.sleep(80 * kill);
      victim.process.kill('SIGKILL');
      await victim.process.exited;
    }
    expect((await run('', source, '--database', often.url)).code).toBe(0);
    const bytes = await Promise.all(
      [whole, often].map(async ({ path, url }) => {
        const exported = await runCommand([
          AUTHREALM,
          'export',
          '--with-secrets',
          `${path}.out`,
          '--database',
          url,
        ]);
        expect([exported.code, exported.stdout]).toEqual([0, '']);
        return readFileSync(`${path}.out`);
      }),
    );
    expect(bytes[0]?.equals(bytes[1] ?? Buffer.of())).toBe(true);
    expect(changesOf(often.path)).toHaveLength(30_004);
  }, 60_000);

  test('two files at once both end well', async () => {
    const { path, url } = database('files.db');
    const [left, right] = [users(9_999), users(9_999)];
    const sources = [file('left.ndjson', left), file('right.ndjson', right)];
    const answers = await Promise.all(sources.map((source) => run('', source, '--database', url)));
    for (const { code, stdout, stderr } of answers) {
      expect([code, stderr]).toEqual([0, '']);
      expect(stdout).toEndWith('imported 10000, unchanged 0, replaced 0, refused 0\n');
    }
    expect([count(path), changesOf(path).length]).toEqual([19_998, 20_000]);
  }, 20_000);

  test('two at once both end well', async () => {
    const source = users(14_999);
    const { path, url } = database('both.db');
    const from = file('both.ndjson', source);
    const answers = await Promise.all([run('', from, '--database', url), run('', from, '--database', url)]);
    for (const { code, stderr } of answers) expect([code, stderr]).toEqual([0, '']);
    const imported = answers.map(({ stdout }) => Number(/imported (\d+)/.exec(stdout)?.[1]));
    expect((imported[0] ?? 0) + (imported[1] ?? 0)).toBe(15_000);
    expect([count(path), changesOf(path).length]).toEqual([14_999, 15_000]);
  }, 20_000);
});
