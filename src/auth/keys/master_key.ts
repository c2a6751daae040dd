import {
  chmodSync,
  chownSync,
  closeSync,
  existsSync,
  fsyncSync,
  linkSync,
  openSync,
  readdirSync,
  readFileSync,
  realpathSync,
  renameSync,
  rmSync,
  statSync,
  writeSync,
} from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { Refusal } from '../../domain/fault.ts';
import { type Clock, parseUuid } from '../../domain/id.ts';
import { syncPath } from '../../platform/fsync.ts';
import { MASTER_KEY_BYTES, openKeyring } from './keyring.ts';

/** Where the master key comes from: said by the operator, or a file beside the database. */
export type MasterKeySource =
  | { readonly from: 'value'; readonly value: string }
  | { readonly from: 'file'; readonly path: string }
  | { readonly from: 'beside'; readonly path: string }
  | { readonly from: 'nowhere' }
  | { readonly from: 'operator' };

/** Reads 32 bytes written as base64url, base64 or hex. */
export function parseMasterKey(raw: string): Uint8Array | undefined {
  const text = raw.trim();
  if (/^[0-9a-fA-F]{64}$/.test(text)) return Buffer.from(text, 'hex');
  // So many characters are so many bytes.
  return /^[A-Za-z0-9+/_-]{43}=?$/.test(text) ? Buffer.from(text, 'base64url') : undefined;
}

/**
 * The master keys that are given, made where it may be: beside a SQLite database that has never had one. `hasProof`
 * says that the database was already given a key, so that a lost file is told, not replaced. `made` is set when a file
 * was made. A file holds one key, or several, a line each, while the master key is being changed.
 */
export function obtainMasterKeys(
  source: MasterKeySource,
  hasProof: boolean,
  clock: Clock,
): { readonly keys: readonly Uint8Array[]; readonly createdPath?: string } {
  switch (source.from) {
    case 'value':
      return { keys: [parseKeyOrRefuse(source.value, 'AUTHREALM_MASTER_KEY')] };
    case 'file':
      return { keys: readKeyFile(source.path) };
    case 'operator':
      throw keyNotConfigured();
    case 'nowhere':
      return { keys: [clock.randomBytes(MASTER_KEY_BYTES)] };
    case 'beside': {
      const isThere = existsSync(source.path);
      if (!isThere && hasProof) throw keyFileMissing(source.path);
      const createdPath = !isThere && createKeyFile(source.path, clock);
      const keys = readKeyFile(source.path);
      removeDrafts(source.path);
      return createdPath ? { keys, createdPath: source.path } : { keys };
    }
  }
}

/** Makes a file with a new key. Throws Refusal where there is a file already: a key is never overwritten. */
export function createNewKeyFile(path: string, clock: Clock): void {
  if (!existsSync(path) && createKeyFile(path, clock)) return;
  throw new Refusal(`${path} is there already, and a key is never overwritten: name another file`);
}

/** Throws Refusal where the key is the operator's to give and none was, before anything is opened or made. */
export function assertKeyConfigured({ from }: Pick<MasterKeySource, 'from'>): void {
  if (from === 'operator') throw keyNotConfigured();
}

function keyNotConfigured(): Refusal {
  return new Refusal(
    'this database needs a master key, which is not kept beside it: authrealm keys make FILE makes one; give it by ' +
      '--master-key-file FILE to every process',
  );
}

function parseKeyOrRefuse(raw: string, where: string): Uint8Array {
  const key = parseMasterKey(raw);
  if (!key)
    throw new Refusal(`${where} holds no master key: it must be 32 bytes written as base64url or hex`);
  return key;
}

/** Removes what starts that were killed while they made the file have left: keys that nobody uses. */
function removeDrafts(path: string): void {
  try {
    for (const name of readdirSync(dirname(path))) {
      const id = name.startsWith(`${basename(path)}.`) ? name.slice(basename(path).length + 1) : '';
      if (parseUuid(id)) rmSync(join(dirname(path), name), { force: true });
    }
  } catch {
    // A folder that may not be changed keeps them; `doctor` tells of them.
  }
}

/** The keys of a file, a line each. */
function readKeyFile(path: string): readonly Uint8Array[] {
  const lines = contentOf(path)
    .split('\n')
    .filter((line) => line.trim() !== '');
  return (lines.length === 0 ? [''] : lines).map((line) => parseKeyOrRefuse(line, path));
}

function contentOf(path: string): string {
  try {
    return readFileSync(path, 'utf8');
  } catch (error) {
    throw new Refusal(`the master key file ${path} cannot be read: ${(error as Error).message}`);
  }
}

/** The keys as they are given now, to a process that was given some at its start. Makes nothing. */
export function rereadMasterKeys(source: MasterKeySource): readonly Uint8Array[] {
  return source.from === 'file' || source.from === 'beside' ? readKeyFile(source.path) : [];
}

/** The key that a change leads to: the one in this file, which is made where there is none. */
export function obtainNextKey(
  path: string,
  clock: Clock,
): { readonly key: Uint8Array; readonly isCreated: boolean } {
  const isCreated = !existsSync(path) && createKeyFile(path, clock);
  const [key, ...more] = readKeyFile(path);
  if (!key || more.length > 0) throw new Refusal(`${path} must hold one key, the new one`);
  return { key, isCreated };
}

/** The file that a key which leaves the key file goes to. It is never overwritten, and only an operator removes it. */
export function oldKeyFile(path: string, keyId: string): string {
  return `${path}.old-${keyId}`;
}

/**
 * Replaces the content of a key file, whole or not at all, with its owner and mode. A key that leaves it is kept in a
 * file of its own: older backups are opened by it.
 */
export function replaceKeyFile(named: string, keys: readonly Uint8Array[], clock: Clock): void {
  const path = realpathSync(named);
  const before = readKeyFile(path);
  const retained = new Set(keys.map(keyLine));
  const removed = before.filter((key) => !retained.has(keyLine(key)));
  if (removed.length === 0 && before.length === retained.size) return;
  const draft = `${path}.next-${clock.mintId()}`;
  try {
    for (const key of removed)
      createFile(oldKeyFile(path, openKeyring(key, clock).keyId), keyLine(key), clock);
    const { uid, gid, mode } = statSync(path);
    writeDurably(draft, [...retained].join(''));
    chownSync(draft, uid, gid);
    chmodSync(draft, mode & 0o777);
    renameSync(draft, path);
    syncPath(dirname(path));
  } catch (error) {
    rmSync(draft, { force: true });
    throw new Refusal(`the master key file ${named} cannot be replaced: ${(error as Error).message}`);
  }
}

/** A key as a line of a key file. */
function keyLine(key: Uint8Array): string {
  return `${Buffer.from(key).toString('base64url')}\n`;
}

function keyFileMissing(path: string): Refusal {
  return new Refusal(
    `the master key file ${path} is missing, and this database was made with one: put it back, or name the key by ` +
      'AUTHREALM_MASTER_KEY_FILE or AUTHREALM_MASTER_KEY',
  );
}

/** Makes the file whole or not at all; answers false when somebody else was first. */
function createKeyFile(path: string, clock: Clock): boolean {
  return createFile(path, keyLine(clock.randomBytes(MASTER_KEY_BYTES)), clock);
}

function createFile(path: string, content: string, clock: Clock): boolean {
  const draft = `${path}.${clock.mintId()}`;
  try {
    writeDurably(draft, content);
    linkSync(draft, path);
    syncPath(dirname(path));
    return true;
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    // Whoever was first may have removed the draft as well.
    if (code === 'EEXIST' || (code === 'ENOENT' && existsSync(path))) return false;
    throw new Refusal(`the master key file ${path} cannot be made: ${(error as Error).message}`);
  } finally {
    rmSync(draft, { force: true });
  }
}

function writeDurably(path: string, content: string): void {
  const file = openSync(path, 'wx', 0o600);
  try {
    writeSync(file, content);
    fsyncSync(file);
  } finally {
    closeSync(file);
  }
}
