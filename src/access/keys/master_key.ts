import { existsSync, linkSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { dirname } from 'node:path';
import { Refusal } from '../../model/fault.ts';
import { fileErrorText, newFileErrorText } from '../../model/file_error.ts';
import type { Clock } from '../../model/id.ts';
import { syncPath } from '../../sql/fsync.ts';
import { MASTER_KEY_BYTES } from './keyring.ts';

/**
 * The source of the master key: an environment variable, a file, or a file next to the SQLite database; and the file of the
 * key before, while it is being changed.
 */
export type MasterKeySource =
  | ({ readonly from: 'value'; readonly value: string } & PreviousKey)
  | ({ readonly from: 'file' | 'default'; readonly path: string } & PreviousKey)
  | { readonly from: 'nowhere' }
  | { readonly from: 'operator' };

interface PreviousKey {
  readonly previousPath?: string | undefined;
}

/** Reads 32 bytes written as base64url, base64 or hex. */
export function parseMasterKey(raw: string): Uint8Array | undefined {
  const text = raw.trim();
  if (/^[0-9a-fA-F]{64}$/.test(text)) return Buffer.from(text, 'hex');
  // 43 characters of base64url encode 32 bytes.
  return /^[A-Za-z0-9+/_-]{43}=?$/.test(text) ? Buffer.from(text, 'base64url') : undefined;
}

/**
 * Loads the configured master keys, the current one first. Creates a key file only next to a SQLite database that never had
 * a key: `hasKeyCheck` is true where the database stores a key check, so that a lost file is reported and not replaced.
 * `createdPath` names a file that was created. Throws Refusal.
 */
export function obtainMasterKeys(
  source: MasterKeySource,
  hasKeyCheck: boolean,
  clock: Clock,
): { readonly keys: readonly Uint8Array[]; readonly createdPath?: string } {
  if (source.from === 'nowhere') return { keys: [clock.randomBytes(MASTER_KEY_BYTES)] };
  const isNew = source.from === 'default' && !hasKeyCheck && !existsSync(source.path);
  const isCreated = isNew && createKeyFile(source.path, clock);
  const keys = readMasterKeys(source);
  return isCreated ? { keys, createdPath: source.path } : { keys };
}

/** The configured master keys, which must exist, the current one first. Changes no file. Throws Refusal. */
export function readMasterKeys(source: MasterKeySource): readonly Uint8Array[] {
  assertKeyConfigured(source);
  if (source.from === 'nowhere')
    throw new Refusal('the master key of an in-memory database ends with its process');
  if (source.from === 'default' && !existsSync(source.path))
    throw new Refusal(
      `the master key file ${source.path} is missing, and this database was created with one: restore it, or set ` +
        'AUTHREALM_MASTER_KEY_FILE or AUTHREALM_MASTER_KEY to the key',
    );
  const key =
    source.from === 'value'
      ? parseKeyOrRefuse(source.value, 'AUTHREALM_MASTER_KEY')
      : readKeyFile(source.path);
  return source.previousPath === undefined ? [key] : [key, readKeyFile(source.previousPath)];
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
export function assertKeyConfigured<S extends MasterKeySource>(
  source: S,
): asserts source is Exclude<S, { readonly from: 'operator' }> {
  if (source.from !== 'operator') return;
  throw new Refusal(
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

function readKeyFile(path: string): Uint8Array {
  let content: string;
  try {
    content = readFileSync(path, 'utf8');
  } catch (error) {
    throw new Refusal(`the master key file ${path} cannot be read: ${fileErrorText(error)}`);
  }
  return parseKeyOrRefuse(content, path);
}

/** Creates the file atomically; returns false when another process created it first. */
function createKeyFile(path: string, clock: Clock): boolean {
  const draft = `${path}.${clock.mintId()}`;
  try {
    const text = Buffer.from(clock.randomBytes(MASTER_KEY_BYTES)).toString('base64url');
    writeFileSync(draft, `${text}\n`, { flag: 'wx', mode: 0o600 });
    syncPath(draft);
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
