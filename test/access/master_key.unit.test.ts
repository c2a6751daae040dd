import { describe, expect, test } from 'bun:test';
import { existsSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import {
  assertKeyConfigured,
  createNewKeyFile,
  obtainMasterKeys,
  parseMasterKey,
  readMasterKeys,
} from '../../src/access/keys/master_key.ts';
import { Refusal } from '../../src/model/fault.ts';
import type { Uuid } from '../../src/model/id.ts';
import { systemClock } from '../../src/ops/process/clock.ts';
import { freshFolder } from '../support/folder.ts';

const key = () => Buffer.from(systemClock.randomBytes(32));
const lineOf = (bytes: Uint8Array) => `${Buffer.from(bytes).toString('base64url')}\n`;
const freshPath = () => join(freshFolder(), 'a.key');

/** A file with this key. */
function fileOf(bytes: Uint8Array): string {
  const path = freshPath();
  writeFileSync(path, lineOf(bytes));
  return path;
}

function refusalOf(run: () => unknown): string {
  try {
    run();
  } catch (error) {
    if (error instanceof Refusal) return error.message;
    throw error;
  }
  return 'not refused';
}

/** A clock with which another process creates the file first; `id` becomes part of the draft's name. */
function racingClock(path: string, id: string, first: Uint8Array) {
  return {
    ...systemClock,
    mintId: () => {
      if (!existsSync(path)) writeFileSync(path, lineOf(first));
      return id as Uuid;
    },
  };
}

describe('sources of the master key', () => {
  test.each<[string, (raw: Buffer) => string]>([
    ['hex', (raw) => raw.toString('hex')],
    ['upper-case hex', (raw) => raw.toString('hex').toUpperCase()],
    ['base64url', (raw) => raw.toString('base64url')],
    ['base64', (raw) => raw.toString('base64')],
    ['base64url with a line break', lineOf],
  ])('a master key is parsed as %s, and not with a character more or less', (_, spell) => {
    const raw = Buffer.from(key());
    const text = spell(raw).trim();
    expect(Buffer.from(parseMasterKey(spell(raw)) ?? [])).toEqual(raw);
    for (const wrong of [text.slice(1), `${text}0`, `.${text.slice(1)}`, `${text}==`])
      expect(parseMasterKey(wrong)).toBeUndefined();
  });

  test('a master key comes by value, by file, or is generated for a database in memory', () => {
    const one = key();
    const obtain = (source: Parameters<typeof obtainMasterKeys>[0]) =>
      obtainMasterKeys(source, true, systemClock);
    expect(obtain({ from: 'value', value: lineOf(one) })).toEqual({ keys: [one] });
    expect(obtain({ from: 'file', path: fileOf(one) })).toEqual({ keys: [one] });
    expect(obtain({ from: 'nowhere' }).keys.map(({ length }) => length)).toEqual([32]);
    expect(refusalOf(() => obtain({ from: 'value', value: 'x' }))).toContain('AUTHREALM_MASTER_KEY is not');
    expect(refusalOf(() => obtain({ from: 'file', path: freshPath() }))).toContain('cannot be read');
  });

  test('a service on PostgreSQL does not start without a master key', () => {
    const message = 'this database needs a master key file';
    expect(refusalOf(() => obtainMasterKeys({ from: 'operator' }, false, systemClock))).toContain(message);
    expect(refusalOf(() => assertKeyConfigured({ from: 'operator' }))).toContain(message);
    expect(refusalOf(() => assertKeyConfigured({ from: 'file', path: 'key' }))).toBe('not refused');
  });

  test('a key file has one key', () => {
    const path = freshPath();
    writeFileSync(path, `\n  ${lineOf(key())}\n`);
    expect(readMasterKeys({ from: 'file', path })).toHaveLength(1);
    for (const text of ['', '\n \n', `${lineOf(key())}x\n`, lineOf(key()) + lineOf(key())]) {
      writeFileSync(path, text);
      expect(refusalOf(() => readMasterKeys({ from: 'file', path }))).toContain('is not a valid master key');
    }
  });

  test('the key before follows the current one, wherever that is', () => {
    const [one, before] = [key(), key()];
    const previousPath = fileOf(before);
    const path = fileOf(one);
    const sources = [
      { from: 'value', value: lineOf(one), previousPath },
      { from: 'file', path, previousPath },
      { from: 'default', path, previousPath },
    ] as const;
    for (const source of sources) {
      expect(readMasterKeys(source)).toEqual([one, before]);
      expect(obtainMasterKeys(source, true, systemClock)).toEqual({ keys: [one, before] });
    }
    const missing = { from: 'file', path, previousPath: freshPath() } as const;
    expect(refusalOf(() => readMasterKeys(missing))).toContain('cannot be read');
  });
});

describe('the key file next to a database', () => {
  const obtain = (path: string, hasProof: boolean, clock = systemClock) =>
    obtainMasterKeys({ from: 'default', path }, hasProof, clock);

  test('a first key file is created with mode 0600, and read afterwards', () => {
    const path = freshPath();
    const { keys, createdPath } = obtain(path, false);
    expect([keys.length, createdPath, statSync(path).mode & 0o777]).toEqual([1, path, 0o600]);
    expect(obtain(path, false)).toEqual({ keys });
    expect(obtain(path, true)).toEqual({ keys });
    expect(readdirSync(dirname(path))).toEqual([basename(path)]);
  });

  test('a lost key file is reported and not replaced', () => {
    const path = freshPath();
    expect(refusalOf(() => obtain(path, true))).toContain('is missing');
    expect(existsSync(path)).toBe(false);
  });

  test.each([
    ['its draft still exists', systemClock.mintId()],
    ['it removed the draft', 'gone/draft'],
  ])('the key file of a faster process is used: %s', (_, id) => {
    const [path, first] = [freshPath(), key()];
    expect(obtain(path, false, racingClock(path, id, first))).toEqual({ keys: [first] });
    expect(readFileSync(path, 'utf8')).toBe(lineOf(first));
  });

  test('a missing folder of the key file is reported', () => {
    const path = join(freshFolder(), 'none', 'a.key');
    expect(refusalOf(() => obtain(path, false))).toContain('cannot be created');
  });
});

test('createNewKeyFile creates a key file and never overwrites one', () => {
  const path = freshPath();
  createNewKeyFile(path, systemClock);
  const content = readFileSync(path, 'utf8');
  expect(parseMasterKey(content)).toBeDefined();
  expect(refusalOf(() => createNewKeyFile(path, systemClock))).toContain('already exists');
  expect(readFileSync(path, 'utf8')).toBe(content);
  const [other, first] = [freshPath(), key()];
  const clock = racingClock(other, systemClock.mintId(), first);
  expect(refusalOf(() => createNewKeyFile(other, clock))).toContain('already exists');
  expect(readFileSync(other, 'utf8')).toBe(lineOf(first));
});

test('an existing key file is used without creating a draft', () => {
  // The name of a draft would exceed 255 bytes.
  const [path, one] = [join(freshFolder(), 'k'.repeat(250)), key()];
  writeFileSync(path, lineOf(one));
  expect(obtainMasterKeys({ from: 'default', path }, true, systemClock)).toEqual({ keys: [one] });
  expect(refusalOf(() => createNewKeyFile(path, systemClock))).toContain('already exists');
});
