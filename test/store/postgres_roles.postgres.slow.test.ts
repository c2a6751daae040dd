import { describe, expect, test } from 'bun:test';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import {
  behind,
  known,
  migrateTo,
  next,
  open,
  refusal,
  role,
  roleName,
  tables,
} from '../support/postgres_schemas.ts';
import { sharedServer } from '../support/postgres_server.ts';

/** How many tables this release has. */
const TABLES = readFileSync(join(import.meta.dir, '../../src/store/postgres/schema.tsv'), 'utf8')
  .split('\n')
  .filter((line) => line.startsWith('table\t')).length;

describe('two roles', () => {
  async function twoRoles(schema: string) {
    const url = await (await sharedServer()).freshDatabase();
    const [ownerName, appName] = [roleName('owner'), roleName('app')];
    const [owner, app] = [await role(url, ownerName), await role(url, appName)];
    await behind(url).unsafe(`create schema ${schema} authorization ${ownerName}`);
    for (const name of [ownerName, appName])
      await behind(url).unsafe(`alter role ${name} set search_path to ${schema}`);
    return { url, owner, app, ownerName, appName };
  }

  test('the one owns the schema, and the other may use it and no more, later tables included', async () => {
    const { url, owner, app } = await twoRoles('ours');
    const engine = await open(app, 'auto', owner);
    expect(await engine.access.storeId()).not.toBe('');
    await engine.close();
    await migrateTo(owner, [...known, next]);
    const [may] = await behind(app).unsafe(`
      select bool_and(has_table_privilege(c.oid, 'select') and has_table_privilege(c.oid, 'insert')
          and has_table_privilege(c.oid, 'update') and has_table_privilege(c.oid, 'delete')) as all_of_use,
        bool_or(has_table_privilege(c.oid, 'truncate') or has_table_privilege(c.oid, 'references')) as more,
        has_schema_privilege('ours', 'create') as tables, count(*)::int as count
      from pg_class c where relnamespace = 'ours'::regnamespace and relkind = 'r'`);
    expect(may).toEqual({ all_of_use: true, more: false, tables: false, count: TABLES + 1 });
    expect((await tables(url)).length).toBe(0);
    // Once granted, nobody needs the owner.
    await behind(url).unsafe(`delete from ours.migration where version = ${next.version}`);
    for (const mode of ['auto', 'check', 'off'] as const) await (await open(app, mode)).close();
  });

  test('twenty at once grant what was not granted before', async () => {
    const { owner, app } = await twoRoles('late');
    await (await open(owner)).close();
    expect(await refusal(open(app, 'off'))).toMatch(
      /^role app_\w+ sees no schema to have its tables in: grant it/,
    );
    const engines = await Promise.all(Array.from({ length: 20 }, () => open(app, 'auto', owner)));
    await Promise.all(engines.map((engine) => engine.close()));
    await (await open(app, 'off')).close();
  }, 300_000);

  test('a role without rights is told what to grant', async () => {
    const { url, owner, app, appName } = await twoRoles('kept');
    await behind(url).unsafe(`grant usage on schema kept to ${appName}`);
    expect(await refusal(open(app))).toMatch(
      /^role app_\w+ may not change schema kept \(.*\): name its owner by --migrate-database, or as its owner: grant create/,
    );
    await (await open(owner)).close();
    const toGrant = `grant select, insert, update, delete on all tables in schema "kept" to "${appName}"`;
    expect(await refusal(open(app))).toContain(toGrant);
    await behind(url).unsafe(`grant select on all tables in schema kept to ${appName}`);
    expect(await refusal(open(app))).toContain(toGrant);
    await behind(url).unsafe(toGrant);
    await (await open(app)).close();
  });

  test('that look into different schemas are told so', async () => {
    const { url, owner, app, appName } = await twoRoles('mine');
    await behind(url).unsafe(`create schema yours authorization ${appName}`);
    await behind(url).unsafe(`alter role ${appName} set search_path to yours`);
    expect(await refusal(open(app, 'auto', owner))).toMatch(
      /^role app_\w+ looks for its tables in schema yours, and role owner_\w+ makes them in mine: alter role/,
    );
  });

  test('say which of the two is not let in', async () => {
    const { app, owner } = await twoRoles('shut');
    const said = await refusal(open(app, 'auto', `${owner.replace('-secret@', '-guess@')}?prepare=off`));
    expect(said).toMatch(
      /--migrate-database names it .* \(28P01\); give it by --migrate-database-password-file/,
    );
    expect(said).toMatch(/AUTHREALM_MIGRATE_DATABASE$/);
    expect(said).not.toContain('guess');
  });

  test('that look into different databases are told so, and neither is changed', async () => {
    const [here, there] = [await twoRoles('near'), await twoRoles('near')];
    expect(await refusal(open(here.app, 'auto', there.owner))).toBe(
      '--database and --migrate-database name two databases: name one of them in both, as two roles',
    );
    for (const { url } of [here, there]) expect(await tables(url, 'near')).toEqual([]);
  });

  test('as docs/operating.md has them', async () => {
    const page = readFileSync(join(import.meta.dir, '../../docs/operating.md'), 'utf8');
    const sql = /## Two roles\n.*?```sql\n(.*?)```/s.exec(page)?.[1] ?? '';
    const server = await sharedServer();
    const url = await server.freshDatabase();
    await behind(url).unsafe(sql).simple();
    const names = ['authrealm_owner', 'authrealm'] as const;
    for (const name of names) await behind(url).unsafe(`alter role ${name} password 'p'`);
    const [owner, app] = names.map((name) => server.url(new URL(url).pathname.slice(1), name, 'p'));
    await (await open(app ?? '', 'auto', owner)).close();
    await (await open(app ?? '', 'check')).close();
    expect([(await tables(url)).length, (await tables(url, 'authrealm')).length]).toEqual([0, TABLES]);
    for (const name of names.toReversed()) {
      await behind(url).unsafe(`drop owned by ${name} cascade; drop role ${name}`).simple();
    }
  });
});
