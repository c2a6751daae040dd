import { Database } from 'bun:sqlite';
import { existsSync, mkdtempSync, readFileSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { NIL_UUID } from '../../src/model/id.ts';
import { createSqlite } from '../support/database.ts';
import { populationLines } from '../support/population.ts';
import { AUTHREALM, runCommand } from '../support/processes.ts';

/**
 * Import, export --with-secrets, import into a fresh database, export again: both exports must be identical. An import killed
 * ten times and resumed must give the same export as one that was not killed.
 */
const KILLS = 10;
const HASH = '$argon2id$v=19$m=19456,t=2,p=1$b25lIHNhbHQgb2YgbWFueQ$ZG8gbm90IHVzZSB0aGlzIGhhc2ggYW55d2hlcmU';

const { values: options } = parseArgs({ options: { users: { type: 'string', default: '1000000' } } });
const users = Number(options.users);
const records = 3 + 3 * users;
const folder = mkdtempSync(join(tmpdir(), 'authrealm-roundtrip-'));
const at = (name: string): string => join(folder, name);
const database = (name: string): string => `sqlite:${at(name)}`;

/** Writes the population, with password hashes, client secrets and non-ASCII texts. */
async function writeSource(path: string): Promise<void> {
  const writer = Bun.file(path).writer();
  for (const group of populationLines(users)) {
    const rich = group
      .replace('"client_id":"shop"', '"client_id":"shop","client_secret":"of the provider 🗝"')
      .replace(
        /"name":"User (\d*7)"/,
        '"name":"Üser 👩‍👩‍👧 $1","given_name":"Ünï\\u0301","family_name":"\\"\\\\/"',
      )
      .replace(
        '"name":"Bench"',
        '"name":"Bench","relationships":{"origin":{"data":{"id":"0","type":"merchant-realm-mappings"}}}',
      )
      .replace(/("username":"user\d*[02468]@)/, `"password_hash":"${HASH}",$1`);
    writer.write(`${rich}\n`);
  }
  await writer.end();
}

async function command(...words: string[]): Promise<string> {
  const { code, stdout, stderr } = await runCommand([AUTHREALM, ...words]);
  if (code !== 0) throw new Error(`authrealm ${words.join(' ')} exited with ${code}: ${stdout}${stderr}`);
  return stdout;
}

function importedInto(name: string): number {
  if (!existsSync(at(name))) return 0;
  const db = new Database(at(name), { readonly: true });
  try {
    // Positions in the log of the installation are not records.
    const inRealms = 'select sum(seq) as n from realm_clock where realm_id <> ?';
    return db.query<{ n: number | null }, [string]>(inRealms).get(NIL_UUID)?.n ?? 0;
  } catch {
    // The tables do not exist yet.
    return 0;
  } finally {
    db.close();
  }
}

/** Kills an import once this many records exist. */
async function killAt(name: string, enough: number): Promise<void> {
  const from = ['--from-line', String(importedInto(name) + 1)];
  const child = Bun.spawn([AUTHREALM, 'import', at('source'), '--database', database(name), ...from], {
    stdio: ['ignore', 'ignore', 'inherit'],
  });
  while (child.exitCode === null && importedInto(name) < enough) await Bun.sleep(20);
  child.kill('SIGKILL');
  await child.exited;
}

/** Compares two files in pieces. */
async function isSame(left: string, right: string): Promise<boolean> {
  const size = statSync(left).size;
  if (size !== statSync(right).size) return false;
  const piece = 1 << 26;
  for (let from = 0; from < size; from += piece) {
    const parts = [left, right].map((path) =>
      Bun.file(path)
        .slice(from, from + piece)
        .bytes(),
    );
    const [ours, theirs] = await Promise.all(parts);
    if (!Buffer.from(ours ?? []).equals(theirs ?? new Uint8Array())) return false;
  }
  return true;
}

async function exportOf(name: string): Promise<string> {
  const path = at(`${name}.ndjson`);
  await command('export', '--with-secrets', path, '--database', database(name));
  return path;
}

function printResult(what: string, isFine: boolean, since: number): boolean {
  const seconds = Math.round((performance.now() - since) / 1_000);
  console.log(`${what}: ${isFine ? 'identical' : 'NOT identical'} (${records} records, ${seconds} s)`);
  return isFine;
}

async function roundTrip(): Promise<boolean> {
  const since = performance.now();
  for (const name of ['first', 'second', 'killed']) await createSqlite(at(name));
  await command('import', at('source'), '--database', database('first'));
  const first = await exportOf('first');
  await command('import', first, '--database', database('second'));
  const second = await exportOf('second');
  const keys = ['first', 'second'].map((name) => readFileSync(at(`${name}.key`), 'utf8'));
  const isFine = keys[0] !== keys[1] && (await isSame(first, second));
  for (const gone of ['second', 'second-wal', 'second-shm', 'second.ndjson'])
    rmSync(at(gone), { force: true });
  return printResult('import, export --with-secrets, import, export', isFine, since);
}

async function killedAndResumed(): Promise<boolean> {
  const since = performance.now();
  for (let kill = 1; kill <= KILLS; kill += 1)
    await killAt('killed', Math.floor((kill * records) / (KILLS + 1)));
  // Imports the whole file again: records that exist unchanged are skipped.
  await command('import', at('source'), '--database', database('killed'));
  const isFine =
    importedInto('killed') === records && (await isSame(at('first.ndjson'), await exportOf('killed')));
  return printResult(`an import killed ${KILLS} times and resumed`, isFine, since);
}

await writeSource(at('source'));
const isFine = (await roundTrip()) && (await killedAndResumed());
if (isFine) rmSync(folder, { recursive: true });
else console.log(`the databases are kept in ${folder}`);
process.exitCode = isFine ? 0 : 1;
