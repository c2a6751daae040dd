import { Database } from 'bun:sqlite';
import { existsSync, realpathSync, statSync } from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import type { LogKeys } from '../../audit/keys.ts';
import type { Erasure } from '../../domain/erasure.ts';
import { Refusal } from '../../domain/fault.ts';
import { syncPath } from '../../durable.ts';
import type { Program } from '../migrations.ts';
import { writeCopy } from '../sqlite/copy.ts';
import type { Archiver } from './archiver.ts';
import { withDrafts } from './drafts.ts';
import { applyErasures, type OpenKept } from './erasures.ts';
import type { Examined } from './examination.ts';
import { copyHashing } from './hashing.ts';
import { type Hold, holdDatabase, inUse } from './hold.ts';
import { holdersOf } from './holders.ts';
import { type Manifest, manifestBeside } from './manifest.ts';
import { proveAlone, putInto, removeSecondNames, replace } from './swap.ts';

/** What is to be restored, and over what. */
export interface RestoreOrder {
  readonly backup: string;
  readonly database: string;
  /** A database that is there is kept under another name. */
  readonly replaces: boolean;
  /** False for a file that no manifest speaks for. */
  readonly hasManifest: boolean;
  /** Throws Refusal unless the master keys of a database are given. Answers the keys of its log, if it has one. */
  readonly proveKeys: (path: string) => Promise<LogKeys | undefined>;
  /** Those that are known outside of any database, as these keys signed them. Throws Refusal where they did not. */
  readonly erasuresBy: (keys: LogKeys | undefined) => Promise<readonly Erasure[]>;
  readonly openKept: OpenKept;
}

export interface Restored {
  readonly examined: Examined;
  /** When the backup was taken; undefined without a manifest. */
  readonly takenAt: string | undefined;
  /** Erasures that the backup did not know of, and how many of their users it held. */
  readonly erased: { readonly applied: number; readonly users: number };
  /** Where the database is now that was there; undefined where there was none. */
  readonly aside: string | undefined;
  /** The database that was there could not be read: what was erased there is not known. */
  readonly isOldUnread: boolean;
}

/** Told how many bytes of how many were read. */
export type OnBytes = (done: number, total: number) => void;

/**
 * Puts a backup in the place of a database, once it was looked through and nobody who was erased is in it any more. Until
 * then the database that is there is not touched. Throws Refusal with what to do.
 */
export async function restore(
  order: RestoreOrder,
  program: Program,
  archiver: Archiver,
  onBytes: OnBytes,
): Promise<Restored> {
  const { backup } = order;
  const path = existsSync(order.database) ? realpathSync(order.database) : resolve(order.database);
  const manifest = judgeBackup(order, path);
  judgePlace(order, path);
  return withDrafts(path, program.ambient, async (folder) => {
    const draft = join(folder, 'restored.db');
    await fetchBackup({ backup, draft, manifest }, onBytes);
    const examined = await archiver.examine(draft, `the backup ${backup}`, program.version);
    const keys = await naming(backup, () => {
      if (manifest) proveSame(manifest, examined);
      return order.proveKeys(draft);
    });
    const told = await order.erasuresBy(keys);
    const hold = takeHold(path);
    try {
      const knowsUntil = manifest ? Date.parse(manifest.taken_at) : program.ambient.now();
      const erasing = { draft, knowsUntil, folder, erasures: known(told, hold), open: order.openKept };
      const complete = await eraseAgain(erasing, program, archiver);
      syncPath(complete.path);
      const aside = hold && replace(path, complete.path, program.ambient.now());
      if (!hold) putInto(path, complete.path);
      return {
        examined: complete.examined ?? examined,
        takenAt: manifest?.taken_at,
        erased: complete.erased,
        aside,
        isOldUnread: hold !== undefined && hold.erasures === undefined,
      };
    } finally {
      hold?.release();
    }
  });
}

/** Undefined where there is no database. */
function takeHold(path: string): Hold | undefined {
  if (!existsSync(path)) return undefined;
  removeSecondNames(path);
  return holdDatabase(path);
}

/** What can be said of the backup before anything of it is read. */
function judgeBackup({ backup, hasManifest }: RestoreOrder, path: string): Manifest | undefined {
  const found = statSync(backup, { throwIfNoEntry: false });
  if (!found) throw new Refusal(`there is no backup ${backup}`);
  if (!found.isFile()) throw new Refusal(`${backup} is no file: name the backup itself`);
  if (existsSync(path) && statSync(path).ino === found.ino && statSync(path).dev === found.dev)
    throw new Refusal(`${backup} is the database itself: name a backup of it`);
  const log = statSync(`${backup}-wal`, { throwIfNoEntry: false });
  if (log && log.size > 0) {
    throw new Refusal(
      `${backup}-wal lies beside it and holds commits: that is a database, or a part of one. Make a backup of it by ` +
        'authrealm backup',
    );
  }
  const manifest = hasManifest ? manifestBeside(backup) : undefined;
  if (manifest && manifest.bytes !== found.size) {
    throw new Refusal(
      `the backup ${backup}: it has ${found.size} bytes, its manifest says ${manifest.bytes}: it was cut, or is another one`,
    );
  }
  return manifest;
}

/** What stands in the way before anything was read, so that nobody waits for a refusal. */
function judgePlace({ replaces }: RestoreOrder, path: string): void {
  const folder = dirname(path);
  if (!existsSync(folder)) throw new Refusal(`there is no folder ${folder}: make it, with mode 0700`);
  if (!existsSync(path)) {
    proveAlone(path);
    return;
  }
  if (!statSync(path).isFile()) throw new Refusal(`${path} is no file`);
  if (!replaces) {
    throw new Refusal(
      `there is a database at ${path}, and nothing is overwritten: with --replace it is kept under another name`,
    );
  }
  const holders = holdersOf(path) ?? [];
  if (holders.length > 0) throw inUse(path, holders);
}

interface Fetched {
  readonly backup: string;
  readonly draft: string;
  readonly manifest: Manifest | undefined;
}

/** What is looked through and served is this copy: whatever happens to the backup meanwhile. */
async function fetchBackup({ backup, draft, manifest }: Fetched, onBytes: OnBytes): Promise<void> {
  const total = statSync(backup).size;
  let done = 0;
  const sha256 = await copyHashing(backup, draft, (count) => {
    done += count;
    onBytes(done, total);
  });
  if (manifest && manifest.sha256 !== sha256) {
    throw new Refusal(`the backup ${backup}: its SHA-256 is not the one in its manifest: it is damaged`);
  }
}

function proveSame(manifest: Manifest, { schema, storeId, rows }: Examined): void {
  const isSame =
    manifest.schema === schema && manifest.store_id === storeId && Bun.deepEquals(manifest.rows, rows);
  if (!isSame) throw new Refusal('it does not hold what its manifest says');
}

/** Runs what speaks of a file without naming it, or by another name. */
async function naming<T>(backup: string, work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    if (!(error instanceof Refusal)) throw error;
    throw new Refusal(`the backup ${backup}: ${error.message}`, { cause: error });
  }
}

/** All erasures that anybody knows of: of each user the last one. */
function known(told: readonly Erasure[], hold: Hold | undefined): readonly Erasure[] {
  const all = [...told, ...(hold?.erasures ?? [])].toSorted((one, other) => one.at - other.at);
  return [...new Map(all.map((erasure) => [`${erasure.realm} ${erasure.user}`, erasure])).values()];
}

interface Erasing {
  readonly draft: string;
  readonly knowsUntil: number;
  readonly folder: string;
  readonly erasures: readonly Erasure[];
  readonly open: OpenKept;
}

interface Complete {
  readonly path: string;
  readonly erased: Restored['erased'];
  /** Where it is no longer what the backup was. */
  readonly examined?: Examined;
}

/** Where anybody was removed, what is served is written anew: pages keep nothing of them. */
async function eraseAgain(
  { draft, knowsUntil, folder, erasures, open }: Erasing,
  program: Program,
  archiver: Archiver,
): Promise<Complete> {
  const erased = await applyErasures({ path: draft, knowsUntil }, erasures, open, program.ambient);
  if (erased.applied === 0) return { path: draft, erased };
  const path = join(folder, 'complete.db');
  const db = new Database(draft, { readwrite: true });
  try {
    writeCopy(db, path);
  } finally {
    db.close(false);
  }
  return { path, erased, examined: await archiver.examine(path, 'what was restored', program.version) };
}
