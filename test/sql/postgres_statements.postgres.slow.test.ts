import { afterAll, describe, expect, test } from 'bun:test';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { SQL } from 'bun';
import { changeClient, createClient, deleteClient } from '../../src/access/clients/clients.ts';
import { createNewKeyFile } from '../../src/access/keys/master_key.ts';
import { rotateSigningKey, withdrawSigningKey } from '../../src/access/keys/signing.ts';
import type { Client } from '../../src/access/store/clients.ts';
import { readSettings } from '../../src/app/config/parse.ts';
import { openDatabase, rewrap } from '../../src/app/open_database.ts';
import { parseFilter } from '../../src/model/filter/filter.ts';
import { createAuditEntry } from '../../src/model/log/audit_entry.ts';
import { ancestry, type Key } from '../../src/model/resource.ts';
import { includableBelow, oidcProfile, RESOURCES, user } from '../../src/model/resources.ts';
import { systemClock } from '../../src/ops/process/clock.ts';
import { type Engine, openEngine, type PostgresAddress, parseDatabase } from '../../src/ops/store/open.ts';
import { migrationsOf } from '../../src/sql/migrations.ts';
import { hasSharedStatementNames } from '../../src/sql/postgres/pooler.ts';
import { consoleLinkTable } from '../../src/sql/tables/installation.ts';
import { findContract } from '../records/contract/find.contract.ts';
import { idempotencyContract } from '../records/contract/idempotency.contract.ts';
import { includingContract } from '../records/contract/including.contract.ts';
import { listContract } from '../records/contract/list.contract.ts';
import { loadContract } from '../records/contract/load.contract.ts';
import { pageRemovalContract } from '../records/contract/page_removal.contract.ts';
import { patchContract } from '../records/contract/patch.contract.ts';
import { removeContract } from '../records/contract/remove.contract.ts';
import { scannerContract } from '../records/contract/scanner.contract.ts';
import { similarIdsContract } from '../records/contract/similar_ids.contract.ts';
import { storeContract } from '../records/contract/store.contract.ts';
import { mintId } from '../records/contract/store_fixtures.ts';
import { wordsContract } from '../records/contract/words.contract.ts';
import { inspectPlan, type PlanRealms, useGenericPlans } from '../support/plan_realms.ts';
import { type PostgresServer, startServer } from '../support/postgres_server.ts';
import { createFixture, freshFolder, insertRecord } from '../support/service.ts';
import {
  derivedTexts,
  fragmentsInSource,
  plainText,
  STATEMENT_LOGGING,
  statementsInLog,
  withoutPlaces,
} from '../support/statement_texts.ts';

/**
 * Every statement that the PostgreSQL engine can send: those in the server's log of the contract suite and of other
 * uses, and those derived from the descriptions. Each names the realm of every row it touches, or is listed below.
 */

/** The SQL that a service sends, but for names of tables and columns: another engine with PostgreSQL's protocol must know it. */
const SQL_WORDS = `
  and any array_to_tsvector as begin between by case coalesce commit committed conflict count cross delete desc distinct do
  else encode end exclusive exists for from greatest group in insert integer into is isolation join json_agg lateral length
  level limit lock locked max mode not nothing null offset on only or order ordinality read release repeatable returning
  rollback savepoint select set set_config share skip string_to_array strpos substr sum table text then to true unnest
  update values when where with
`;

/** Statements that do not. A router asks every shard, because they concern all realms, or find rows by time or key. */
const WITHOUT_REALM: Readonly<Record<string, RegExp>> = {
  'expired idempotency records': /^select realm_id, client_id, key from idempotency where expires_at <= /,
  'full budgets of wrong passwords':
    /^select realm_id, name, kind, source, full_at from sign_in_budget where full_at <= /,
  'secrets under another master key': /^select .* length\(client_secret_sealed\) > 0 and encode\(/,
  'lists of realms':
    /^select .* from realm where (true|realm_id = any\()|^select realm_id from realm order by/,
  'searches of all realms':
    /^select .* from (oidc|password)_profile_info where ((realm_id > \$\d+|realm_id = any\(.*\)) and )*(subject|username_key) = \$\d+ |^select .* from user_info where realm_id = any\(\S+\) and \w+_key = /,
  'searches of all realms by words, and their totals':
    /^select .* from (user_info|password_profile_info) where ((realm_id > \$\d+|\(realm_id, id\) > \(\$\d+, \$\d+\)|realm_id = any\(\S+\)) and )*(true order by|array_to_tsvector)|^select (count\(\*\) as n from \(select 1 from (user|password)_|sum\()/,
  'the feed heads of realms': /^select k\.realm_id, e\.seq, /,
  'changes not yet sent to a webhook target':
    /^select realm_id, moved, seq as head from realm_clock where (\(?moved|realm_id = any)|^insert into webhook_progress .* from realm_clock k/,
  'erasures not yet reported': /^select .* from erasure where told_at is null and /,
  'exports, counts and walks over all realms':
    /^select count\(\*\) as n from \w+$|^select 1 from realm limit 1$|^select .* where \(?realm_id(, (id|user_id))?\)? > (?!\$1 and .*(subject|username_key) = |.*(true order by|array_to_tsvector))/,
};

const server: Promise<PostgresServer> = startServer({
  ...{ fsync: 'off', synchronous_commit: 'off', full_page_writes: 'off', max_connections: '200' },
  ...STATEMENT_LOGGING,
});

async function freshUrl(names: Set<string>): Promise<string> {
  const url = await (await server).freshDatabase();
  names.add(new URL(url).pathname.slice(1));
  return url;
}

function openAt(url: string, owner?: string): Promise<Engine> {
  const program = { version: 'test', clock: systemClock };
  return openEngine(addressOf(url), 'auto', program, owner === undefined ? undefined : addressOf(owner));
}

function addressOf(url: string): PostgresAddress {
  const address = parseDatabase(url);
  if (address?.engine !== 'postgres') throw new Error(`${url} is not a PostgreSQL URL`);
  return address;
}

/** The databases whose logged statements are checked, by use. */
const databases = {
  contract: new Set<string>(),
  lookups: new Set<string>(),
  access: new Set<string>(),
  start: new Set<string>(),
};

async function open() {
  const url = await freshUrl(databases.contract);
  const engine = await openAt(url);
  /** Statements of the test itself are not logged. */
  const execute = async (text: string): Promise<number> => {
    const client = new SQL(url, { max: 1, connection: { log_statement: 'none' } });
    const { count } = await client.unsafe(text).finally(() => client.close());
    return count;
  };
  return { store: engine.records, execute, close: () => engine.close() };
}

const CONTRACTS = [
  ...[storeContract, patchContract, removeContract, pageRemovalContract, idempotencyContract, findContract],
  ...[includingContract, listContract, loadContract, scannerContract, similarIdsContract, wordsContract],
];
for (const contract of CONTRACTS) contract('postgres, with statement log', open);

/** Lookups by ID and reverse lookups of every resource, single and concurrent. */
async function lookUp(url: string): Promise<void> {
  const { records, close } = await openAt(url);
  const realm = mintId();
  for (const resource of RESOURCES) {
    const keys = [1, 2, 3].map(() => [realm, ...ancestry(resource).slice(1).map(mintId)] as unknown as Key);
    await records.get(resource, keys[0] as Key);
    await Promise.all(keys.map((key) => records.get(resource, key)));
    const children = includableBelow(resource);
    await records.getIncluding(resource, keys[0] as Key, children);
    await Promise.all(keys.map((key) => records.getIncluding(resource, key, children)));
    for (const members of resource.reverseLookup?.by ?? []) {
      const key = { members, values: members.map(mintId) };
      await records.find(resource, realm, key);
      await Promise.all([1, 2, 3].map(() => records.find(resource, realm, key)));
    }
  }
  await close();
}

/** Statements about clients, keys and secrets, including a change of the master key. */
async function useAccess(url: string): Promise<void> {
  const folder = freshFolder();
  const masterKeyFile = join(folder, 'master.key');
  writeFileSync(masterKeyFile, Buffer.from(systemClock.randomBytes(32)).toString('base64url'));
  const settings = readSettings({ database: url, masterKeyFile, migrate: 'auto' }, {});
  const db = await openDatabase(settings, systemClock);
  const { access, sealed, records } = db.engine;
  const { realm } = await createFixture(db);
  const id = mintId();
  const location = { table: 'oidc_profile', column: 'client_secret_sealed', realm, id };
  const secret = db.keyring.seal('oidc-client-secret', location, 'a client secret of a provider');
  const shop = {
    name: 'Shop',
    client_id: 'shop',
    discovery_url: 'https://a.example/',
    issuer: 'https://a.example',
  };
  await insertRecord(db, oidcProfile, [realm, id], { ...shop, client_secret: secret });
  const rights = { scopes: new Set(['users:read'] as const), realms: new Set([realm]) };
  const { client } = await createClient(access, 'test', rights, systemClock);
  await changeClient(access, client.clientId, { name: 'renamed' }, systemClock);
  await access.state(undefined);
  expect(await access.clientsAfter('', 2)).toEqual([(await access.client(client.clientId)) as Client]);
  await access.recordClientUsage([client.clientId], systemClock.now());
  await access.clientUsage();
  await deleteClient(access, client.clientId, undefined, systemClock);
  const { kid } = await rotateSigningKey(access, db.keyring, systemClock);
  await withdrawSigningKey(kid, access, db.keyring, systemClock);
  await access.deletePrivateKeys([kid]);
  expect((await access.signingKeys()).map((key) => key.kid)).toContain(kid);
  expect(await access.secretNames('no secret')).toEqual([]);
  const revoked = { jti: mintId(), clientId: client.clientId, expiresAt: systemClock.now() + 1_000 };
  await access.revokeToken(revoked, createAuditEntry('token.revoked', { detail: {} }, systemClock));
  const [createdAt, expiresAt] = [systemClock.now(), systemClock.now() + 1_000];
  const link = { label: 'test', ...rights, createdAt, expiresAt };
  const linked = createAuditEntry('console-link.created', { detail: {} }, systemClock);
  for (const digest of ['redeemed', 'withdrawn', 'late'])
    await access.insertConsoleLink({ ...link, digest }, linked);
  expect(await access.deleteConsoleLink('withdrawn', linked)).toBe(true);
  expect((await access.consoleLinks(createdAt)).map(({ digest }) => digest).sort()).toEqual([
    'late',
    'redeemed',
  ]);
  const [now, sessionId] = [systemClock.now(), mintId()];
  const times = { begunAt: now, renewedAt: now, endsAt: now + 1_000 };
  const session = { ...rights, sessionId, actor: 'console:test', rules: [], person: undefined, ...times };
  const begun = { session, auditEntry: linked };
  expect(await access.redeemConsoleLink('redeemed', now, () => begun)).toEqual(session);
  expect(await access.renewConsoleSession(sessionId, now, (stored) => stored)).toEqual(session);
  expect(await access.consoleSessions(now)).toEqual([session]);
  const ended = { jti: sessionId, clientId: session.actor, expiresAt: now + 1_000 };
  await access.endConsoleSession(ended, linked);
  expect(await access.consoleSessions(now)).toEqual([]);
  for (const deleted of [1, 0]) expect(await access.deleteExpiredSignIns(link.expiresAt)).toBe(deleted);
  const [first] = await sealed.values(undefined, undefined, 1);
  await sealed.values(undefined, first?.location, 1);
  await sealed.values(undefined, location, 1);
  await records.ready();
  const filter = parseFilter('eq(email,jane@example.com)', user.searchAllRealms?.filterables ?? {});
  await records.searchRealms(user, { filter, only: undefined, after: undefined, limit: 1 });
  await db.engine.close();
  const next = join(folder, 'next.key');
  createNewKeyFile(next, systemClock);
  const { masterKeyFile: previousMasterKeyFile } = settings;
  await rewrap({ ...settings, masterKeyFile: next, previousMasterKeyFile }, systemClock);
}

/** A start with another role than the owner of the schema. */
async function serveAsOtherRole(url: string): Promise<void> {
  const name = new URL(url).pathname.slice(1);
  const admin = new SQL((await server).url(), { max: 1 });
  await admin.unsafe(`create role serving login password 'serving'`).simple();
  await admin.close();
  await (await openAt(url)).close();
  await (await openAt((await server).url(name, 'serving', 'serving'), url)).close();
}

/** The statement of a start that finds a pooler. */
async function checkForPooler(url: string): Promise<void> {
  const client = new SQL(url, { max: 1 });
  expect(await hasSharedStatementNames(client)).toBe(true);
  await client.close();
}

/** Statements that touch no row: transaction control, table creation and grants. */
const WITHOUT_ROWS =
  /^(begin|commit|rollback|lock table|savepoint \w+|release savepoint \w+|rollback to savepoint \w+|create table|alter default privileges|grant|set|begin isolation level repeatable read, read only)\b/i;
let texts: ReadonlySet<string>;
const planRealms = new Map<string, PlanRealms>();

await lookUp(await freshUrl(databases.lookups));
await useAccess(await freshUrl(databases.access));
await serveAsOtherRole(await freshUrl(databases.start));
await checkForPooler(await freshUrl(databases.start));
const url = await (await server).freshDatabase();
await (await openAt(url)).close();
const sql = new SQL(url, { max: 1 });
await useGenericPlans(sql);
afterAll(() => sql.close());

async function loggedTexts(...databases: ReadonlySet<string>[]): Promise<ReadonlySet<string>> {
  const migrations = migrationsOf('postgres');
  const schema = new Set(migrations.map((migration) => plainText(migration.sql)));
  const names = databases.reduce((all, more) => all.union(more));
  return statementsInLog((await server).log(), names).difference(schema);
}

const touching = (text: string): boolean => !WITHOUT_ROWS.test(text);

describe('the check of one statement', () => {
  const OF_REALM = 'select 1 from user_info u';
  test.each([
    [`${OF_REALM} where u.realm_id = $1 and u.id = $2`, []],
    [`${OF_REALM} join realm r on r.realm_id = u.realm_id where r.realm_id = $1`, []],
    [`${OF_REALM} where u.realm_id = $1 and (u.id = $2 or u.name = $3)`, []],
    [`${OF_REALM} where u.realm_id = $1 or u.id = $2`, ['user_info']],
    [`${OF_REALM} where u.id = $1`, ['user_info']],
    [`${OF_REALM} where u.realm_id > $1`, ['user_info']],
    [`${OF_REALM} where u.realm_id = any($1::uuid[])`, ['user_info']],
    [`${OF_REALM} join realm r on r.realm_id = u.realm_id where u.id = $1`, ['realm', 'user_info']],
    [
      `${OF_REALM} where u.realm_id = $1 and exists (select 1 from erasure e where e.user_id = u.id)`,
      ['erasure'],
    ],
    ['select 1 from client where client_id = $1', []],
    ['update realm set name = $1 where realm_id = $2', []],
    ['update realm set name = $1', ['realm']],
    ['delete from erasure where user_id = $1', ['erasure']],
    ['insert into realm_clock (seq, realm_id) values ($1, $2)', []],
    ['insert into realm_clock (realm_id, seq) values ($1, $2), ($3, $4)', []],
    ['insert into realm_clock (seq, realm_id) values ($1, $2), ($3, $4)', ['realm_clock']],
    [
      'insert into realm_clock (realm_id, seq) values ($1, $2), ((select realm_id from realm limit 1), 0)',
      ['realm', 'realm_clock'],
    ],
    [
      'insert into realm_clock (realm_id, seq) select realm_id, 0 from realm where realm_id = $1',
      ['realm_clock'],
    ],
    [
      'insert into realm_clock (realm_id, seq) values ((select realm_id from realm limit 1), 0)',
      ['realm', 'realm_clock'],
    ],
  ])('the check finds the tables without a realm in: %s', async (text, unnamed) => {
    expect((await inspectPlan(sql, text)).unscoped.toSorted()).toEqual(unnamed);
  });
});

describe('the statements of the PostgreSQL engine', () => {
  test('the log contains statements beyond those derived from the descriptions', async () => {
    const derived = derivedTexts();
    texts = (await loggedTexts(...Object.values(databases))).union(derived);
    for (const text of [...texts].filter(touching)) planRealms.set(text, await inspectPlan(sql, text));
    expect(planRealms.size).toBeGreaterThan(derived.size);
  }, 300_000);

  test('every SQL fragment in the source is part of a checked statement', () => {
    const known = [...texts].map(withoutPlaces).join('\n');
    const fragments = fragmentsInSource();
    expect(fragments.filter(({ text }) => !known.includes(text))).toEqual([]);
    // A text of a table that the source passes on as it is.
    const path = 'access/store/sign_ins.ts';
    expect(fragments).toContainEqual({ path, text: withoutPlaces(consoleLinkTable.insert) });
  });

  test('every statement names the realm of every row, or is listed', () => {
    const found = [...planRealms].filter(([, { unscoped }]) => unscoped.length > 0).map(([text]) => text);
    const patterns = Object.entries(WITHOUT_REALM);
    const listings = found.map((text) => [text, patterns.filter(([, pattern]) => pattern.test(text)).length]);
    expect(listings.filter(([, count]) => count !== 1)).toEqual([]);
    // Every listed pattern matches a statement.
    expect(patterns.filter(([, pattern]) => !found.some((text) => pattern.test(text)))).toEqual([]);
  });

  test('every statement of a lookup by ID or a reverse lookup names the realm', async () => {
    const lookups = [...(await loggedTexts(databases.lookups))]
      .filter(touching)
      .map((text) => [text, planRealms.get(text)] as const);
    expect(lookups.filter(([, found]) => found === undefined || found.unscoped.length > 0)).toEqual([]);
    const tables = new Set(lookups.flatMap(([, found]) => found?.scanned ?? []));
    expect([...tables].sort()).toEqual(RESOURCES.map(({ table }) => table).sort());
  });

  test('statements use the listed SQL words, and no others', async () => {
    const rows: { word: string }[] = await sql.unsafe(`select word from pg_get_keywords() except
      select attname from pg_attribute a join pg_class t on t.oid = a.attrelid where t.relnamespace = 'public'::regnamespace`);
    const keywords = new Set(rows.map(({ word }) => word));
    const serving = [...texts].filter((text) => !OF_THE_CATALOGUE.test(text));
    const used = serving.flatMap((text) => wordsOf(text).filter((word) => isSqlWord(word, keywords)));
    expect(SQL_WORDS.trim().split(/\s+/)).toEqual(
      [...new Set(used.map((word) => word.replace('(', '')))].sort(),
    );
  });
});

/** Statements of a start and of migrations. */
const OF_THE_CATALOGUE =
  /^(create|alter|grant|set) |^insert into (instance|migration) |from migration |\bpg_|current_s|to_reg|has_\w+\(/i;

/** The words of a statement, function names with their parenthesis. */
function wordsOf(text: string): readonly string[] {
  return (
    text
      .toLowerCase()
      .replace(/'[^']*'/g, '')
      .match(/[a-z_]+\(?/g) ?? []
  );
}

/** Whether a word is an SQL keyword or a function, not a name of the schema. */
function isSqlWord(word: string, keywords: ReadonlySet<string>): boolean {
  return word.endsWith('(') || keywords.has(word);
}
