import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { systemClock } from '../../src/ops/process/clock.ts';
import { COPIED_TABLES } from '../../src/ops/store/copying/side.ts';
import { isCitusEngine, sharedCluster } from './citus_cluster.ts';
import { postgresAt, sqliteAt, type TestDatabase } from './database.ts';
import { type Json, numbersOfRealms } from './import_fixtures.ts';
import { sharedServer } from './postgres_server.ts';
import { AUTHREALM, runCommand } from './processes.ts';
import {
  createParents,
  createRecord,
  FULL_SCOPE,
  KINDS,
  OFFLINE,
  type ParentIds,
  uniqueWord,
} from './resource_cases.ts';
import { comparableResponse, freshFolder, type Service, startService } from './service.ts';
import { createSettingsRealms, createStorefront } from './settings_realms.ts';

/** Fixtures of the `copy` suites: databases of both engines with rows in every table. */

export type Engine = 'sqlite' | 'postgres' | 'citus';

/** The engine with a server: PostgreSQL, or in a run on Citus a cluster. */
export const SERVER_ENGINE: Engine = isCitusEngine ? 'citus' : 'postgres';

type Pair = readonly [source: Engine, target: Engine];

/** Both directions between two engines. */
export const DIRECTIONS: readonly [Pair, Pair] = isCitusEngine
  ? [
      ['postgres', 'citus'],
      ['citus', 'postgres'],
    ]
  : [
      ['sqlite', 'postgres'],
      ['postgres', 'sqlite'],
    ];

/** Every pair of source and target engine; in a run on Citus, those with a cluster. */
export const ENGINE_PAIRS: readonly Pair[] = isCitusEngine
  ? [...DIRECTIONS, ['sqlite', 'citus'], ['citus', 'sqlite'], ['citus', 'citus']]
  : [...DIRECTIONS, ['sqlite', 'sqlite'], ['postgres', 'postgres']];

export function newMasterKey(): string {
  return Buffer.from(systemClock.randomBytes(32)).toString('base64url');
}

/** A new database and a master key for it. */
export async function freshDatabaseOf(engine: Engine, masterKey: string): Promise<TestDatabase> {
  const path = join(freshFolder(), 'home.db');
  // A key next to a missing database shows that there was one.
  const keyFile = join(freshFolder(), 'master.key');
  writeFileSync(keyFile, masterKey, { mode: 0o600 });
  if (engine === 'sqlite') return sqliteAt(path, keyFile);
  const url = await (engine === 'citus'
    ? (await sharedCluster()).emptyDatabase()
    : (await sharedServer()).freshDatabase());
  return postgresAt(url, keyFile, { database: url });
}

type Named = Pick<TestDatabase, 'url'>;

export function runCopy(from: Named, to: Named) {
  return runCommand([AUTHREALM, 'copy', '--from', from.url, '--to', to.url]);
}

/** The number of copied rows that `copy` prints. */
export function copiedRowCount(stdout: string): number {
  return Number(/^source and target are equal: (\d+) rows$/m.exec(stdout)?.[1]);
}

/** Whether a target has no row of a copy, and perhaps no tables. */
export async function isEmptyTarget(target: Pick<TestDatabase, 'query'>): Promise<boolean> {
  const { instance: _, ...rows } = await allRows(target).catch(() => ({ instance: [] }));
  return Object.values(rows).every((found) => found.length === 0);
}

/** Columns that are not copied: hashes, row IDs and the order of one engine, and the constant by which Citus distributes a log. */
export function isCopiedColumn(column: string): boolean {
  return !['slot', 'number', 'moved', 'log_id'].includes(column) && !column.endsWith('_crc');
}

const compareTexts = (one: string, other: string): number => (one < other ? -1 : Number(one > other));

/** Every row of every table, without the columns that are not copied. */
export async function allRows(
  database: Pick<TestDatabase, 'query'>,
): Promise<Readonly<Record<string, readonly Json[]>>> {
  const found: Record<string, readonly Json[]> = {};
  const realms = await numbersOfRealms(database);
  for (const table of COPIED_TABLES) {
    const { name, key, copied: columns } = table;
    const rows = await database.query<Json>(`select * from ${name} order by ${key.join(', ')}`);
    if (columns.get('realm_id') === 'realm') {
      for (const row of rows) row.realm_id = realms.get(row.realm_id as number) ?? row.realm_id;
      rows.sort((one, other) => compareTexts(String(one.realm_id), String(other.realm_id)));
    }
    found[name] = rows.map((row) =>
      Object.fromEntries(
        Object.entries(row)
          .filter(([column]) => isCopiedColumn(column))
          .map(([column, value]) => [
            column,
            columns.get(column) === 'id_bytes' && value
              ? hexOfId(value)
              : value instanceof Uint8Array
                ? value.toHex()
                : value,
          ]),
      ),
    );
  }
  return found;
}

/** The digits of an ID: SQLite stores those of the log as bytes. */
function hexOfId(value: unknown): string {
  return value instanceof Uint8Array ? value.toHex() : String(value).replaceAll('-', '');
}

/** Not served; only part of links and tokens, so that those of two services are equal. */
const BASE_URL = 'https://idp.example';

export function startCopyService(database: TestDatabase): Promise<Service> {
  return startService({ ...database.flags, ...OFFLINE, baseUrl: BASE_URL });
}

/** The records of a copied database, and requests whose responses must not change. */
export interface CopyFixture {
  readonly home: ParentIds;
  readonly token: string;
  readonly paths: readonly string[];
  /** A request with a stored idempotency record. */
  readonly repeated: {
    readonly path: string;
    readonly body: object;
    readonly headers: Record<string, string>;
  };
  /** Settings that name realms, one with a prefix, and a client whose ID alone reads them. */
  readonly settings: {
    readonly paths: readonly string[];
    readonly token: string;
    readonly storefrontId: string;
  };
}

/** Fills a database through the service: all resources, secrets, an idempotency record, clients. */
export async function createCopyFixture(service: Service): Promise<CopyFixture> {
  const token = await service.token(FULL_SCOPE);
  const home = await createParents(service, token, { client_secret: `Ünï "\\/ 🗝 ${uniqueWord('secret')}` });
  const paths: string[] = [];
  for (const kind of KINDS) {
    const made = await createRecord(service, token, { kind, home });
    paths.push(kind.collection(home), made.path);
  }
  const [, user] = KINDS.filter(({ name }) => name === 'user' || name === 'realm');
  if (!user) throw new Error('there is no resource case called user');
  const body = { data: user.fresh(home) };
  const headers = { 'Idempotency-Key': uniqueWord('key') };
  const repeated = { path: user.collection(home), body, headers };
  await service.post(repeated.path, token, body, headers);
  await service.token('oidc-profile-infos:read', new Set([home.realm as never]));
  const settings = await createSettings(service);
  return { home, token, paths, repeated, settings };
}

async function createSettings(service: Service): Promise<CopyFixture['settings']> {
  const { accounts, merchants } = await createSettingsRealms(service.db);
  const token = await service.token('settings:read settings:write users:read');
  const mapping = `/v2/merchant-realm-mappings/${merchants}`;
  const data = { type: 'merchant-realm-mappings', prefix: 'shop' };
  await service.put(mapping, token, { data });
  const { clientId: storefrontId } = await createStorefront(service, accounts);
  const paths = [
    ...[mapping, '/v2/settings', '/v2/settings/account-authentication', '/v2/stores'],
    ...['/v2/settings/customer-authentication', '/v2/account-members'],
  ];
  return { paths, token, storefrontId };
}

/** Inserts a row into each table that requests do not fill. */
export async function fillRemainingTables(database: TestDatabase): Promise<void> {
  const [realm, user, webhook] = [systemClock.mintId(), systemClock.mintId(), 'w-1'];
  const sealed = database.address.engine === 'sqlite' ? "x'00ff'" : "'\\x00ff'";
  const rows: readonly (readonly [table: string, values: string, ...given: string[]])[] = [
    ['erasure', '?, ?, 1, 2', realm, user],
    ['sign_in_budget', "?, 'name', 1, '', 9999999999999", realm],
    ['revoked_token', '?, ?, 2', 'jti', 'client'],
    ['client_use', '?, 3', 'client'],
    ['console_link', "?, 'anna', 'users:read', '*', 1, 9999999999999, null", 'digest'],
    [
      'console_session',
      "?, 'console:anna', 'users:read', '*', '', 1, 9999999999999, 9999999999999, null, null",
      'id',
    ],
    [
      'webhook',
      `?, 'shop', ?, 'user', '${realm}', 1, 10, null, ${sealed}, null, null, null, 1, 2, 'r', null`,
      webhook,
      'https://a.example/',
    ],
    ['webhook_progress', '?, ?, 7, 0, 8, 9, 10', webhook, realm],
    ['delivery', `?, 'd', 'm', ?, 1, 7, 1, 'failed', 500, 12, 9`, webhook, realm],
    ['dead_letter', '?, ?, 1, 7, 3, 9', webhook, realm],
  ];
  for (const [table, values, ...given] of rows) {
    await database.tamper(`insert into ${table} values (${values})`, ...given);
  }
}

/** The responses to all requests of a fixture. */
export async function responsesOf(
  service: Service,
  { token, paths, repeated, settings }: CopyFixture,
): Promise<readonly string[]> {
  const answers: string[] = [];
  for (const path of paths) answers.push(await comparableResponse(await service.get(path, token)));
  answers.push(
    await comparableResponse(await service.post(repeated.path, token, repeated.body, repeated.headers)),
  );
  for (const path of settings.paths)
    answers.push(await comparableResponse(await service.get(path, settings.token)));
  const form = { grant_type: 'implicit', client_id: settings.storefrontId };
  const granted = await service.requestToken(form);
  const { identifier, scope } = (await granted.json()) as Readonly<Record<string, string>>;
  answers.push(`${granted.status} ${identifier} ${scope}`);
  return answers;
}
