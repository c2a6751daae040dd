import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { endServers } from '../support/postgres_server.ts';
import { AUTHREALM, runCommand } from '../support/processes.ts';
import { freshSeed } from '../support/random.ts';
import { ENGINES, openTortureEnvironment } from './torture/environment.ts';
import { type RoundReport, torture } from './torture/rounds.ts';

/**
 * Many clients write at random over HTTP while processes are killed, disks fill up, syncs fail, clocks jump and connections
 * break. A model tracks the acknowledged writes. The seed decides the requests and the faults;
 * how they interleave depends on the machine.
 */
const { values: options } = parseArgs({
  options: {
    engine: { type: 'string', default: 'sqlite' },
    rounds: { type: 'string', default: '100' },
    operations: { type: 'string', default: '1000' },
    clients: { type: 'string', default: '8' },
    seed: { type: 'string' },
  },
});
const engine = ENGINES.find((name) => name === options.engine);
if (!engine) {
  console.error(`--engine must be one of ${ENGINES.join(', ')}`);
  process.exit(2);
}
const seed = Number(options.seed ?? freshSeed());
console.log(`seed ${seed}`);
const folder = mkdtempSync(join(tmpdir(), 'authrealm-torture-'));
const environment = await openTortureEnvironment(engine, folder);
const reports: RoundReport[] = [];
const complaints: string[] = [];
try {
  const { operations, clients, rounds } = options;
  const counts = { operations: Number(operations), clients: Number(clients), rounds: Number(rounds) };
  await torture(environment, { seed, ...counts, onRound: printRound });
  const code = await environment.service.stop();
  if (code !== 0) complaints.push(`the service exited with ${code}`);
  complaints.push(...(await doctorFindings(environment.database.args)));
  complaints.push(...(await verifyFindings(environment.database.args)));
} catch (error) {
  complaints.push((error as Error).stack ?? String(error));
} finally {
  await environment.end();
  await endServers();
}
for (const complaint of complaints) console.log(complaint);
printFaults();
const all = complaints.length + reports.reduce((sum, round) => sum + round.complaints.length, 0);
if (all === 0) rmSync(folder, { recursive: true, force: true });
else console.log(`the database is kept in ${folder}`);
const sum = (of: (round: RoundReport) => number) => reports.reduce((total, round) => total + of(round), 0);
console.log(
  `${engine}: ${reports.length} rounds, ${sum((round) => round.operations)} operations, ${sum((round) => round.acknowledged)} writes acknowledged, ` +
    `${sum((round) => round.refused)} refused, ${sum((round) => round.unknown)} unknown, ${all} complaints, ` +
    `${(sum((round) => round.seconds) / reports.length).toFixed(1)} s a round, seed ${seed}`,
);
process.exitCode = all === 0 && reports.length === Number(options.rounds) ? 0 : 1;

/** Findings of `doctor`. */
async function doctorFindings(words: readonly string[]): Promise<readonly string[]> {
  const { stdout, stderr } = await runCommand([AUTHREALM, 'doctor', ...words]);
  const found = [...stdout.matchAll(/^\S.*: \d+ found$/gm)].map(([line]) => `doctor: ${line}`);
  const isComplete = stderr === '' && /^(not )?healthy/m.test(stdout);
  return isComplete ? found : [...found, `doctor: ${stdout}${stderr}`];
}

/** What `audit verify` reports of the log and the records, if it is anything. */
async function verifyFindings(words: readonly string[]): Promise<readonly string[]> {
  const { code, stdout, stderr } = await runCommand([AUTHREALM, 'audit', 'verify', '--records', ...words]);
  return code === 0 ? [] : [`audit verify: ${stdout}${stderr}`];
}

function printRound(round: RoundReport): void {
  reports.push(round);
  const { faults, operations, acknowledged, unknown, seconds } = round;
  const what = `round ${round.round}, ${faults.join(' and ')}`;
  console.log(
    `${what}: ${operations} operations, ${acknowledged} acknowledged, ${unknown} unknown, ${seconds.toFixed(1)} s`,
  );
  for (const complaint of round.complaints) console.log(`${what}: ${complaint}`);
}

/** A table by fault; a round with two faults counts for both. */
function printFaults(): void {
  const heads = ['rounds', 'operations', 'acknowledged', 'unknown', 'complaints'];
  const row = (name: string, cells: readonly (string | number)[]) =>
    console.log(name.padEnd(24) + cells.map((cell) => String(cell).padStart(14)).join(''));
  row('fault', heads);
  for (const name of new Set(reports.flatMap(({ faults }) => faults))) {
    const own = reports.filter(({ faults }) => faults.includes(name));
    const total = (of: (round: RoundReport) => number) => own.reduce((sum, round) => sum + of(round), 0);
    row(name, [
      own.length,
      total((round) => round.operations),
      total((round) => round.acknowledged),
      total((round) => round.unknown),
      total((round) => round.complaints.length),
    ]);
  }
}
