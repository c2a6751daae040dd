import { copyFileSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { erasureLine } from '../../src/log/checkpoint.ts';
import type { Uuid } from '../../src/model/id.ts';
import { oidcProfile, realm, user } from '../../src/model/resources.ts';
import { logKeysOf } from '../support/backup_fixtures.ts';
import { findPort } from '../support/daemons.ts';
import { createSqlite, type TestDatabase } from '../support/database.ts';
import { AUTHREALM, runClientCreate, runCommand } from '../support/processes.ts';
import { FULL_SCOPE, kindOf, uniqueWord } from '../support/resource_cases.ts';
import { requestToken } from '../support/token_request.ts';
import { backupErrors, type DatabaseContent, type Expected, readContent } from './backup_model.ts';
import { type RestartableService, startRestartable } from './restartable_service.ts';
import {
  type ErasedUser,
  type LoadFixture,
  type LoadRecord,
  startWriters,
  type WriteLoad,
} from './write_load.ts';

export interface BackupRunOptions {
  readonly folder: string;
  readonly backups: number;
  /** Users imported beforehand, so that a backup takes a while. */
  readonly users: number;
  readonly writers: number;
  readonly chance: () => number;
}

export interface BackupRunReport {
  readonly complaints: readonly string[];
  readonly acknowledged: number;
  /** Users in a backup that were deleted after it, whose erasure was checked in the restored database. */
  readonly erased: number;
  /** Writes per second during backups and between them. */
  readonly rates: { readonly duringBackup: number; readonly withoutBackup: number };
  /** Median duration of a backup. */
  readonly backupMs: number;
}

interface TakenBackup {
  readonly path: string;
  readonly acknowledgedBefore: number;
}

/**
 * Takes backups under full write load. Each is restored and compared with the model at that moment; then it is restored again
 * with the erasures made since, and no data of erased users may be left.
 */
export async function runBackupRounds(options: BackupRunOptions): Promise<BackupRunReport> {
  const database = await createSqlite(join(options.folder, 'live.db'));
  const made = await runClientCreate(database, FULL_SCOPE, '--json');
  if (made.code !== 0) throw new Error(made.stderr);
  const port = findPort();
  const service = await startRestartable({ database, port, logFile: join(options.folder, 'service.log') }, 1);
  try {
    const token = await requestToken(service.url, JSON.parse(made.stdout));
    const fixture = await createRealms(service, token, options.chance);
    await populate(database, fixture, options.users);
    const start = readContent(database.address.engine === 'sqlite' ? database.address.path : '');
    const load = startWriters(fixture, options.writers);
    const { taken, spans } = await takeBackups(options, database, load);
    await load.stop();
    await service.stop();
    const end = readContent(join(options.folder, 'live.db'));
    const checked = await checkBackups(options, taken, { start, end, writes: load });
    return {
      ...checked,
      complaints: [...load.complaints, ...checked.complaints],
      acknowledged: load.acknowledged.length,
      ...ratesOf(spans),
    };
  } finally {
    await service.end();
  }
}

/** Creates three realms, each with an OIDC profile. */
async function createRealms(
  { url }: RestartableService,
  token: string,
  chance: () => number,
): Promise<LoadFixture> {
  const nowhere = { realm: '', oidcProfile: '', passwordProfile: '', user: '' };
  const post = async (path: string, data: object): Promise<string> => {
    const headers = { Authorization: `Bearer ${token}`, 'Content-Type': 'application/json' };
    const answer = await fetch(url + path, { method: 'POST', headers, body: JSON.stringify({ data }) });
    if (answer.status !== 201) throw new Error(await answer.text());
    return ((await answer.json()) as { data: { id: string } }).data.id;
  };
  const realms: LoadFixture['realms'][number][] = [];
  while (realms.length < 3) {
    const id = await post(kindOf(realm).collection(nowhere), kindOf(realm).fresh(nowhere));
    const home = { ...nowhere, realm: id };
    const profile = await post(kindOf(oidcProfile).collection(home), kindOf(oidcProfile).fresh(home));
    realms.push({ realm: id, oidcProfile: profile });
  }
  return { url, token, chance, realms };
}

async function populate({ args }: TestDatabase, { realms }: LoadFixture, users: number): Promise<void> {
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

/** Number of writes acknowledged in a span of time. */
interface Span {
  readonly isDuringBackup: boolean;
  readonly writes: number;
  readonly ms: number;
}

const PAUSE_MS = 500;

async function takeBackups({ folder, backups }: BackupRunOptions, { args }: TestDatabase, load: WriteLoad) {
  const taken: TakenBackup[] = [];
  const spans: Span[] = [];
  const backupFolder = join(folder, 'backups');
  mkdirSync(backupFolder);
  const measure = async <T>(isDuringBackup: boolean, work: () => Promise<T>): Promise<T> => {
    const [since, before] = [performance.now(), load.acknowledged.length];
    const result = await work();
    spans.push({ isDuringBackup, writes: load.acknowledged.length - before, ms: performance.now() - since });
    return result;
  };
  while (taken.length < backups) {
    await measure(false, () => Bun.sleep(PAUSE_MS));
    const acknowledgedBefore = load.acknowledged.length;
    const made = await measure(true, () =>
      runCommand([AUTHREALM, 'backup', '--into', backupFolder, '--json', ...args]),
    );
    if (made.code !== 0) throw new Error(made.stderr);
    taken.push({ path: (JSON.parse(made.stdout) as { path: string }).path, acknowledgedBefore });
  }
  return { taken, spans };
}

type ModelInput = Omit<Expected, 'acknowledgedBefore'>;

async function checkBackups(
  { folder, chance }: BackupRunOptions,
  taken: readonly TakenBackup[],
  model: ModelInput,
) {
  const complaints: string[] = [];
  let erased = 0;
  for (const [at, { path, acknowledgedBefore }] of taken.entries()) {
    const plain = await restoreBackup(folder, path, `plain-${at}.db`, []);
    complaints.push(...backupErrors(plain, { ...model, acknowledgedBefore }));
    const held = readContent(plain);
    const gone = drawErased(erasedSince(model.writes, held), chance);
    erased += gone.length;
    const clean = await restoreBackup(folder, path, `clean-${at}.db`, gone);
    complaints.push(...undetectable(plain, gone), ...erasureErrors(clean, held, gone));
  }
  return { complaints, erased };
}

/** Users that were deleted and are in the backup. */
function erasedSince({ erased: gone }: LoadRecord, { records }: DatabaseContent): readonly ErasedUser[] {
  return gone.filter(({ user: id }) => records.has(id));
}

/** Each erased user costs a search through the whole file. */
const ERASED_MAX = 25;

function drawErased(gone: readonly ErasedUser[], chance: () => number): readonly ErasedUser[] {
  const tickets = gone.map((one) => ({ one, ticket: chance() }));
  return tickets
    .sort((left, right) => left.ticket - right.ticket)
    .slice(0, ERASED_MAX)
    .map(({ one }) => one);
}

/** Restores a backup into a new file, with these erasures. */
async function restoreBackup(
  folder: string,
  backup: string,
  name: string,
  gone: readonly ErasedUser[],
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

/** Users that a search through bytes would miss: before the erasure each e-mail address must be found. */
function undetectable(path: string, gone: readonly ErasedUser[]): readonly string[] {
  const bytes = readFileSync(path);
  return gone
    .filter(({ texts }) => !bytes.includes(texts[1] ?? ''))
    .map(({ user: id }) => `the e-mail address of ${id} is not in the file`);
}

/** Data of erased users that is left, and other records that changed. */
function erasureErrors(
  path: string,
  before: DatabaseContent,
  gone: readonly ErasedUser[],
): readonly string[] {
  const bytes = readFileSync(path);
  const { records } = readContent(path);
  const ids = new Set(gone.map(({ user: id }) => id));
  const isGone = ([id, value]: readonly [string, string]) => ids.has(id) || ids.has(JSON.parse(value)[0]);
  const found = gone.flatMap(({ user: id, texts }) => [
    ...(records.has(id) ? [`${id} is still there`] : []),
    ...texts.filter((text) => bytes.includes(text)).map((text) => `${text} of ${id} is in the file`),
  ]);
  const lost = [...before.records].filter(
    (record) => !isGone(record) && records.get(record[0]) !== record[1],
  );
  return [...found, ...lost.map(([id]) => `${id} was not erased and has changed`)];
}

function ratesOf(spans: readonly Span[]): Pick<BackupRunReport, 'rates' | 'backupMs'> {
  const rateOf = (chosen: readonly Span[]): number => {
    const sum = (of: 'writes' | 'ms') => chosen.reduce((total, span) => total + span[of], 0);
    return Math.round((sum('writes') / Math.max(1, sum('ms'))) * 1_000);
  };
  const duringBackup = spans.filter(({ isDuringBackup }) => isDuringBackup);
  const times = duringBackup.map(({ ms }) => ms).sort((one, other) => one - other);
  return {
    rates: {
      duringBackup: rateOf(duringBackup),
      withoutBackup: rateOf(spans.filter(({ isDuringBackup }) => !isDuringBackup)),
    },
    backupMs: Math.round(times[Math.floor(times.length / 2)] ?? 0),
  };
}
