import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { LIMITS } from '../../src/model/limits.ts';
import { freshDatabase, sqliteAt, type TestDatabase } from '../support/database.ts';
import { withDatabase } from '../support/erasure_fixtures.ts';
import { RUN_FOLDER } from '../support/folder.ts';
import type { JsonObject } from '../support/json_schema.ts';
import { operationsOf } from '../support/openapi_client.ts';
import { endServers } from '../support/postgres_server.ts';
import { runClientCreate } from '../support/processes.ts';
import { freshSeed } from '../support/random.ts';
import { startService } from '../support/service.ts';
import { type ServiceProcess, startServiceProcess } from '../support/service_process.ts';
import { createAccountMember } from '../support/sign_in.ts';
import { type Credentials, requestToken } from './fuzz/access_tokens.ts';
import { fuzzConnections, SOCKET_SCOPE } from './fuzz/connection_fuzzer.ts';
import {
  GC_ON_SIGNAL,
  growthsOf,
  memoryAtRest,
  minutesOf,
  type Sample,
  watchMemory,
  workerGrowth,
} from './fuzz/memory.ts';
import { type FuzzReport, fuzzOperations } from './fuzz/operation_fuzzer.ts';
import { PROPERTIES } from './fuzz/parser_properties.ts';
import { tokenProperty } from './fuzz/token_property.ts';

/**
 * Fuzzes the service with requests made from its own OpenAPI document, its parsers with texts, and its sockets with malformed
 * connections. `--engine` chooses the database of the service. With `--minutes` requests are sent for that long, and the memory of the
 * service is checked for growth.
 */
const { values: options } = parseArgs({
  options: {
    engine: { type: 'string', default: 'sqlite' },
    requests: { type: 'string', default: '50000' },
    minutes: { type: 'string' },
    connections: { type: 'string', default: '3000' },
    runs: { type: 'string', default: '5000' },
    seed: { type: 'string' },
  },
});
const seed = Number(options.seed ?? freshSeed());
const minutes = options.minutes === undefined ? undefined : Number(options.minutes);
const FIRST_MINUTE_MS = 60_000;
const GROWTH_MAX = 0.1;
console.log(`seed ${seed}`);

const folder = mkdtempSync(join(tmpdir(), 'authrealm-fuzz-'));
const FILE = join(folder, 'fuzz.db');
const database = options.engine === 'sqlite' ? sqliteAt(FILE) : await freshDatabase(options.engine);
const complaints: string[] = [];
const figures: string[] = [];

try {
  await attempt(parsers);
  const signIn = await withDatabase(database, createAccountMember);
  const served = await startServiceProcess({
    database,
    scope: SOCKET_SCOPE,
    flags: ['--offline', '--bad-token-rate', 'off', '--grant-rate', 'off'],
    environment: minutes === undefined ? {} : { BUN_OPTIONS: `--preload ${GC_ON_SIGNAL}` },
  });
  await attempt(() => surface(served, signIn));
  if (minutes === undefined) await attempt(() => sockets(served));
  const code = await served.running.stop();
  const output = served.running.output();
  if (code !== 0) complaints.push(`the service exited with ${code}`);
  if (/"code":"internal"|^\s+at /m.test(output))
    complaints.push(`the service logged an internal error: ${output.slice(-2_000)}`);
} finally {
  await endServers();
  rmSync(RUN_FOLDER, { recursive: true, force: true });
}
for (const complaint of complaints) console.log(complaint);
if (complaints.length > 0 && options.engine === 'sqlite') console.log(`the database is kept in ${folder}`);
else rmSync(folder, { recursive: true });
console.log(`${options.engine}: ${figures.join('; ')}; ${complaints.length} complaints, seed ${seed}`);
process.exitCode = complaints.length === 0 ? 0 : 1;

/** An exception becomes a complaint. */
async function attempt(part: () => Promise<void>): Promise<void> {
  await part().catch((error: Error) => complaints.push(error.stack ?? error.message));
}

/**
 * Clients are created over HTTP, because each command takes seconds, by an administrator client that a command creates; a new
 * one when that was disabled or deleted. Only the command accepts realms that do not exist.
 */
function credentialsOf(db: TestDatabase, url: string): Credentials {
  let administrator: Promise<string> | undefined;

  /** Waits until every process of the service knows the client. */
  async function known<T>(client: T): Promise<T> {
    await Bun.sleep(2 * LIMITS.accessTableAgeMsMax);
    return client;
  }

  async function atCommandLine(scope: string, realms: readonly string[]) {
    const made = await runClientCreate(
      db,
      scope,
      '--json',
      '--end-user-address',
      'none',
      ...realms.flatMap((realm) => ['--realm', realm]),
    );
    if (made.code !== 0) throw new Error(made.stderr);
    const { client_id: clientId, client_secret: secret } = JSON.parse(made.stdout);
    return known({ clientId, secret });
  }

  async function administratorToken(): Promise<string> {
    const { clientId, secret } = await atCommandLine('admin', []);
    return requestToken(url, clientId, secret);
  }

  async function overHttp(scope: string): Promise<Response> {
    administrator ??= administratorToken();
    return fetch(`${url}/admin/v1/clients`, {
      method: 'POST',
      headers: { Authorization: `Bearer ${await administrator}`, 'Content-Type': 'application/json' },
      body: JSON.stringify({
        data: { name: 'n', scopes: scope.split(' '), realms: '*', end_user_address: 'none' },
      }),
    });
  }

  return async (scope, realms = []) => {
    if (realms.length > 0) return atCommandLine(scope, realms);
    const answer = await overHttp(scope);
    const text = await answer.text();
    if (answer.status !== 201) {
      administrator = undefined;
      throw new Error(`no client: ${text}`);
    }
    const { data } = JSON.parse(text) as { data: { id: string; client_secret: string } };
    return known({ clientId: data.id, secret: data.client_secret });
  };
}

async function parsers(): Promise<void> {
  const runs = Number(options.runs);
  const service = await startService({
    database: `sqlite:${join(folder, 'tokens.db')}`,
    badTokenRate: 'off',
    grantRate: 'off',
  });
  const properties = [...PROPERTIES, await tokenProperty(service)];
  for (const { name, check } of properties) {
    await check(runs, seed | 0).catch((error: Error) => complaints.push(`${name}: ${error.message}`));
  }
  await service.stop();
  figures.push(`${properties.length} properties of parsers, ${runs} texts each`);
}

async function surface({ url, running }: ServiceProcess, signIn: JsonObject): Promise<void> {
  const curve = watchMemory(running.process.pid, FILE);
  const requests = minutes === undefined ? Number(options.requests) : Number.POSITIVE_INFINITY;
  const millisecondsMax = (minutes ?? 60) * 60_000;
  const credentials = credentialsOf(database, url);
  const sampleAtRest = async () => {
    await deleteWebhooks(url, credentials);
    return memoryAtRest(running.process.pid, FILE);
  };
  let first: Sample | undefined;
  const pause = {
    afterMs: FIRST_MINUTE_MS,
    action: async () => {
      first = await curve.pause(sampleAtRest);
    },
  };
  const plan = {
    seed,
    requests,
    millisecondsMax,
    concurrency: 16,
    ...(minutes === undefined ? {} : { pause }),
  };
  const report = await fuzzOperations({ url, credentials, signIn }, plan).finally(curve.stop);
  complaints.push(...report.complaints);
  printStatuses(report);
  const unsent = await operationsNotSent(url, report);
  if (unsent.length > 0) complaints.push(`no request was made from ${unsent.join(', ')}`);
  figures.push(
    `${report.sent} requests of ${report.operations} operations, ${report.readBack} records read back`,
  );
  if (minutes === undefined) return;
  if (!first) return void complaints.push('the run ended before the first memory sample');
  for (const line of minutesOf(curve)) console.log(line);
  for (const { measure, fromMb, toMb, share } of [
    ...growthsOf(first, await sampleAtRest()),
    ...workerGrowth(curve),
  ]) {
    const text = `${fromMb.toFixed(1)} to ${toMb.toFixed(1)} MB ${measure} (${(share * 100).toFixed(1)} %)`;
    figures.push(text);
    if (share > GROWTH_MAX) complaints.push(`memory grew from ${text}`);
  }
}

/**
 * Deletes every webhook target. None of them can be reached, and failed deliveries are retried: with targets a service
 * without requests is not idle.
 */
async function deleteWebhooks(url: string, credentials: Credentials): Promise<void> {
  // A fuzz request may have disabled the administrator client: the second attempt creates another one.
  const { clientId, secret } = await credentials('admin').catch(() => credentials('admin'));
  const headers = { Authorization: `Bearer ${await requestToken(url, clientId, secret)}` };
  const listed = await fetch(`${url}/admin/v1/webhooks?page%5Blimit%5D=100`, { headers });
  const text = await listed.text();
  if (listed.status !== 200) throw new Error(`webhook targets cannot be listed: ${text}`);
  const { data } = JSON.parse(text) as { readonly data: readonly { readonly id: string }[] };
  for (const { id } of data) {
    const removed = await fetch(`${url}/admin/v1/webhooks/${id}`, { method: 'DELETE', headers });
    if (!removed.ok && removed.status !== 404)
      throw new Error(`a webhook target cannot be deleted: ${await removed.text()}`);
  }
}

/** Operations that no request was made from; with many requests that is not by chance. */
async function operationsNotSent(url: string, { operationsSent }: FuzzReport): Promise<readonly string[]> {
  const document = (await (await fetch(`${url}/openapi.json`)).json()) as JsonObject;
  return operationsOf(document).flatMap(({ id }) => (operationsSent.has(id) ? [] : [id]));
}

/** A table of statuses by how far the request was from a valid one. */
function printStatuses({ statuses, valid }: FuzzReport): void {
  const intents = ['valid', 'near', 'hostile'];
  const codes = [...new Set([...statuses.keys()].map((name) => name.split(' ')[1] ?? ''))].sort();
  console.log(['status', ...intents].map((cell) => cell.padStart(9)).join(''));
  for (const status of codes) {
    const cells = intents.map((intent) => String(statuses.get(`${intent} ${status}`) ?? 0));
    console.log([status, ...cells].map((cell) => cell.padStart(9)).join(''));
  }
  console.log(`${valid.succeeded} of ${valid.sent} valid requests succeeded`);
}

async function sockets(service: ServiceProcess): Promise<void> {
  const connections = Number(options.connections) / 2;
  const plan = { seed: seed + 1, connections, concurrency: 64, slow: 200, slowMs: 15_000, slowerMsMax: 10 };
  const report = await fuzzConnections(service, plan);
  complaints.push(...report.complaints);
  const kinds = [...report.kinds].map(([kind, count]) => `${kind} ${count}`);
  const statuses = [...report.answers].map(([status, count]) => `${status}: ${count}`);
  console.log(`connections: ${kinds.join(', ')}; answers ${statuses.join(', ')}`);
  const [first, second] = report.usage;
  figures.push(
    `${options.connections} connections, a lookup ${report.baselineMs.toFixed(2)} ms before, ${report.duringSlowMs.toFixed(2)} ms during ${plan.slow} slow ones, ` +
      `${report.afterMs.toFixed(2)} ms after, ${first.anonymousMb.toFixed(1)} to ${second.anonymousMb.toFixed(1)} MB, ${first.descriptors} to ${second.descriptors} descriptors`,
  );
}
