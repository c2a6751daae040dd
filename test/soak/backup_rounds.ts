import { copyFileSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { erasureLine } from '../../src/audit/checkpoint.ts';
import type { Uuid } from '../../src/domain/id.ts';
import { oidcProfile, realm, user } from '../../src/domain/resources.ts';
import { logKeysOf } from '../support/backup_fixtures.ts';
import { sqliteAt, type TestDatabase } from '../support/database.ts';
import { AUTHREALM, runClientCreate, runCommand } from '../support/processes.ts';
import { FULL_SCOPE, kindOf, uniqueWord } from '../support/resource_cases.ts';
import { freePort } from '../support/service.ts';
import { complaintsAbout, type Expected, type Held, heldIn } from './backup_model.ts';
import { requestClientToken } from './random_service.ts';
import { type RestartableService, startRestartable } from './restartable_service.ts';
import { type Gone, type Ground, startWriters, type Told, type WriteLoad } from './write_load.ts';

export interface Rounds {
  readonly folder: string;
  readonly backups: number;
  /** Users that are there before, so that a backup takes a while. */
  readonly users: number;
  readonly writers: number;
  readonly chance: () => number;
}

export interface Outcome {
  readonly complaints: readonly string[];
  readonly acknowledged: number;
  /** Users that had been removed since and were in a backup: each was looked for in what was restored. */
  readonly erased: number;
  /** Writes a second while a backup was made, and while none was. */
  readonly rates: { readonly beside: number; readonly alone: number };
  /** Milliseconds that a backup took, the median. */
  readonly backupMs: number;
}

interface Taken {
  readonly path: string;
  readonly acknowledgedBefore: number;
}

/**
 * Backups are taken while writers write as fast as they are answered. Each is restored and held against the model at its
 * moment; then again with the ledger of those who were removed since, of whom nothing may be there.
 */
export async function runBackupRounds(rounds: Rounds): Promise<Outcome> {
  const database = sqliteAt(join(rounds.folder, 'live.db'));
  const made = await runClientCreate(database, FULL_SCOPE, '--json');
  if (made.code !== 0) throw new Error(made.stderr);
  const port = await freePort();
  const mortal = await startRestartable({ database, port, logFile: join(rounds.folder, 'service.log') }, 1);
  try {
    const token = await requestClientToken(mortal, JSON.parse(made.stdout));
    const ground = await settle(mortal, token, rounds.chance);
    await populate(database, ground, rounds.users);
    const start = heldIn(database.address.engine === 'sqlite' ? database.address.path : '');
    const load = startWriters(ground, rounds.writers);
    const { taken, spans } = await takeAll(rounds, database, load);
    await load.stop();
    await mortal.stop();
    const end = heldIn(join(rounds.folder, 'live.db'));
    const judged = await judgeAll(rounds, taken, { start, end, told: load });
    return {
      ...judged,
      complaints: [...load.complaints, ...judged.complaints],
      acknowledged: load.acknowledged.length,
      ...measured(spans),
    };
  } finally {
    await mortal.end();
  }
}

/** Three realms, each with a profile. */
async function settle({ url }: RestartableService, token: string, chance: () => number): Promise<Ground> {
  const nowhere = { realm: '', oidcProfile: '', passwordProfile: '', user: '' };
  const post = async (path: string, data: object): Promise<string> => {
    const headers = { Authorization: `Bearer ${token}`, 'Content-Type': 'application/json' };
    const answer = await fetch(url + path, { method: 'POST', headers, body: JSON.stringify({ data }) });
    if (answer.status !== 201) throw new Error(await answer.text());
    return ((await answer.json()) as { data: { id: string } }).data.id;
  };
  const realms: Ground['realms'][number][] = [];
  while (realms.length < 3) {
    const id = await post(kindOf(realm).collection(nowhere), kindOf(realm).fresh(nowhere));
    const home = { ...nowhere, realm: id };
    const profile = await post(kindOf(oidcProfile).collection(home), kindOf(oidcProfile).fresh(home));
    realms.push({ realm: id, oidcProfile: profile });
  }
  return { url, token, chance, realms };
}

async function populate({ args }: TestDatabase, { realms }: Ground, users: number): Promise<void> {
  const lines = Array.from({ length: users }, (_, at) =>
    JSON.stringify({
      type: user.type,
      realm_id: realms[at % realms.length]?.realm,
      id: crypto.randomUUID(),
      name: uniqueWord('Before'),
      email: `${uniqueWord('before')}@example.com`,
    }),
  );
  const { code, stderr } = await runCommand([AUTHREALM, 'import', '-', ...args], {}, lines.join('\n'));
  if (code !== 0) throw new Error(stderr);
}

/** How many writes were acknowledged within so many milliseconds. */
interface Span {
  readonly isBeside: boolean;
  readonly writes: number;
  readonly ms: number;
}

const APART_MS = 500;

async function takeAll({ folder, backups }: Rounds, { args }: TestDatabase, load: WriteLoad) {
  const taken: Taken[] = [];
  const spans: Span[] = [];
  const shelf = join(folder, 'backups');
  mkdirSync(shelf);
  const during = async <T>(isBeside: boolean, work: () => Promise<T>): Promise<T> => {
    const [since, before] = [performance.now(), load.acknowledged.length];
    const result = await work();
    spans.push({ isBeside, writes: load.acknowledged.length - before, ms: performance.now() - since });
    return result;
  };
  while (taken.length < backups) {
    await during(false, () => Bun.sleep(APART_MS));
    const acknowledgedBefore = load.acknowledged.length;
    const made = await during(true, () =>
      runCommand([AUTHREALM, 'backup', '--into', shelf, '--json', ...args]),
    );
    if (made.code !== 0) throw new Error(made.stderr);
    taken.push({ path: (JSON.parse(made.stdout) as { path: string }).path, acknowledgedBefore });
  }
  return { taken, spans };
}

type Known = Omit<Expected, 'acknowledgedBefore'>;

async function judgeAll({ folder, chance }: Rounds, taken: readonly Taken[], known: Known) {
  const complaints: string[] = [];
  let erased = 0;
  for (const [at, { path, acknowledgedBefore }] of taken.entries()) {
    const plain = await restored(folder, path, `plain-${at}.db`, []);
    complaints.push(...complaintsAbout(plain, { ...known, acknowledgedBefore }));
    const held = heldIn(plain);
    const gone = drawn(goneSince(known.told, held), chance);
    erased += gone.length;
    const clean = await restored(folder, path, `clean-${at}.db`, gone);
    complaints.push(...unseen(plain, gone), ...traces(clean, held, gone));
  }
  return { complaints, erased };
}

/** Those who were removed and are in the backup. */
function goneSince({ gone }: Told, { records }: Held): readonly Gone[] {
  return gone.filter(({ user: id }) => records.has(id));
}

/** Each is looked for in every byte. */
const GONE_MAX = 25;

function drawn(gone: readonly Gone[], chance: () => number): readonly Gone[] {
  const tickets = gone.map((one) => ({ one, ticket: chance() }));
  return tickets
    .sort((left, right) => left.ticket - right.ticket)
    .slice(0, GONE_MAX)
    .map(({ one }) => one);
}

/** Restores a backup into a place of its own. */
async function restored(
  folder: string,
  backup: string,
  name: string,
  gone: readonly Gone[],
): Promise<string> {
  const path = join(folder, name);
  const ledger = `${path}.ledger`;
  copyFileSync(join(folder, 'live.db.key'), `${path}.key`);
  const keys = await logKeysOf(join(folder, 'live.db'));
  const lines = gone.map(({ realm: inRealm, user: of, at }) =>
    erasureLine({ realm: inRealm as Uuid, user: of as Uuid, at }, keys),
  );
  writeFileSync(ledger, lines.join('\n'));
  const words = [backup, '--ledger', ledger, '--database', `sqlite:${path}`];
  const { code, stderr } = await runCommand([AUTHREALM, 'restore', ...words]);
  if (code !== 0) throw new Error(stderr);
  return path;
}

/** Those whom the search through bytes would miss: each e-mail address stands in what was restored as it was. */
function unseen(path: string, gone: readonly Gone[]): readonly string[] {
  const bytes = readFileSync(path);
  return gone
    .filter(({ texts }) => !bytes.includes(texts[1] ?? ''))
    .map(({ user: id }) => `${id} is not found by bytes`);
}

/** What is left of people who were erased, and who else is missing. */
function traces(path: string, before: Held, gone: readonly Gone[]): readonly string[] {
  const bytes = readFileSync(path);
  const { records } = heldIn(path);
  const ids = new Set(gone.map(({ user: id }) => id));
  const isGone = ([id, says]: readonly [string, string]) => ids.has(id) || ids.has(JSON.parse(says)[0]);
  const found = gone.flatMap(({ user: id, texts }) => [
    ...(records.has(id) ? [`${id} came back`] : []),
    ...texts.filter((text) => bytes.includes(text)).map((text) => `${text} of ${id} is in the file`),
  ]);
  const lost = [...before.records].filter(
    (record) => !isGone(record) && records.get(record[0]) !== record[1],
  );
  return [...found, ...lost.map(([id]) => `${id} was not erased and is not what it was`)];
}

function measured(spans: readonly Span[]): Pick<Outcome, 'rates' | 'backupMs'> {
  const rateOf = (chosen: readonly Span[]): number => {
    const sum = (of: 'writes' | 'ms') => chosen.reduce((total, span) => total + span[of], 0);
    return Math.round((sum('writes') / Math.max(1, sum('ms'))) * 1_000);
  };
  const beside = spans.filter(({ isBeside }) => isBeside);
  const times = beside.map(({ ms }) => ms).sort((one, other) => one - other);
  return {
    rates: { beside: rateOf(beside), alone: rateOf(spans.filter(({ isBeside }) => !isBeside)) },
    backupMs: Math.round(times[Math.floor(times.length / 2)] ?? 0),
  };
}
