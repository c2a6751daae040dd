import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { LIMITS } from '../../src/domain/limits.ts';
import { sqliteAt, type TestDatabase } from '../support/database.ts';
import type { JsonObject } from '../support/json_schema.ts';
import { operationsOf } from '../support/openapi_client.ts';
import { runClientCreate } from '../support/processes.ts';
import { freshSeed } from '../support/random.ts';
import { startService } from '../support/service.ts';
import { type ServiceProcess, startServiceProcess } from '../support/service_process.ts';
import {
  COLLECTING,
  growthBeside,
  growthsOf,
  heldBy,
  minutesOf,
  type Sample,
  watch,
} from './fuzzing/memory.ts';
import { PROPERTIES } from './fuzzing/parsers.ts';
import { type Credentials, grantedBy } from './fuzzing/rights.ts';
import { SOCKET_SCOPE, weather } from './fuzzing/sockets.ts';
import { type Fired, fireAt } from './fuzzing/surface.ts';
import { tokenProperty } from './fuzzing/tokens.ts';

/**
 * Requests made from the service's own OpenAPI document, texts for its parsers, and connections of every kind. With
 * `--minutes` the requests go on for so long, and what the service holds in memory is watched.
 */
const { values: given } = parseArgs({
  options: {
    requests: { type: 'string', default: '50000' },
    minutes: { type: 'string' },
    connections: { type: 'string', default: '3000' },
    runs: { type: 'string', default: '5000' },
    seed: { type: 'string' },
  },
});
const seed = Number(given.seed ?? freshSeed());
const minutes = given.minutes === undefined ? undefined : Number(given.minutes);
const FIRST_MINUTE_MS = 60_000;
const GROWTH_MAX = 0.1;
console.log(`seed ${seed}`);

const folder = mkdtempSync(join(tmpdir(), 'authrealm-fuzz-'));
const FILE = join(folder, 'fuzz.db');
const database = sqliteAt(FILE);
const complaints: string[] = [];
const figures: string[] = [];

await attempt(parsers);
const served = await startServiceProcess({
  database,
  scope: SOCKET_SCOPE,
  flags: ['--offline', '--bad-token-rate', 'off'],
  environment: minutes === undefined ? {} : { BUN_OPTIONS: `--preload ${COLLECTING}` },
});
await attempt(() => surface(served));
if (minutes === undefined) await attempt(() => sockets(served));
const code = await served.running.stop();
const said = served.running.output();
if (code !== 0) complaints.push(`the service ended with ${code}`);
if (/"code":"internal"|^\s+at /m.test(said))
  complaints.push(`the service wrote of a bug: ${said.slice(-2_000)}`);
for (const complaint of complaints) console.log(complaint);
if (complaints.length === 0) rmSync(folder, { recursive: true });
else console.log(`what they left is in ${folder}`);
console.log(`${figures.join('; ')}; ${complaints.length} complaints, seed ${seed}`);
process.exitCode = complaints.length === 0 ? 0 : 1;

/** What breaks off is a complaint like any other. */
async function attempt(part: () => Promise<void>): Promise<void> {
  await part().catch((error: Error) => complaints.push(error.stack ?? error.message));
}

/**
 * Clients are made over HTTP by one that is made at the command line, because there each takes seconds; another one is
 * where that one was disabled or removed. Realms that are not there can be named at the command line alone.
 */
function credentialsOf(of: TestDatabase, url: string): Credentials {
  let administrator: Promise<string> | undefined;

  /** What was made, once the service has learned of it. */
  async function known<T>(made: T): Promise<T> {
    await Bun.sleep(2 * LIMITS.accessTableAgeMsMax);
    return made;
  }

  async function atCommandLine(scope: string, realms: readonly string[]) {
    const made = await runClientCreate(of, scope, '--json', ...realms.flatMap((realm) => ['--realm', realm]));
    if (made.code !== 0) throw new Error(made.stderr);
    const { client_id: clientId, client_secret: secret } = JSON.parse(made.stdout);
    return known({ clientId, secret });
  }

  async function begin(): Promise<string> {
    const { clientId, secret } = await atCommandLine('admin', []);
    return grantedBy(url, clientId, secret);
  }

  async function overHttp(scope: string): Promise<Response> {
    administrator ??= begin();
    return fetch(`${url}/admin/v1/clients`, {
      method: 'POST',
      headers: { Authorization: `Bearer ${await administrator}`, 'Content-Type': 'application/json' },
      body: JSON.stringify({ data: { name: 'n', scopes: scope.split(' '), realms: '*' } }),
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
  const runs = Number(given.runs);
  const service = await startService({
    database: `sqlite:${join(folder, 'tokens.db')}`,
    badTokenRate: 'off',
  });
  const properties = [...PROPERTIES, await tokenProperty(service)];
  for (const { name, check } of properties) {
    await check(runs, seed | 0).catch((error: Error) => complaints.push(`${name}: ${error.message}`));
  }
  await service.stop();
  figures.push(`${properties.length} properties of parsers, ${runs} texts each`);
}

async function surface({ url, running }: ServiceProcess): Promise<void> {
  const curve = watch(running.process.pid, FILE);
  const requests = minutes === undefined ? Number(given.requests) : Number.POSITIVE_INFINITY;
  const millisecondsMax = (minutes ?? 60) * 60_000;
  const credentials = credentialsOf(database, url);
  const held = async () => {
    await endWebhooks(url, credentials);
    return heldBy(running.process.pid, FILE);
  };
  let first: Sample | undefined;
  const rest = {
    afterMs: FIRST_MINUTE_MS,
    during: async () => {
      first = await curve.rest(held);
    },
  };
  const firing = { seed, requests, millisecondsMax, atOnce: 16, ...(minutes === undefined ? {} : { rest }) };
  const fired = await fireAt({ url, credentials }, firing).finally(curve.stop);
  complaints.push(...fired.complaints);
  table(fired);
  const unfired = await untouched(url, fired);
  if (unfired.length > 0) complaints.push(`nothing was asked of ${unfired.join(', ')}`);
  figures.push(
    `${fired.sent} requests of ${fired.operations} operations, ${fired.readBack} records read back`,
  );
  if (minutes === undefined) return;
  if (!first) return void complaints.push('it ended before its memory was looked at for the first time');
  for (const line of minutesOf(curve)) console.log(line);
  for (const { of, fromMb, toMb, share } of [...growthsOf(first, await held()), ...growthBeside(curve)]) {
    const text = `${fromMb.toFixed(1)} to ${toMb.toFixed(1)} MB ${of} (${(share * 100).toFixed(1)} %)`;
    figures.push(text);
    if (share > GROWTH_MAX) complaints.push(`it grew from ${text}`);
  }
}

/**
 * Deletes every webhook target. None of them can be reached, and what was not received is sent again: with them a service to
 * which nobody speaks is not at rest.
 */
async function endWebhooks(url: string, credentials: Credentials): Promise<void> {
  // The client by which others are made may have been disabled by what was sent: then there is another one.
  const { clientId, secret } = await credentials('admin').catch(() => credentials('admin'));
  const headers = { Authorization: `Bearer ${await grantedBy(url, clientId, secret)}` };
  const listed = await fetch(`${url}/admin/v1/webhooks?page%5Blimit%5D=100`, { headers });
  const text = await listed.text();
  if (listed.status !== 200) throw new Error(`no list of targets: ${text}`);
  const { data } = JSON.parse(text) as { readonly data: readonly { readonly id: string }[] };
  for (const { id } of data) {
    const removed = await fetch(`${url}/admin/v1/webhooks/${id}`, { method: 'DELETE', headers });
    if (!removed.ok && removed.status !== 404) throw new Error(`a target stays: ${await removed.text()}`);
  }
}

/** Operations that no request was made for, which chance does not explain where there were many. */
async function untouched(url: string, { asked }: Fired): Promise<readonly string[]> {
  const document = (await (await fetch(`${url}/openapi.json`)).json()) as JsonObject;
  return operationsOf(document).flatMap(({ id }) => (asked.has(id) ? [] : [id]));
}

/** Status by how far from right the request was. */
function table({ statuses, right }: Fired): void {
  const intents = ['right', 'near', 'hostile'];
  const codes = [...new Set([...statuses.keys()].map((name) => name.split(' ')[1] ?? ''))].sort();
  console.log(['status', ...intents].map((cell) => cell.padStart(9)).join(''));
  for (const status of codes) {
    const cells = intents.map((intent) => String(statuses.get(`${intent} ${status}`) ?? 0));
    console.log([status, ...cells].map((cell) => cell.padStart(9)).join(''));
  }
  console.log(`${right.done} of ${right.sent} that were right in everything were done`);
}

async function sockets(of: ServiceProcess): Promise<void> {
  const connections = Number(given.connections) / 2;
  const storm = { seed: seed + 1, connections, atOnce: 64, slow: 200, slowMs: 15_000, slowerMsMax: 10 };
  const weathered = await weather(of, storm);
  complaints.push(...weathered.complaints);
  const kinds = [...weathered.kinds].map(([kind, count]) => `${kind} ${count}`);
  const statuses = [...weathered.answers].map(([status, count]) => `${status}: ${count}`);
  console.log(`connections: ${kinds.join(', ')}; answers ${statuses.join(', ')}`);
  const [first, second] = weathered.vitals;
  figures.push(
    `${given.connections} connections, a lookup ${weathered.usualMs.toFixed(2)} ms before, ${weathered.besideSlowMs.toFixed(2)} ms beside ${storm.slow} slow ones, ` +
      `${weathered.afterMs.toFixed(2)} ms after, ${first.anonymousMb.toFixed(1)} to ${second.anonymousMb.toFixed(1)} MB, ${first.descriptors} to ${second.descriptors} descriptors`,
  );
}
