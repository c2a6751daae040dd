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
import { fileErrorText, newFileErrorText } from '../../platform/file_error.ts';
import { syncPath } from '../../platform/fsync.ts';
import { MASTER_KEY_BYTES, openKeyring } from './keyring.ts';

/** The source of the master key: an environment variable, a file, or a file next to the SQLite database. */
export type MasterKeySource =
  | { readonly from: 'value'; readonly value: string }
  | { readonly from: 'file'; readonly path: string }
  | { readonly from: 'default'; readonly path: string }
  | { readonly from: 'nowhere' }
  | { readonly from: 'operator' };

/** Reads 32 bytes written as base64url, base64 or hex. */
export function parseMasterKey(raw: string): Uint8Array | undefined {
  const text = raw.trim();
  if (/^[0-9a-fA-F]{64}$/.test(text)) return Buffer.from(text, 'hex');
  // 43 characters of base64url encode 32 bytes.
  return /^[A-Za-z0-9+/_-]{43}=?$/.test(text) ? Buffer.from(text, 'base64url') : undefined;
}

/**
 * Loads the configured master keys. Creates a key file only next to a SQLite database that never had a key:
 * `hasKeyCheck` is true where the database stores a key check, so that a lost file is reported and not replaced.
 * `createdPath` names a file that was created. A file contains one key, or one per line while the master key
 * is being changed. Throws Refusal.
 */
export function obtainMasterKeys(
  source: MasterKeySource,
  hasKeyCheck: boolean,
  clock: Clock,
): { readonly keys: readonly Uint8Array[]; readonly createdPath?: string } {
  switch (source.from) {
    case 'value':
    case 'file':
    case 'operator':
      return { keys: readMasterKeys(source) };
    case 'nowhere':
      return { keys: [clock.randomBytes(MASTER_KEY_BYTES)] };
    case 'default': {
      const isThere = existsSync(source.path);
      if (!isThere && hasKeyCheck) throw keyFileMissing(source.path);
      const createdPath = !isThere && createKeyFile(source.path, clock);
      const keys = readKeyFile(source.path);
      removeDrafts(source.path);
      return createdPath ? { keys, createdPath: source.path } : { keys };
    }
  }
}

/** The configured master keys, which must exist. Changes no file. Throws Refusal. */
export function readMasterKeys(source: MasterKeySource): readonly Uint8Array[] {
  switch (source.from) {
    case 'value':
      return [parseKeyOrRefuse(source.value, 'AUTHREALM_MASTER_KEY')];
    case 'default':
      if (!existsSync(source.path)) throw keyFileMissing(source.path);
      return readKeyFile(source.path);
    case 'file':
      return readKeyFile(source.path);
    case 'operator':
      throw keyNotConfigured();
    case 'nowhere':
      throw new Refusal('the master key of an in-memory database ends with its process');
  }
}

/** Creates a file with a new key. Throws Refusal if the file exists: a key is never overwritten. */
export function createNewKeyFile(path: string, clock: Clock): void {
  if (!existsSync(path) && createKeyFile(path, clock)) return;
  throw new Refusal(`${path} already exists, and a key file is never overwritten: name another file`);
}

/**
 * Throws Refusal where the operator must configure a key and has not; called before anything is opened or
 * created.
 */
export function assertKeyConfigured({ from }: Pick<MasterKeySource, 'from'>): void {
  if (from === 'operator') throw keyNotConfigured();
}

function keyNotConfigured(): Refusal {
  return new Refusal(
    'this database needs a master key file: create one with "authrealm keys make FILE", and pass ' +
      '--master-key-file FILE to every process',
  );
}

function parseKeyOrRefuse(raw: string, where: string): Uint8Array {
  const key = parseMasterKey(raw);
  if (!key)
    throw new Refusal(
      `${where} is not a valid master key: expected 32 bytes as base64url or hex, as "authrealm keys make" writes them`,
    );
  return key;
}

/** Removes drafts left by processes killed while they created the key file; their keys are unused. */
function removeDrafts(path: string): void {
  try {
    for (const name of readdirSync(dirname(path))) {
      const id = name.startsWith(`${basename(path)}.`) ? name.slice(basename(path).length + 1) : '';
      if (parseUuid(id)) rmSync(join(dirname(path), name), { force: true });
    }
  } catch {
    // In a read-only directory they stay; `doctor` reports them.
  }
}

/** The keys of a file, one per line. */
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
    throw new Refusal(`the master key file ${path} cannot be read: ${fileErrorText(error)}`);
  }
}

/** Reads the key file again in a running process. Creates nothing. */
export function rereadMasterKeys(source: MasterKeySource): readonly Uint8Array[] {
  return source.from === 'file' || source.from === 'default' ? readKeyFile(source.path) : [];
}

/** The next master key: the one in this file, which is created if missing. */
export function obtainNextKey(
  path: string,
  clock: Clock,
): { readonly key: Uint8Array; readonly isCreated: boolean } {
  const isCreated = !existsSync(path) && createKeyFile(path, clock);
  const [key, ...more] = readKeyFile(path);
  if (!key || more.length > 0) throw new Refusal(`${path} must contain exactly one key, the new one`);
  return { key, isCreated };
}

/**
 * The file that keeps a key removed from the key file. It is never overwritten, and only an operator deletes
 * it.
 */
export function oldKeyFile(path: string, keyId: string): string {
  return `${path}.old-${keyId}`;
}

/**
 * Replaces the content of a key file atomically, keeping owner and mode. Each removed key is saved to a file
 * of its own, because older backups need it.
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
    `the master key file ${path} is missing, and this database was created with one: restore it, or set ` +
      'AUTHREALM_MASTER_KEY_FILE or AUTHREALM_MASTER_KEY to the key',
  );
}

/** Creates the file atomically; returns false when another process created it first. */
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
    // The process that created it first may also have removed this draft.
    if (code === 'EEXIST' || (code === 'ENOENT' && existsSync(path))) return false;
    throw new Refusal(`the master key file ${path} cannot be created: ${newFileErrorText(path, error)}`);
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
