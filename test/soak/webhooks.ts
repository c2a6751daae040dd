import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { sqliteAt } from '../support/database.ts';
import { AUTHREALM, runClientCreate, runCommand } from '../support/processes.ts';
import { type ServiceProcess, serveWithClient } from '../support/service_process.ts';
import { startReceiver, type WebhookReceiver } from '../support/webhook_receivers.ts';
import { type DeadTarget, deadTargets } from './dead_targets.ts';
import { startWriting } from './webhook_writer.ts';

/**
 * A consumer that fails for some minutes under a steady load of writes, and then catches up in order with nothing lost; and how
 * long a write takes beside dead targets of several kinds, against one without any, over interleaved rounds. Without minutes only the
 * latter.
 */

const { values: given } = parseArgs({
  options: {
    minutes: { type: 'string', default: '10' },
    rate: { type: 'string', default: '200' },
    rounds: { type: 'string', default: '10' },
  },
});
const minutes = Number(given.minutes);
const rate = Number(given.rate);
const rounds = Number(given.rounds);
/** What the issue allows. */
const LATENCY_FACTOR_MAX = 1.25;

const folder = mkdtempSync(join(tmpdir(), 'authrealm-prove-webhooks-'));
const database = sqliteAt(join(folder, 'webhooks.db'));
const { stdout } = await runCommand([AUTHREALM, 'init', ...database.args]);
const realm = /^realm +(\S+)$/m.exec(stdout)?.[1] ?? '';
const made = await runClientCreate(database, 'users:write', '--json');
const served = await serveWithClient(database, JSON.parse(made.stdout), [
  '--offline',
  '--allow-loopback-webhooks',
]);
const complaints: string[] = [];
try {
  const told = minutes > 0 ? `${await catchUp()}; ` : '';
  const factors = await latencyFactors();
  for (const complaint of complaints) console.error(complaint);
  console.log(`${told}a write takes longer by, medians of ${rounds} rounds: ${factors.join(', ')}`);
} finally {
  await served.running.stop();
  rmSync(folder, { recursive: true });
}
process.exit(complaints.length === 0 ? 0 : 1);

async function target(url: string): Promise<string> {
  const words = ['webhook', 'create', '--name', 'prove', '--url', url, '--events-max', '100'];
  const command = [AUTHREALM, ...words, '--allow-loopback-webhooks', '--json', ...database.args];
  const { stdout: said, stderr } = await runCommand(command);
  if (said === '') throw new Error(stderr);
  return (JSON.parse(said) as { webhook_id: string }).webhook_id;
}

async function forget(id: string): Promise<void> {
  await runCommand([AUTHREALM, 'webhook', 'delete', id, ...database.args]);
}

/** Fails for the whole time, then takes everything. Answers what came, in words. */
async function catchUp(): Promise<string> {
  const receiver = startReceiver();
  receiver.respond(() => new Response(null, { status: 503 }));
  const id = await target(receiver.url);
  const [before] = await database.query<{ seq: number }>(
    'select seq from realm_clock where realm_id = ?',
    realm,
  );
  const first = Number(before?.seq) + 1;
  const written = await writeFor(minutes * 60_000, served);
  const attempts = receiver.received.length;
  receiver.respond(() => new Response());
  const begun = performance.now();
  const last = first + written - 1;
  let more = 0;
  // It goes on to be written to while it catches up.
  const writing = startWriting(served, realm, rate, () => {
    more += 1;
  });
  // The longest pause is five minutes, a quarter more.
  await receiver.until(() => (receiver.sequences(realm).at(-1) ?? 0) >= last, 1_000_000);
  await writing.stop();
  await receiver.until(() => receiver.sequences(realm).length >= written + more, 60_000);
  const seconds = Math.round((performance.now() - begun) / 1000);
  judge(receiver, first, written + more);
  receiver.stop();
  await forget(id);
  return `${written + more} changes after ${attempts} failures in ${minutes} min at ${rate}/s, caught up ${seconds} s after`;
}

function judge(receiver: WebhookReceiver, first: number, count: number): void {
  const places = receiver.sequences(realm);
  const told = new Set(places);
  const firsts = [...told];
  const lost = Array.from({ length: count }, (_, at) => first + at).filter((place) => !told.has(place));
  if (lost.length > 0) complaints.push(`${lost.length} changes were lost, the first at place ${lost[0]}`);
  const disordered = firsts.find((place, at) => at > 0 && place < (firsts[at - 1] as number));
  if (disordered !== undefined) complaints.push(`place ${disordered} came after a later one`);
}

async function writeFor(ms: number, to: ServiceProcess): Promise<number> {
  let written = 0;
  const writing = startWriting(to, realm, rate, () => {
    written += 1;
  });
  await Bun.sleep(ms);
  await writing.stop();
  return written;
}

/** Of each kind of dead target: the median of a write beside it, over that without; the median of all rounds, in words. */
async function latencyFactors(): Promise<readonly string[]> {
  const dead = await deadTargets();
  const quotients = new Map(dead.map((each): [DeadTarget, number[]] => [each, []]));
  for (let round = 0; round < rounds; round += 1) {
    for (const [each, found] of quotients) found.push(await quotientBeside(each));
  }
  for (const each of dead) each.stop();
  return [...quotients].map(([{ name }, found]) => {
    const factor = median(found);
    const said = `${factor.toFixed(3)} beside ${name}`;
    if (factor > LATENCY_FACTOR_MAX) complaints.push(`a write takes longer by ${said}`);
    return said;
  });
}

async function quotientBeside(dead: DeadTarget): Promise<number> {
  const without = await medianOfWrites();
  const before = dead.reached() ?? 0;
  const id = await target(dead.url);
  await Bun.sleep(1_500);
  const beside = await medianOfWrites();
  const [row] = await database.query<{ tried: number }>(
    'select count(*) as tried from delivery where webhook_id = ?',
    id,
  );
  if ((dead.reached() ?? Number(row?.tried)) <= before) complaints.push(`nothing was sent to ${dead.name}`);
  await forget(id);
  await Bun.sleep(1_500);
  return beside / without;
}

async function medianOfWrites(): Promise<number> {
  const times: number[] = [];
  const writing = startWriting(served, realm, 100, (ms) => times.push(ms));
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
