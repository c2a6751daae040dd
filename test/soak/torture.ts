import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { endServers } from '../support/postgres_server.ts';
import { AUTHREALM, runCommand } from '../support/processes.ts';
import { freshSeed } from '../support/random.ts';
import { type Told, torture } from './torturing/rounds.ts';
import { type EngineName, setScene } from './torturing/scene.ts';

/**
 * Many clients at random over the real HTTP surface of real processes, while processes die, disks fill up, syncs fail,
 * clocks jump, connections break and two releases serve one database. A model keeps what was acknowledged. The seed
 * decides what is asked for and what goes wrong; how it all meets is the machine's doing.
 */
const { values: given } = parseArgs({
  options: {
    engine: { type: 'string', default: 'sqlite' },
    rounds: { type: 'string', default: '100' },
    operations: { type: 'string', default: '1000' },
    clients: { type: 'string', default: '8' },
    seed: { type: 'string' },
  },
});
if (given.engine !== 'sqlite' && given.engine !== 'postgres') {
  console.error('--engine is sqlite or postgres');
  process.exit(2);
}
const engine: EngineName = given.engine;
const seed = Number(given.seed ?? freshSeed());
console.log(`seed ${seed}`);
const folder = mkdtempSync(join(tmpdir(), 'authrealm-torture-'));
const scene = await setScene(engine, folder);
const told: Told[] = [];
const complaints: string[] = [];
try {
  const { operations, clients, rounds } = given;
  const counts = { operations: Number(operations), clients: Number(clients), rounds: Number(rounds) };
  await torture(scene, { seed, ...counts, tell });
  const code = await scene.service.stop();
  if (code !== 0) complaints.push(`the service ended with ${code}`);
  complaints.push(...(await illnesses(scene.database.args)));
} catch (error) {
  complaints.push((error as Error).stack ?? String(error));
} finally {
  await scene.end();
  await endServers();
}
for (const complaint of complaints) console.log(complaint);
table();
const all = complaints.length + told.reduce((sum, round) => sum + round.complaints.length, 0);
if (all === 0) rmSync(folder, { recursive: true, force: true });
else console.log(`what they left is in ${folder}`);
const sum = (of: (round: Told) => number) => told.reduce((total, round) => total + of(round), 0);
console.log(
  `${engine}: ${told.length} rounds, ${sum((round) => round.operations)} operations, ${sum((round) => round.acknowledged)} writes acknowledged, ` +
    `${sum((round) => round.refused)} refused, ${sum((round) => round.unknown)} unknown, ${all} complaints, ` +
    `${(sum((round) => round.seconds) / told.length).toFixed(1)} s a round, seed ${seed}`,
);
process.exitCode = all === 0 && told.length === Number(given.rounds) ? 0 : 1;

/** What `doctor` finds, but for issuers: they are written at random. */
async function illnesses(words: readonly string[]): Promise<readonly string[]> {
  const { stdout, stderr } = await runCommand([AUTHREALM, 'doctor', ...words]);
  const found = [...stdout.matchAll(/^(\S.*): \d+ found$/gm)].map(([line, check]) => ({ line, check }));
  const isWhole = stderr === '' && /^(not )?healthy/m.test(stdout);
  return [
    ...found.filter(({ check }) => check !== 'issuers').map(({ line }) => `doctor: ${line}`),
    ...(isWhole ? [] : [`doctor: ${stdout}${stderr}`]),
  ];
}

function tell(round: Told): void {
  told.push(round);
  const { faults, operations, acknowledged, unknown, seconds } = round;
  const what = `round ${round.round}, ${faults.join(' and ')}`;
  console.log(
    `${what}: ${operations} operations, ${acknowledged} acknowledged, ${unknown} unknown, ${seconds.toFixed(1)} s`,
  );
  for (const complaint of round.complaints) console.log(`${what}: ${complaint}`);
}

/** A round with two faults counts for both. */
function table(): void {
  const heads = ['rounds', 'operations', 'acknowledged', 'unknown', 'complaints'];
  const row = (name: string, cells: readonly (string | number)[]) =>
    console.log(name.padEnd(24) + cells.map((cell) => String(cell).padStart(14)).join(''));
  row('fault', heads);
  for (const name of new Set(told.flatMap(({ faults }) => faults))) {
    const own = told.filter(({ faults }) => faults.includes(name));
    const total = (of: (round: Told) => number) => own.reduce((sum, round) => sum + of(round), 0);
    row(name, [
      own.length,
      total((round) => round.operations),
      total((round) => round.acknowledged),
      total((round) => round.unknown),
      total((round) => round.complaints.length),
    ]);
  }
}
