import { describe, expect, test } from 'bun:test';
import { chmodSync, existsSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { openKeyring } from '../../src/auth/keys/keyring.ts';
import {
  assertKeyConfigured,
  createNewKeyFile,
  obtainMasterKeys,
  obtainNextKey,
  oldKeyFile,
  parseMasterKey,
  replaceKeyFile,
  rereadMasterKeys,
} from '../../src/auth/keys/master_key.ts';
import { Refusal } from '../../src/domain/fault.ts';
import type { Uuid } from '../../src/domain/id.ts';
import { systemClock } from '../../src/platform/clock.ts';
import { freshFolder } from '../support/folder.ts';

const key = () => Buffer.from(systemClock.randomBytes(32));
const lineOf = (bytes: Uint8Array) => `${Buffer.from(bytes).toString('base64url')}\n`;
const freshPath = () => join(freshFolder(), 'a.key');

/** A key file with these keys. */
function fileOf(...keys: readonly Uint8Array[]): string {
  const path = freshPath();
  writeFileSync(path, keys.map(lineOf).join(''));
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
    const [one, other] = [key(), key()];
    const obtain = (source: Parameters<typeof obtainMasterKeys>[0]) =>
      obtainMasterKeys(source, true, systemClock);
    expect(obtain({ from: 'value', value: lineOf(one) })).toEqual({ keys: [one] });
    expect(obtain({ from: 'file', path: fileOf(one, other) })).toEqual({ keys: [one, other] });
    expect(obtain({ from: 'nowhere' }).keys.map(({ length }) => length)).toEqual([32]);
    expect(refusalOf(() => obtain({ from: 'value', value: 'x' }))).toContain('AUTHREALM_MASTER_KEY is not');
    expect(refusalOf(() => obtain({ from: 'file', path: freshPath() }))).toContain('cannot be read');
  });

  test('a service on PostgreSQL does not start without a master key', () => {
    const message = 'this database needs a master key file';
    expect(refusalOf(() => obtainMasterKeys({ from: 'operator' }, false, systemClock))).toContain(message);
    expect(refusalOf(() => assertKeyConfigured({ from: 'operator' }))).toContain(message);
    expect(refusalOf(() => assertKeyConfigured({ from: 'file' }))).toBe('not refused');
  });

  test('blank lines of a key file are ignored, and a file without a key is refused', () => {
    const [one, other] = [key(), key()];
    const path = freshPath();
    writeFileSync(path, `\n${lineOf(one)}\n  \n${lineOf(other)}`);
    expect(rereadMasterKeys({ from: 'file', path })).toEqual([one, other]);
    for (const text of ['', '\n \n', `${lineOf(one)}x\n`]) {
      writeFileSync(path, text);
      expect(refusalOf(() => rereadMasterKeys({ from: 'file', path }))).toContain(
        'is not a valid master key',
      );
    }
  });

  test('a key file is read again, a key given by value is not', () => {
    const one = key();
    const path = fileOf(one);
    expect(rereadMasterKeys({ from: 'file', path })).toEqual([one]);
    expect(rereadMasterKeys({ from: 'default', path })).toEqual([one]);
    expect(rereadMasterKeys({ from: 'value', value: lineOf(one) })).toEqual([]);
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

  test('drafts of the key file are removed, other files are not', () => {
    const path = fileOf(key());
    const id = systemClock.mintId();
    const folder = dirname(path);
    const others = ['b.key', `b.key.${id}`, 'a.key.old-0123456789abcdef', `a.key.next-${id}`, 'a.key.mine'];
    for (const name of [`a.key.${id}`, ...others]) writeFileSync(join(folder, name), 'x');
    obtain(path, true);
    expect(readdirSync(folder).sort()).toEqual(['a.key', ...others].sort());
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
  expect(obtainNextKey(path, systemClock)).toEqual({ key: one, isCreated: false });
  expect(refusalOf(() => createNewKeyFile(path, systemClock))).toContain('already exists');
});

test('obtainNextKey creates a key file, or reads the one key of an existing file', () => {
  const path = freshPath();
  const { key: next, isCreated } = obtainNextKey(path, systemClock);
  expect([isCreated, lineOf(next)]).toEqual([true, readFileSync(path, 'utf8')]);
  expect(obtainNextKey(path, systemClock)).toEqual({ key: next, isCreated: false });
  const several = fileOf(key(), key());
  expect(refusalOf(() => obtainNextKey(several, systemClock))).toContain('must contain exactly one key');
});

describe('replaceKeyFile', () => {
  const [one, other, third] = [key(), key(), key()];
  const idOf = (each: Uint8Array) => openKeyring(each, systemClock).keyId;

  test.each<[string, Buffer[], Buffer[], Buffer[]]>([
    ['with an additional key', [one], [one, other], []],
    ['with another key', [one], [other], [one]],
    ['with one of its keys', [one, other], [other], [one]],
    ['with none of its keys', [one, other], [third], [one, other]],
    ['with each key once', [one, one], [one], []],
  ])('a key file is replaced %s, and removed keys are saved in files', (_, before, after, removed) => {
    const path = fileOf(...before);
    chmodSync(path, 0o640);
    replaceKeyFile(path, after, systemClock);
    expect([readFileSync(path, 'utf8'), statSync(path).mode & 0o777]).toEqual([
      after.map(lineOf).join(''),
      0o640,
    ]);
    expect(readdirSync(dirname(path)).sort()).toEqual(
      ['a.key', ...removed.map((each) => basename(oldKeyFile(path, idOf(each))))].sort(),
    );
    for (const each of removed) expect(readFileSync(oldKeyFile(path, idOf(each)), 'utf8')).toBe(lineOf(each));
  });

  test('a key file with the same keys is not replaced', () => {
    const path = fileOf(one, other);
    const { ino } = statSync(path);
    replaceKeyFile(path, [other, one], systemClock);
    expect([statSync(path).ino, readFileSync(path, 'utf8')]).toEqual([ino, lineOf(one) + lineOf(other)]);
  });

  test('a key file that cannot be replaced is reported and stays unchanged', () => {
    const path = fileOf(one);
    const failingClock = { ...systemClock, mintId: () => 'gone/draft' as Uuid };
    expect(refusalOf(() => replaceKeyFile(path, [one, other], failingClock))).toContain('cannot be replaced');
    expect([readdirSync(dirname(path)), readFileSync(path, 'utf8')]).toEqual([['a.key'], lineOf(one)]);
    rmSync(path);
  });
});
