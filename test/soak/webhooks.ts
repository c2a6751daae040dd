import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { sqliteAt } from '../support/database.ts';
import { AUTHREALM, runClientCreate, runCommand } from '../support/processes.ts';
import { type ServiceProcess, serveWithClient } from '../support/service_process.ts';
import { startReceiver, type WebhookReceiver } from '../support/webhook_receivers.ts';
import { type DeadTarget, deadTargets } from './dead_targets.ts';
import { startUserWriter } from './webhook_writer.ts';

/**
 * A receiver that fails for some minutes under a steady write load must then catch up, in order and without loss; and dead
 * targets of several kinds must not slow down writes, measured in interleaved rounds. With --minutes 0 only the latter.
 */

const { values: options } = parseArgs({
  options: {
    minutes: { type: 'string', default: '10' },
    rate: { type: 'string', default: '200' },
    rounds: { type: 'string', default: '10' },
  },
});
const minutes = Number(options.minutes);
const rate = Number(options.rate);
const rounds = Number(options.rounds);
/** Allowed write latency with a dead target, relative to that without. */
const LATENCY_FACTOR_MAX = 1.25;

const folder = mkdtempSync(join(tmpdir(), 'authrealm-webhooks-'));
const database = sqliteAt(join(folder, 'webhooks.db'));
const { stdout } = await runCommand([AUTHREALM, 'init', ...database.args]);
const realm = /^realm +(\S+)$/m.exec(stdout)?.[1] ?? '';
const client = await runClientCreate(database, 'users:write', '--json');
const served = await serveWithClient(database, JSON.parse(client.stdout), [
  '--offline',
  '--allow-private',
  'localhost 127.0.0.0/8',
]);
const complaints: string[] = [];
try {
  const catchUpResult = minutes > 0 ? `${await catchUp()}; ` : '';
  const factors = await latencyFactors();
  for (const complaint of complaints) console.error(complaint);
  console.log(
    `${catchUpResult}write latency relative to no target, medians of ${rounds} rounds: ${factors.join(', ')}`,
  );
} finally {
  await served.running.stop();
  rmSync(folder, { recursive: true });
}
process.exit(complaints.length === 0 ? 0 : 1);

async function createTarget(url: string): Promise<string> {
  const words = ['webhook', 'create', '--name', 'soak', '--url', url, '--events-max', '100'];
  const command = [
    AUTHREALM,
    ...words,
    '--allow-private',
    'localhost 127.0.0.0/8',
    '--json',
    ...database.args,
  ];
  const { stdout, stderr } = await runCommand(command);
  if (stdout === '') throw new Error(stderr);
  return (JSON.parse(stdout) as { webhook_id: string }).webhook_id;
}

async function deleteTarget(id: string): Promise<void> {
  await runCommand([AUTHREALM, 'webhook', 'delete', '--yes', id, ...database.args]);
}

/** Fails for the whole time, then accepts everything. Returns a summary. */
async function catchUp(): Promise<string> {
  const receiver = startReceiver();
  receiver.respond(() => new Response(null, { status: 503 }));
  const id = await createTarget(receiver.url);
  const [before] = await database.query<{ seq: number }>(
    'select seq from realm_clock where realm_id = ?',
    realm,
  );
  const first = Number(before?.seq) + 1;
  const written = await writeFor(minutes * 60_000, served);
  const attempts = receiver.received.length;
  receiver.respond(() => new Response());
  const start = performance.now();
  const last = first + written - 1;
  let writtenMeanwhile = 0;
  // Writes continue while it catches up.
  const writing = startUserWriter(served, realm, rate, () => {
    writtenMeanwhile += 1;
  });
  // The longest retry delay is five minutes plus jitter of a quarter.
  await receiver.until(() => (receiver.sequences(realm).at(-1) ?? 0) >= last, 1_000_000);
  await writing.stop();
  await receiver.until(() => receiver.sequences(realm).length >= written + writtenMeanwhile, 60_000);
  const seconds = Math.round((performance.now() - start) / 1000);
  checkDeliveries(receiver, first, written + writtenMeanwhile);
  receiver.stop();
  await deleteTarget(id);
  return `${written + writtenMeanwhile} changes after ${attempts} failures in ${minutes} min at ${rate}/s, caught up ${seconds} s after`;
}

function checkDeliveries(receiver: WebhookReceiver, first: number, count: number): void {
  const sequences = receiver.sequences(realm);
  const catchUpResult = new Set(sequences);
  const firsts = [...catchUpResult];
  const lost = Array.from({ length: count }, (_, at) => first + at).filter(
    (place) => !catchUpResult.has(place),
  );
  if (lost.length > 0) complaints.push(`${lost.length} changes were lost, the first at sequence ${lost[0]}`);
  const disordered = firsts.find((place, at) => at > 0 && place < (firsts[at - 1] as number));
  if (disordered !== undefined) complaints.push(`place ${disordered} came after a later one`);
}

async function writeFor(ms: number, to: ServiceProcess): Promise<number> {
  let written = 0;
  const writing = startUserWriter(to, realm, rate, () => {
    written += 1;
  });
  await Bun.sleep(ms);
  await writing.stop();
  return written;
}

/** For each kind of dead target: median write latency with it over that without, as the median of all rounds. */
async function latencyFactors(): Promise<readonly string[]> {
  const dead = await deadTargets();
  const factors = new Map(dead.map((each): [DeadTarget, number[]] => [each, []]));
  for (let round = 0; round < rounds; round += 1) {
    for (const [each, measured] of factors) measured.push(await latencyFactor(each));
  }
  for (const each of dead) each.stop();
  return [...factors].map(([{ name }, measured]) => {
    const factor = median(measured);
    const stdout = `${factor.toFixed(3)} with ${name}`;
    if (factor > LATENCY_FACTOR_MAX) complaints.push(`write latency relative to no target is ${stdout}`);
    return stdout;
  });
}

async function latencyFactor(dead: DeadTarget): Promise<number> {
  const without = await medianOfWrites();
  const before = dead.reached() ?? 0;
  const id = await createTarget(dead.url);
  await Bun.sleep(1_500);
  const withTarget = await medianOfWrites();
  const [row] = await database.query<{ tried: number }>(
    'select count(*) as tried from delivery where webhook_id = ?',
    id,
  );
  if ((dead.reached() ?? Number(row?.tried)) <= before) complaints.push(`nothing was sent to ${dead.name}`);
  await deleteTarget(id);
  await Bun.sleep(1_500);
  return withTarget / without;
}

async function medianOfWrites(): Promise<number> {
  const times: number[] = [];
  const writing = startUserWriter(served, realm, 100, (ms) => times.push(ms));
  await Bun.sleep(4_000);
  await writing.stop();
  return median(times);
}

function median(values: readonly number[]): number {
  const sorted = values.toSorted((left, right) => left - right);
  const middle = sorted.length >> 1;
  const [low = 0, high = 0] = [sorted[middle - (sorted.length % 2 === 0 ? 1 : 0)], sorted[middle]];
  return (low + high) / 2;
}
