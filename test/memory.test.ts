import { Database } from 'bun:sqlite';
import { afterAll, beforeAll, describe, expect, test } from 'bun:test';
import { join } from 'node:path';
import { type Keyring, openKeyring, proofOf } from '../src/access/keyring.ts';
import { systemAmbient } from '../src/ambient.ts';
import type { Memory, Patch } from '../src/directory/store.ts';
import { Fault } from '../src/domain/fault.ts';
import { LIMITS } from '../src/domain/limits.ts';
import { oidcProfile } from '../src/domain/resources.ts';
import { type Engine, openEngine } from '../src/store/open.ts';
import { type Ground, groundWrites, LANDED, land, mint, put } from './contract/ground.ts';
import { freshFolder } from './kit.ts';

const keyringOf = () => openKeyring(systemAmbient.randomBytes(32), systemAmbient);
const now = systemAmbient.now();
const path = join(freshFolder(), 'memory.db');
let engine: Engine;
let ids: Ground;
const first = keyringOf();

beforeAll(async () => {
  engine = await openEngine({ engine: 'sqlite', path }, 'auto', { version: 'test', ambient: systemAmbient });
  ids = { realm: mint(), user: mint(), oidc: mint(), passwords: mint() };
  for (const write of groundWrites(ids).filter(({ resource }) => resource !== oidcProfile))
    await put(engine.records, write);
  await engine.access.insertKeyCheck(proofOf(first), now);
});
afterAll(() => engine.close());

/** An answer that is sealed by a keyring. */
function memory(keyring: Keyring): Memory {
  const place = { realm: ids.realm, clientId: 'client', key: keyring.digest('idempotency-key', mint()) };
  const at = { table: 'idempotency', column: 'answer_sealed', realm: ids.realm, id: place.key };
  return {
    ...place,
    body: keyring.digest('request-body', '{}'),
    status: 201,
    recordId: mint(),
    user: ids.user,
    sealed: keyring.seal('remembered-answer', at, '{"status":201}'),
    at: now,
    expiresAt: now + LIMITS.idempotencyMsMax,
  };
}

const keep = (kept: Memory) => engine.records.commit([], [], kept);
const unavailable = async (work: Promise<unknown>) => {
  const fault = await work.catch((error: unknown) => error);
  expect(fault).toBeInstanceOf(Fault);
  expect((fault as Fault).code).toBe('unavailable');
};

describe('answers and the master key', () => {
  test('what was sealed by a key without proof is refused, not stored', async () => {
    const stranger = keyringOf();
    const kept = memory(stranger);
    await unavailable(keep(kept));
    expect(await engine.records.recall(kept, now)).toBeUndefined();
    expect(await keep(memory(first))).toEqual(LANDED);
  });

  test('so is a secret in a patch', async () => {
    const profile = groundWrites(ids)[1];
    if (!profile) throw new Error('no profile');
    const { client_secret, ...members } = profile.record;
    await put(engine.records, { ...profile, record: members as typeof profile.record });
    const at = { table: 'oidc_profile', column: 'client_secret_sealed', realm: ids.realm, id: ids.oidc };
    const patching = (keyring: Keyring) => {
      const secret = keyring.seal('oidc-client-secret', at, 'of the provider');
      const patch: Patch = {
        members: { client_secret: secret },
        revision: systemAmbient.mintRevision(),
        at: now,
      };
      return land(engine.records, { op: 'patch', resource: oidcProfile, key: profile.key, patch });
    };
    await unavailable(patching(keyringOf()));
    expect((await patching(first)).kind).toBe('landed');
    const stored = await engine.sealed.values(undefined, undefined, 10);
    expect(stored.map(({ place, sealed }) => first.open('oidc-client-secret', place, sealed))).toEqual([
      'of the provider',
    ]);
  });

  test('a change of the key is not held up by answers: they go with the proof of theirs', async () => {
    const next = keyringOf();
    const [old, young] = [memory(first), memory(next)];
    await keep(old);
    expect(await engine.sealed.addKeyCheck(proofOf(next), now)).toBe(true);
    await keep(young);
    // Only what is no answer must be sealed again.
    const values = await engine.sealed.values(next.keyId, undefined, 10);
    expect(values.map(({ place }) => place.table)).toEqual(['oidc_profile']);
    expect(await engine.sealed.retireOtherKeys(next.keyId)).toBe(false);
    expect(await engine.records.recall(old, now)).toEqual(old);
    await engine.sealed.replace(
      values.map(({ place, sealed: seen }) => {
        const plain = first.open('oidc-client-secret', place, seen);
        return { place, seen, sealed: next.seal('oidc-client-secret', place, plain) };
      }),
    );
    expect(await engine.sealed.retireOtherKeys(next.keyId)).toBe(true);
    expect(await engine.records.recall(old, now)).toBeUndefined();
    expect(await engine.records.recall(young, now)).toEqual(young);
    await unavailable(keep(memory(first)));
  });
});

test('nothing about answers walks the table: a client with very many costs what one with few does', () => {
  const db = new Database(path, { readonly: true });
  const planOf = (sql: string): string =>
    db
      .prepare<{ detail: string }, string[]>(`explain query plan ${sql}`)
      .all(...Array(sql.split('?').length - 1).fill(''))
      .map(({ detail }) => detail)
      .join('; ');
  for (const [condition, index] of [
    ['realm_id = ? and client_id = ? and key = ? and expires_at > ?', 'sqlite_autoindex_idempotency_1'],
    ['client_id = ? and ordinal <= ?', 'idempotency_ordinal'],
    ['expires_at <= ? order by expires_at limit ?', 'idempotency_expiry'],
    ['realm_id = ? and user_id = ? limit ?', 'idempotency_of_user'],
    ['realm_id = ? and record_id = ? limit ?', 'idempotency_of_record'],
    ['realm_id = ? limit ?', 'sqlite_autoindex_idempotency_1'],
  ]) {
    expect(planOf(`select rowid from idempotency where ${condition}`)).toMatch(
      new RegExp(`^SEARCH idempotency USING (COVERING )?INDEX ${index} `),
    );
  }
  expect(planOf('select max(ordinal) from idempotency where client_id = ?')).toMatch(
    /SEARCH idempotency USING COVERING INDEX idempotency_ordinal/,
  );
  db.close();
});
