import { describe, expect, test } from 'bun:test';
import { join } from 'node:path';
import { SQL } from 'bun';
import { migrationsOf } from '../../src/sql/migrations.ts';
import { connectSqlite } from '../../src/sql/sqlite/connection.ts';
import { createSqlite } from '../support/database.ts';
import { sharedServer } from '../support/postgres_server.ts';
import { AUTHREALM, runCommand } from '../support/processes.ts';
import { freshFolder } from '../support/service.ts';

/** A new database, and a function that runs a statement in it. */
interface Target {
  readonly url: string;
  change(text: string): Promise<void>;
}

const TARGETS: Readonly<Record<'sqlite' | 'postgres', () => Promise<Target>>> = {
  sqlite: async () => {
    const path = join(freshFolder(), 'migrated.db');
    await createSqlite(path);
    return {
      url: `sqlite:${path}`,
      async change(text) {
        const db = connectSqlite(path);
        db.run(text);
        db.close();
      },
    };
  },
  postgres: async () => {
    const url = await (await sharedServer()).freshDatabase();
    return {
      url,
      async change(text) {
        const sql = new SQL(url, { max: 1 });
        await sql.unsafe(text).simple();
        await sql.close();
      },
    };
  },
};

const migrate = ({ url }: Target, ...args: string[]) =>
  runCommand([AUTHREALM, 'migrate', ...args], { AUTHREALM_DATABASE: url, AUTHREALM_MIGRATE: 'check' });

describe('migrate of a PostgreSQL database without tables', () => {
  const make = TARGETS.postgres;
  const known = migrationsOf('postgres');
  const newest = known.at(-1)?.version ?? 0;
  const names = known.map(({ version, name }) => `${version} ${name}`).join(', ');

  test('migrate needs no master key, ignores AUTHREALM_MIGRATE=check, and prints what it applied', async () => {
    const target = await make();
    expect(await migrate(target)).toEqual({
      stdout: `the database now has schema ${newest}; applied: ${names}\n`,
      stderr: '',
      code: 0,
    });
    const again = await migrate(target);
    expect(again.stdout).toBe(`the database has schema ${newest}, the newest: nothing was pending\n`);
    expect(again.code).toBe(0);
  });

  test('migrate --print pending prints runnable SQL and applies nothing', async () => {
    const target = await make();
    const printed = await migrate(target, '--print', 'pending');
    expect(printed.code).toBe(0);
    const sections = known.map(({ version, name, sql }) => `-- ${version} ${name}\n\n${sql}`);
    expect(printed.stdout).toEndWith(`\n\n${sections.join('\n')}`);
    expect((await migrate(target, '--print', 'pending')).stdout).toBe(printed.stdout);
    await target.change(printed.stdout);
  });
});

describe.each(['sqlite', 'postgres'] as const)('migrate of a database of %s', (engine) => {
  const make = TARGETS[engine];
  const newest = migrationsOf(engine).at(-1)?.version ?? 0;

  test('migrate --print pending reports an up-to-date schema', async () => {
    const target = await make();
    await migrate(target);
    const { stdout } = await migrate(target, '--print', 'pending');
    expect(stdout).toBe(`-- The database has schema ${newest}, the newest: nothing is pending.\n`);
  });

  test.each([[], ['--print', 'pending']])('migrate refuses a newer schema: %p', async (...args) => {
    const target = await make();
    await migrate(target);
    await target.change(
      `insert into migration (version, name, applied_at, program_version, serves_from)
        values (${newest + 1}, 'later', 0, '9.9.9', ${newest + 1})`,
    );
    const refused = await migrate(target, ...args);
    expect(refused.code).toBe(1);
    expect(refused.stdout).toBe('');
    expect(refused.stderr).toContain(`schema ${newest + 1}, created by authrealm 9.9.9`);
  });
});

describe.each(Object.entries(TARGETS))('a newer schema that was only expanded, on %s', (_engine, make) => {
  test('migrate leaves a newer expanded schema unchanged, and copy refuses it', async () => {
    const target = await make();
    await migrate(target);
    await target.change(
      `insert into migration (version, name, applied_at, program_version, serves_from)
       values (9, 'later', 0, '9.9.9', 1)`,
    );
    const { stdout, code } = await migrate(target);
    expect([stdout, code]).toEqual(['the database has schema 9, the newest: nothing was pending\n', 0]);
    const to = `sqlite:${join(freshFolder(), 'copy.db')}`;
    const refused = await runCommand([AUTHREALM, 'copy', '--from', target.url, '--to', to]);
    expect([refused.code, refused.stderr]).toEqual([
      1,
      expect.stringContaining('use the release that migrated it'),
    ]);
  });
});

describe('migrate', () => {
  test('migrate --print refuses other values', async () => {
    const { stderr, code } = await runCommand([AUTHREALM, 'migrate', '--print', 'oracle']);
    expect(code).toBe(2);
    expect(stderr).toContain('Allowed choices are pending');
  });

  test('migrate refuses an in-memory database', async () => {
    const { stderr, code } = await runCommand([AUTHREALM, 'migrate', '--database', 'sqlite::memory:']);
    expect([code, stderr]).toEqual([
      1,
      'authrealm: an in-memory database cannot be migrated: it ends with its process\n',
    ]);
  });
});
