import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { median } from '../../bench/load.ts';
import { systemClock } from '../../src/ops/process/clock.ts';
import { createSqlite, postgresAt, type TestDatabase } from '../support/database.ts';
import { sharedServer } from '../support/postgres_server.ts';
import { type ServiceProcess, startServiceProcess } from '../support/service_process.ts';
import { startTcpProxy, type TcpProxy } from '../support/tcp_proxy.ts';
import type { LoadPlan, LoadResult } from './load_process.ts';

/**
 * A service at twice its best measured rate must keep THROUGHPUT_MIN of that rate and reject the excess within REFUSED_MS_MAX
 * (p99). Each row starts a service of its own.
 */
const THROUGHPUT_MIN = 0.9;
const REFUSED_MS_MAX = 50;

const { values: options } = parseArgs({
  options: {
    only: { type: 'string', multiple: true },
    seconds: { type: 'string', default: '10' },
    'warm-up': { type: 'string', default: '4' },
    rounds: { type: 'string', default: '3' },
  },
});
const seconds = Number(options.seconds);
const rounds = Number(options.rounds);
const warmUpSeconds = Number(options['warm-up']);
const folder = mkdtempSync(join(tmpdir(), 'authrealm-overload-'));
const SCOPE = 'realms:write realms:read users:write users:read profiles:write profile-infos:write';

const REALMS = '/v2/authentication-realms';
const USER = { type: 'user_authentication_info', name: 'Jane Doe', email: 'jane-{n}@example.com' };

/** The request that is repeated. */
type LoadRequest = Pick<LoadPlan, 'method' | 'path' | 'body'>;

interface Row {
  readonly name: string;
  open(): Promise<TestDatabase>;
  prepare(served: ServiceProcess, token: string): Promise<LoadRequest>;
  /** Delay of each message between service and PostgreSQL. */
  readonly delayMs?: number;
  /** Numbers of concurrent callers that are tried for the best rate. */
  readonly callers: readonly number[];
}

const proxies: TcpProxy[] = [];

const ROWS: readonly Row[] = [
  { name: 'creates on SQLite', open: onSqlite, prepare: creatingUsers, callers: [32, 128] },
  { name: 'passwords on SQLite', open: onSqlite, prepare: creatingPasswords, callers: [4, 16] },
  { name: 'creates on PostgreSQL', open: onPostgres, prepare: creatingUsers, callers: [32, 128, 512] },
  {
    name: 'creates on PostgreSQL, 20 ms away',
    open: onPostgres,
    prepare: creatingUsers,
    delayMs: 10,
    callers: [128, 512, 1_024],
  },
  {
    name: 'lookups on PostgreSQL, 100 ms away',
    open: onPostgres,
    prepare: lookingUp,
    delayMs: 50,
    callers: [128, 512, 1_024],
  },
];

let failures = 0;
const figures: string[] = [];
for (const row of ROWS.filter(({ name }) => options.only === undefined || options.only.includes(name))) {
  const { text, passes } = await runRow(row);
  console.log(text);
  figures.push(text);
  if (!passes) failures += 1;
}
for (const proxy of proxies) proxy.stop();
rmSync(folder, { recursive: true });
console.log(figures.join('; '));
process.exit(failures === 0 ? 0 : 1);

async function runRow(row: Row): Promise<{ text: string; passes: boolean }> {
  const database = await row.open();
  const served = await startServiceProcess({ database, scope: SCOPE, flags: ['--offline'] });
  try {
    const token = await served.token();
    const request = { url: served.url, token, ...(await row.prepare(served, token)) };
    for (const proxy of proxies) proxy.delay(row.delayMs ?? 0);
    const measured: Round[] = [];
    for (let round = 0; round < rounds; round += 1) measured.push(await runRound(row, request));
    return summarize(row, measured);
  } finally {
    for (const proxy of proxies) proxy.delay(0);
    await served.running.stop();
  }
}

interface Round {
  readonly best: number;
  readonly overloaded: LoadResult;
}

/** Measures the best rate and the overload directly after each other, because the speed of a machine varies. */
async function runRound(
  { callers }: Row,
  request: LoadRequest & Pick<LoadPlan, 'url' | 'token'>,
): Promise<Round> {
  let best = 0;
  for (const each of callers) {
    const { donePerSecond } = await load({ ...request, callers: each, warmUpSeconds, seconds });
    best = Math.max(best, donePerSecond);
  }
  return { best, overloaded: await load({ ...request, perSecond: 2 * best, warmUpSeconds, seconds }) };
}

/** The medians of all rounds. */
function summarize({ name }: Row, measured: readonly Round[]): { text: string; passes: boolean } {
  const of = (figure: (round: Round) => number) => median(measured.map(figure));
  const throughput = of(({ best, overloaded }) => overloaded.donePerSecond / best);
  const refusedMs = of(({ overloaded }) => overloaded.refusedMs.p99);
  const refused = of(({ overloaded }) => overloaded.refused / seconds);
  const passes = throughput >= THROUGHPUT_MIN && refused > 0 && refusedMs <= REFUSED_MS_MAX;
  const text =
    `${name}: best ${of(({ best }) => best).toFixed(0)}/s, at ${of(({ overloaded }) => overloaded.sentPerSecond).toFixed(0)}/s ` +
    `${throughput.toFixed(2)} of it under overload, p50 ${of(({ overloaded }) => overloaded.doneMs.p50).toFixed(0)} ms; ` +
    `${refused.toFixed(0)}/s rejected, p99 ${refusedMs.toFixed(0)} ms, ` +
    `${of(({ overloaded }) => overloaded.failed).toFixed(0)} failed${passes ? '' : ' (!)'}`;
  return { text, passes };
}

async function load(plan: LoadPlan): Promise<LoadResult> {
  const command = [process.execPath, join(import.meta.dir, 'load_process.ts'), JSON.stringify(plan)];
  const child = Bun.spawn(command, { stdio: ['ignore', 'pipe', 'inherit'] });
  const output = await new Response(child.stdout).text();
  if ((await child.exited) !== 0) throw new Error('the load process failed');
  return JSON.parse(output.trim().split('\n').at(-1) ?? '') as LoadResult;
}

async function onSqlite(): Promise<TestDatabase> {
  return createSqlite(join(mkdtempSync(join(folder, 'sqlite-')), 'overload.db'));
}

/** Through a proxy that can delay messages. */
async function onPostgres(): Promise<TestDatabase> {
  const server = await sharedServer();
  const proxy = await startTcpProxy(server.port);
  proxies.push(proxy);
  const url = new URL(await server.freshDatabase());
  url.port = String(proxy.port);
  const masterKeyFile = join(mkdtempSync(join(folder, 'postgres-')), 'master.key');
  const key = Buffer.from(systemClock.randomBytes(32)).toString('base64url');
  writeFileSync(masterKeyFile, key, { mode: 0o600 });
  const database = postgresAt(url.href, masterKeyFile);
  await (await database.open()).close();
  return database;
}

async function make(served: ServiceProcess, token: string, path: string, data: object): Promise<string> {
  const body = JSON.stringify({ data }).replaceAll('{n}', crypto.randomUUID());
  const answer = await served.post(path, token, body);
  if (answer.status !== 201) throw new Error(`${path} answered ${answer.status}: ${await answer.text()}`);
  return ((await answer.json()) as { data: { id: string } }).data.id;
}

async function realmOf(served: ServiceProcess, token: string): Promise<string> {
  return `${REALMS}/${await make(served, token, REALMS, { type: 'authentication-realm', name: 'Overload' })}`;
}

async function creatingUsers(served: ServiceProcess, token: string): Promise<LoadRequest> {
  const path = `${await realmOf(served, token)}/user-authentication-info`;
  return { method: 'POST', path, body: JSON.stringify({ data: USER }) };
}

async function creatingPasswords(served: ServiceProcess, token: string): Promise<LoadRequest> {
  const realm = await realmOf(served, token);
  const profile = await make(served, token, `${realm}/password-profiles`, {
    type: 'password_profile',
    name: 'All',
  });
  const user = await make(served, token, `${realm}/user-authentication-info`, USER);
  const data = {
    type: 'user_authentication_password_profile_info',
    password_profile_id: profile,
    username: 'jane-{n}',
    password: 'correct horse battery staple',
  };
  const path = `${realm}/user-authentication-info/${user}/user-authentication-password-profile-info`;
  return { method: 'POST', path, body: JSON.stringify({ data }) };
}

async function lookingUp(served: ServiceProcess, token: string): Promise<LoadRequest> {
  const users = `${await realmOf(served, token)}/user-authentication-info`;
  return { method: 'GET', path: `${users}/${await make(served, token, users, USER)}` };
}
