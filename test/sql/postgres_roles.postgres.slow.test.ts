import { describe, expect, test } from 'bun:test';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { TABLES } from '../../src/sql/tables/tables.ts';
import {
  createLoginRole,
  futureMigration,
  knownMigrations,
  migrateTo,
  openPostgres,
  rejectionMessage,
  superuserClient,
  tableNames,
  uniqueRoleName,
} from '../support/postgres_schemas.ts';
import { sharedServer } from '../support/postgres_server.ts';

describe('two roles', () => {
  async function createTwoRoles(schema: string) {
    const url = await (await sharedServer()).freshDatabase();
    const [ownerName, appName] = [uniqueRoleName('owner'), uniqueRoleName('app')];
    const [owner, app] = [await createLoginRole(url, ownerName), await createLoginRole(url, appName)];
    await superuserClient(url).unsafe(`create schema ${schema} authorization ${ownerName}`);
    for (const name of [ownerName, appName])
      await superuserClient(url).unsafe(`alter role ${name} set search_path to ${schema}`);
    return { url, owner, app, ownerName, appName };
  }

  test('the app role may only use the tables of the owner role, later tables included', async () => {
    const { url, owner, app } = await createTwoRoles('app');
    const engine = await openPostgres(app, 'auto', owner);
    expect(await engine.access.storeId()).not.toBe('');
    await engine.close();
    await migrateTo(owner, [...knownMigrations, futureMigration]);
    const [privileges] = await superuserClient(app).unsafe(`
      select bool_and(has_table_privilege(c.oid, 'select') and has_table_privilege(c.oid, 'insert')
          and has_table_privilege(c.oid, 'update') and has_table_privilege(c.oid, 'delete')) as all_of_use,
        bool_or(has_table_privilege(c.oid, 'truncate') or has_table_privilege(c.oid, 'references')) as more,
        has_schema_privilege('app', 'create') as tables, count(*)::int as count
      from pg_class c where relnamespace = 'app'::regnamespace and relkind = 'r'`);
    expect(privileges).toEqual({ all_of_use: true, more: false, tables: false, count: TABLES.length + 1 });
    expect((await tableNames(url)).length).toBe(0);
    // After the grants, no start needs the owner.
    await superuserClient(url).unsafe(`delete from app.migration where version = ${futureMigration.version}`);
    for (const mode of ['auto', 'check'] as const) await (await openPostgres(app, mode)).close();
  });

  test('twenty concurrent starts grant the missing privileges', async () => {
    const { owner, app } = await createTwoRoles('late');
    await (await openPostgres(owner)).close();
    expect(await rejectionMessage(openPostgres(app, 'check'))).toMatch(
      /^role app_\w+ has no schema for its tables: grant it/,
    );
    const engines = await Promise.all(Array.from({ length: 20 }, () => openPostgres(app, 'auto', owner)));
    await Promise.all(engines.map((engine) => engine.close()));
    await (await openPostgres(app, 'check')).close();
  }, 300_000);

  test('the refusal of a role without privileges names what to grant', async () => {
    const { url, owner, app, appName } = await createTwoRoles('closed');
    await superuserClient(url).unsafe(`grant usage on schema closed to ${appName}`);
    expect(await rejectionMessage(openPostgres(app))).toMatch(
      /^role app_\w+ may not change schema closed \(.*\): pass its owner with --migrate-database, or run as its owner: grant create/,
    );
    await (await openPostgres(owner)).close();
    const toGrant = `grant select, insert, update, delete on all tables in schema "closed" to "${appName}"`;
    expect(await rejectionMessage(openPostgres(app))).toContain(toGrant);
    await superuserClient(url).unsafe(`grant select on all tables in schema closed to ${appName}`);
    expect(await rejectionMessage(openPostgres(app))).toContain(toGrant);
    await superuserClient(url).unsafe(toGrant);
    await (await openPostgres(app)).close();
  });

  test('two roles with different schemas are refused, naming both schemas', async () => {
    const { url, owner, app, appName } = await createTwoRoles('of_owner');
    await superuserClient(url).unsafe(`create schema of_app authorization ${appName}`);
    await superuserClient(url).unsafe(`alter role ${appName} set search_path to of_app`);
    expect(await rejectionMessage(openPostgres(app, 'auto', owner))).toMatch(
      /^role app_\w+ looks for its tables in schema of_app, and role owner_\w+ creates them in of_owner: run alter role/,
    );
  });

  test('the refusal of a wrong owner password names --migrate-database', async () => {
    const { app, owner } = await createTwoRoles('app');
    const message = await rejectionMessage(
      openPostgres(app, 'auto', `${owner.replace('-secret@', '-guess@')}?prepare=off`),
    );
    expect(message).toMatch(
      /of --migrate-database cannot be opened: .* \(28P01\); pass it with --migrate-database-password-file/,
    );
    expect(message).toMatch(/AUTHREALM_MIGRATE_DATABASE$/);
    expect(message).not.toContain('guess');
  });

  test('two roles in different databases are refused, and neither database is changed', async () => {
    const [first, second] = [await createTwoRoles('app'), await createTwoRoles('app')];
    expect(await rejectionMessage(openPostgres(first.app, 'auto', second.owner))).toBe(
      '--database and --migrate-database are different databases: pass the same database in both, with two roles',
    );
    for (const { url } of [first, second]) expect(await tableNames(url, 'app')).toEqual([]);
  });

  test('the SQL for two roles in docs/guides/postgresql.md works', async () => {
    const page = readFileSync(join(import.meta.dir, '../../docs/guides/postgresql.md'), 'utf8');
    const sql = /## Two roles\n.*?```sql\n(.*?)```/s.exec(page)?.[1] ?? '';
    const server = await sharedServer();
    const url = await server.freshDatabase();
    await superuserClient(url).unsafe(sql).simple();
    const names = ['authrealm_owner', 'authrealm'] as const;
    for (const name of names) await superuserClient(url).unsafe(`alter role ${name} password 'p'`);
    const [owner, app] = names.map((name) => server.url(new URL(url).pathname.slice(1), name, 'p'));
    await (await openPostgres(app ?? '', 'auto', owner)).close();
    await (await openPostgres(app ?? '', 'check')).close();
    expect([(await tableNames(url)).length, (await tableNames(url, 'authrealm')).length]).toEqual([
      0,
      TABLES.length,
    ]);
    for (const name of names.toReversed()) {
      await superuserClient(url).unsafe(`drop owned by ${name} cascade; drop role ${name}`).simple();
    }
  });
});
