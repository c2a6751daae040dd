import { mkdtempSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { freshDatabase, type TestDatabase } from '../support/database.ts';
import { endFile } from '../support/ending.ts';
import { ISSUER, OIDC_PROFILE, PASSWORD_PROFILE, populationLines, REALM } from '../support/population.ts';
import { endServers } from '../support/postgres_server.ts';
import { memoryOf } from '../support/process_tree.ts';
import { AUTHREALM, runAuthrealm, startCommand } from '../support/processes.ts';
import { startServiceProcess } from '../support/service_process.ts';

/**
 * Imports users with two links each: from JSON lines, from CSV, and from CSV over HTTP; with records a second and the peak of anonymous
 * memory. An import of CSV that is killed often and repeated must give the same export as one that was not killed.
 */
const KILLS = 5;

const { values: options } = parseArgs({
  options: { engine: { type: 'string', default: 'sqlite' }, users: { type: 'string', default: '1000000' } },
});
const users = Number(options.users);
const folder = mkdtempSync(join(tmpdir(), 'authrealm-csv-'));
const at = (name: string): string => join(folder, name);
const [ndjson, csv, map, parents] = ['users.ndjson', 'users.csv', 'map.json', 'parents.ndjson'].map(at) as [
  string,
  string,
  string,
  string,
];

async function writeSources(): Promise<void> {
  const [lines, rows] = [Bun.file(ndjson).writer(), Bun.file(csv).writer()];
  rows.write('No,Name,E-mail,Since,Subject\r\n');
  const since = new Date(0).toISOString();
  let number = -3;
  for (const group of populationLines(users)) {
    lines.write(`${group}\n`);
    if (number >= 0)
      rows.write(`${number},User ${number},user${number}@example.com,${since},subject-${number}\r\n`);
    number += 1;
  }
  await Promise.all([lines.end(), rows.end()]);
  writeFileSync(parents, `${[...populationLines(0)].join('\n')}\n`);
  const text = {
    constants: {
      realm_id: REALM,
      'links.0.oidc_profile_id': OIDC_PROFILE,
      'links.0.issuer': ISSUER,
      'links.1.password_profile_id': PASSWORD_PROFILE,
    },
    columns: {
      ...{ No: 'id', Name: 'name', 'E-mail': ['email', 'links.1.username'] },
      ...{ Since: 'meta.created_at', Subject: 'links.0.subject' },
    },
  };
  writeFileSync(map, JSON.stringify(text));
}

async function command(...words: string[]): Promise<string> {
  const { code, stdout, stderr } = await runAuthrealm(words);
  if (code !== 0) throw new Error(`authrealm ${words.join(' ')} exited with ${code}: ${stdout}${stderr}`);
  return stdout;
}

async function withParents(): Promise<TestDatabase> {
  const database = await freshDatabase(options.engine);
  await command('import', parents, ...database.args);
  return database;
}

/** Prints records a second and the peak of anonymous memory of a process while work runs. */
async function measure(what: string, pid: number, work: Promise<unknown>): Promise<void> {
  const start = performance.now();
  let peak = 0;
  const timer = setInterval(() => {
    // A process that has exited has none.
    peak = Math.max(peak, memoryOf(pid).anonymousMb || 0);
  }, 100);
  try {
    await work;
  } finally {
    clearInterval(timer);
  }
  const seconds = (performance.now() - start) / 1_000;
  console.log(`${what}: ${Math.round((3 * users) / seconds)} records/s, ${Math.round(peak)} MB`);
}

async function importMeasured(what: string, database: TestDatabase, ...words: string[]): Promise<void> {
  const { process: child } = startCommand([AUTHREALM, 'import', ...words, ...database.args]);
  await measure(what, child.pid, child.exited);
  if (child.exitCode !== 0) throw new Error(`${what} exited with ${child.exitCode}`);
}

async function uploadMeasured(): Promise<void> {
  const database = await withParents();
  const service = await startServiceProcess({ database, scope: 'transfer' });
  const headers = { Authorization: `Bearer ${await service.token()}` };
  const query = `?map=${encodeURIComponent(await Bun.file(map).text())}`;
  const uploading = fetch(`${service.url}/admin/v1/import${query}`, {
    ...{ method: 'POST', headers, body: Bun.file(csv), timeout: false },
  });
  await measure('CSV over HTTP', service.running.process.pid, uploading);
  const counts = (await (await uploading).text()).trim().split('\n').at(-1);
  if (!counts?.startsWith(`{"imported":${3 * users},"unchanged":0,`)) throw new Error(`uploaded ${counts}`);
  await service.running.stop();
}

async function countUsers({ query }: TestDatabase): Promise<number> {
  const [row] = await query<{ n: number }>('select count(*) as n from user_info').catch(() => []);
  return Number(row?.n ?? 0);
}

/** Kills imports once so many users exist. */
async function killOften(database: TestDatabase): Promise<void> {
  for (let kill = 1; kill <= KILLS; kill += 1) {
    const { process: child } = startCommand([AUTHREALM, 'import', csv, '--csv', map, ...database.args]);
    const enough = Math.floor((kill * users) / (KILLS + 1));
    while (child.exitCode === null && (await countUsers(database)) < enough) await Bun.sleep(50);
    child.kill('SIGKILL');
    await child.exited;
  }
}

/** The digest of an export without the times of changes, which differ. */
async function digestOf(database: TestDatabase, name: string): Promise<string> {
  await command('export', '--csv', at(name), ...database.args);
  const hash = new Bun.CryptoHasher('sha256');
  let rest = '';
  for await (const chunk of Bun.file(at(name)).stream().pipeThrough(new TextDecoderStream())) {
    const rows = `${rest}${chunk}`.split('\r\n');
    rest = rows.pop() ?? '';
    for (const row of rows) hash.update(row.replaceAll(/"20\d\d-[^"]*Z"/g, '""'));
  }
  return `${hash.digest('hex')} ${statSync(at(name)).size}`;
}

try {
  await writeSources();
  await importMeasured('JSON lines', await freshDatabase(options.engine), ndjson);
  const whole = await withParents();
  await importMeasured('CSV', whole, csv, '--csv', map);
  await importMeasured('CSV again', whole, csv, '--csv', map);
  await uploadMeasured();
  const killed = await withParents();
  await killOften(killed);
  await command('import', csv, '--csv', map, ...killed.args);
  const isSame = (await digestOf(whole, 'whole.csv')) === (await digestOf(killed, 'killed.csv'));
  console.log(
    `an import of CSV killed ${KILLS} times and repeated: ${isSame ? 'identical' : 'NOT identical'}`,
  );
  process.exitCode = isSame ? 0 : 1;
} finally {
  rmSync(folder, { recursive: true });
  await endFile();
  await endServers();
}
