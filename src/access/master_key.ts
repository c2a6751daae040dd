import {
  closeSync,
  existsSync,
  fsyncSync,
  linkSync,
  openSync,
  readFileSync,
  rmSync,
  writeSync,
} from 'node:fs';
import { dirname } from 'node:path';
import { Refusal } from '../domain/fault.ts';
import type { Ambient } from '../domain/id.ts';
import { MASTER_KEY_BYTES } from './keyring.ts';

/** Where the master key comes from: said by the operator, or a file beside the database. */
export type MasterKeySource =
  | { readonly from: 'value'; readonly value: string }
  | { readonly from: 'file'; readonly path: string }
  | { readonly from: 'beside'; readonly path: string }
  | { readonly from: 'nowhere' };

/** Reads 32 bytes written as base64url, base64 or hex. */
export function parseMasterKey(raw: string): Uint8Array | undefined {
  const text = raw.trim();
  if (/^[0-9a-fA-F]{64}$/.test(text)) return Buffer.from(text, 'hex');
  if (!/^[A-Za-z0-9+/_-]{43}=?$/.test(text)) return undefined;
  const bytes = Buffer.from(text, 'base64url');
  return bytes.length === MASTER_KEY_BYTES ? bytes : undefined;
}

/**
 * The master key, made where it may be: beside a SQLite database that has never had one. `hasProof` says that the
 * database was already given a key, so that a lost file is told, not replaced. `made` is set when a file was made.
 */
export function obtainMasterKey(
  source: MasterKeySource,
  hasProof: boolean,
  ambient: Ambient,
): { readonly key: Uint8Array; readonly made?: string } {
  switch (source.from) {
    case 'value':
      return { key: parsed(source.value, 'AUTHREALM_MASTER_KEY') };
    case 'file':
      return { key: parsed(readKeyFile(source.path), source.path) };
    case 'nowhere':
      return { key: ambient.randomBytes(MASTER_KEY_BYTES) };
    case 'beside': {
      if (existsSync(source.path)) return { key: parsed(readKeyFile(source.path), source.path) };
      if (hasProof) throw keyLost(source.path);
      const made = createKeyFile(source.path, ambient);
      const key = parsed(readKeyFile(source.path), source.path);
      return made ? { key, made: source.path } : { key };
    }
  }
}

function parsed(raw: string, where: string): Uint8Array {
  const key = parseMasterKey(raw);
  if (!key)
    throw new Refusal(`${where} holds no master key: it must be 32 bytes written as base64url or hex`);
  return key;
}

function readKeyFile(path: string): string {
  try {
    return readFileSync(path, 'utf8');
  } catch (error) {
    throw new Refusal(`the master key file ${path} cannot be read: ${(error as Error).message}`);
  }
}

function keyLost(path: string): Refusal {
  return new Refusal(
    `the master key file ${path} is missing, and this database was made with one: put it back, or name the key by ` +
      'AUTHREALM_MASTER_KEY_FILE or AUTHREALM_MASTER_KEY',
  );
}

/** Makes the file whole or not at all; answers false when somebody else was first. */
function createKeyFile(path: string, ambient: Ambient): boolean {
  const draft = `${path}.${ambient.mintId()}`;
  try {
    writeDurably(draft, `${Buffer.from(ambient.randomBytes(MASTER_KEY_BYTES)).toString('base64url')}\n`);
    linkSync(draft, path);
    syncFolder(dirname(path));
    return true;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'EEXIST') return false;
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

function syncFolder(path: string): void {
  const folder = openSync(path, 'r');
  try {
    fsyncSync(folder);
  } finally {
    closeSync(folder);
  }
}
