import {
  chmodSync,
  chownSync,
  existsSync,
  linkSync,
  readdirSync,
  renameSync,
  rmSync,
  statSync,
} from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { Refusal } from '../../domain/fault.ts';
import { syncPath } from '../../durable.ts';
import { publish } from '../sqlite/copy.ts';
import { COMPANIONS } from './holders.ts';
import { instantName } from './shelf.ts';

const ASIDE = '.replaced-';

/** Gives a complete file the name of a database that is not there. Throws Refusal where there is one by now. */
export function putInto(path: string, complete: string): void {
  proveAlone(path);
  if (!publish(complete, path)) throw new Refusal(`${path} was made meanwhile: nothing was restored`);
}

/**
 * Puts a complete file in the place of a database, in one step: killed before it the old one is there, after it the new
 * one. The old one is kept under another name, which is answered. Nobody may have it open.
 */
export function replace(path: string, complete: string, now: number): string {
  const aside = `${path}${ASIDE}${instantName(now)}`;
  const { uid, gid, mode } = statSync(path);
  chownSync(complete, uid, gid);
  chmodSync(complete, mode & 0o777);
  syncPath(complete);
  // Only a database that could not be read has any of these still. They are kept with it before they go.
  const companions = COMPANIONS.filter((ending) => existsSync(path + ending));
  for (const ending of companions) linkSync(path + ending, aside + ending);
  linkSync(path, aside);
  syncPath(dirname(path));
  for (const ending of companions) rmSync(path + ending);
  if (companions.length > 0) syncPath(dirname(path));
  proveAlone(path);
  renameSync(complete, path);
  syncPath(dirname(path));
  return aside;
}

/** Throws Refusal where files of the engine would be taken for those of the database that is put there. */
export function proveAlone(path: string): void {
  const left = COMPANIONS.map((ending) => path + ending).find((file) => existsSync(file));
  if (left === undefined) return;
  throw new Refusal(
    `${left} belongs to another database than the one that is restored: put that database back, or move ${left} away`,
  );
}

/** Removes second names of a database that a replacement left which was killed before its step. */
export function removeSecondNames(path: string): void {
  const { ino, dev, nlink } = statSync(path);
  if (nlink === 1) return;
  const folder = dirname(path);
  for (const name of readdirSync(folder)) {
    if (!name.startsWith(basename(path) + ASIDE)) continue;
    const other = statSync(join(folder, name));
    if (other.ino === ino && other.dev === dev) rmSync(join(folder, name));
  }
}
