import { Database } from 'bun:sqlite';
import { describe, expect, test } from 'bun:test';
import { chmodSync, existsSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { readSettings } from '../../src/app/config/parse.ts';
import { openDatabase } from '../../src/app/open_database.ts';
import { Refusal } from '../../src/model/fault.ts';
import { systemClock } from '../../src/ops/process/clock.ts';
import { AUTHREALM, startCommand } from '../support/processes.ts';
import { freshFolder } from '../support/service.ts';

describe('the key file next to a database', () => {
  const open = (database: string, environment: Record<string, string> = {}) =>
    openDatabase(readSettings({ database: `sqlite:${database}` }, environment), systemClock);

  const operatorKey = () => Buffer.from(systemClock.randomBytes(32)).toString('base64url');

  function change(database: string, sql: string): void {
    const db = new Database(database);
    db.run(sql);
    db.close();
  }

  async function createDatabase() {
    const database = join(freshFolder(), 'keyed.db');
    const db = await open(database);
    db.engine.close();
    return { database, keyFile: `${database}.key`, db };
  }

  test('the key file next to a database is created once with mode 0600 and logged once', async () => {
    const { database, keyFile, db } = await createDatabase();
    expect(db.createdKeyFile).toBe(keyFile);
    for (const file of [database, keyFile]) expect(statSync(file).mode & 0o777).toBe(0o600);
    const reopened = await open(database);
    expect(reopened.createdKeyFile).toBeUndefined();
    expect(reopened.keyring.keyId).toBe(db.keyring.keyId);
    reopened.engine.close();
  });

  test('of twenty concurrent starts one creates the key file, and all use it', async () => {
    const database = join(freshFolder(), 'first.db');
    const start = async () => {
      const service = startCommand([AUTHREALM, 'serve', '--port', '0', '--database', `sqlite:${database}`]);
      await service.line(/^listening on/);
      expect(await service.stop()).toBe(0);
      return service.output();
    };
    const outputs = await Promise.all(Array.from({ length: 20 }, start));
    expect(outputs.filter((output) => output.includes('created the master key'))).toHaveLength(1);
  }, 300_000);

  test('a start with the key of the operator continues a first start that was killed before it created tables', async () => {
    const database = join(freshFolder(), 'killed.db');
    const killed = new Database(database, { create: true });
    killed.run('pragma journal_mode = wal');
    killed.close();
    expect(statSync(database).size).toBeGreaterThan(0);
    const db = await open(database, { AUTHREALM_MASTER_KEY: operatorKey() });
    expect(await db.engine.access.keyChecks()).toHaveLength(1);
    db.engine.close();
  });

  test('a missing key file is reported and not replaced', async () => {
    const { database, keyFile } = await createDatabase();
    rmSync(keyFile);
    expect(open(database)).rejects.toThrow(/is missing.*restore it/);
  });

  test('a missing key file is reported and not replaced where the proof of the master key was removed', async () => {
    const { database, keyFile } = await createDatabase();
    rmSync(keyFile);
    change(database, 'delete from keyring');
    expect(await open(database).catch(String)).toMatch(/is missing.*restore it/);
    expect(existsSync(keyFile)).toBe(false);
  });

  test('without a proof only the key that opens what is sealed is accepted, and stores its proof', async () => {
    const { database, keyFile, db } = await createDatabase();
    const key = readFileSync(keyFile, 'utf8');
    change(database, 'delete from keyring');
    writeFileSync(keyFile, operatorKey());
    expect(await open(database).catch(String)).toMatch(/key \S+ does not open its/);
    writeFileSync(keyFile, key);
    const { engine, keyring } = await open(database);
    expect(keyring.keyId).toBe(db.keyring.keyId);
    expect((await engine.access.keyChecks()).map(({ keyId }) => keyId)).toEqual([keyring.keyId]);
    engine.close();
  });

  test('a key file with another key, or without a valid key, is refused', async () => {
    const { database, keyFile, db } = await createDatabase();
    writeFileSync(keyFile, Buffer.from(systemClock.randomBytes(32)).toString('hex'));
    const refusal = await open(database).catch((error: unknown) => error);
    expect(refusal).toBeInstanceOf(Refusal);
    expect(String(refusal)).toContain(db.keyring.keyId);
    writeFileSync(keyFile, 'not a key');
    expect(open(database)).rejects.toThrow(/32 bytes/);
  });

  test('a master key in the environment takes precedence and must be the same key', async () => {
    const { database, keyFile } = await createDatabase();
    const key = readFileSync(keyFile, 'utf8').trim();
    rmSync(keyFile);
    (await open(database, { AUTHREALM_MASTER_KEY: key })).engine.close();
    const moved = join(freshFolder(), 'moved.key');
    writeFileSync(moved, key);
    chmodSync(moved, 0o400);
    (await open(database, { AUTHREALM_MASTER_KEY_FILE: moved })).engine.close();
    const other = Buffer.from(systemClock.randomBytes(32)).toString('hex');
    expect(open(database, { AUTHREALM_MASTER_KEY: other })).rejects.toThrow(/does not match this database/);
    expect(open(database, { AUTHREALM_MASTER_KEY: 'short' })).rejects.toThrow(/32 bytes/);
    expect(open(database, { AUTHREALM_MASTER_KEY_FILE: '/nowhere/key' })).rejects.toThrow(/cannot be read/);
  });

  test('the master key is not stored in the database', async () => {
    const { database, keyFile } = await createDatabase();
    const key = Buffer.from(readFileSync(keyFile, 'utf8').trim(), 'base64url');
    const bytes = readFileSync(database);
    for (const spelling of ['hex', 'base64', 'base64url'] as const) {
      expect(bytes.includes(key.toString(spelling))).toBe(false);
    }
    expect(bytes.includes(key)).toBe(false);
  });
});
