import { describe, expect, test } from 'bun:test';
import type { Uuid } from '../../../src/model/id.ts';
import { oidcProfile, oidcProfileInfo, user } from '../../../src/model/resources.ts';
import {
  importCounts,
  type Json,
  meta,
  mintId,
  realmLines,
  realmRows,
  runImport,
} from '../../support/import_fixtures.ts';
import { startService } from '../../support/service.ts';

const service = await startService();
const db = service.db;

const changes = (realmId: Uuid) => db.engine.records.changes(realmId, 0, 1_000);

describe('import --upsert', async () => {
  const { ids, lines, all } = realmLines();
  await runImport(db, all);
  const upsert = (...source: Json[]) => runImport(db, source, { isUpsert: true });

  test('an upsert replaces a record, with a new revision and a change that names the members', async () => {
    const before = await db.engine.records.get(user, [ids.realm, ids.user]);
    const moved = { ...lines.user, meta: undefined, email: 'j@example.com', family_name: 'Roe' };
    const at = Date.now();
    expect((await upsert(moved)).counts).toEqual(importCounts(0, 0, 1, 0));
    const after = await db.engine.records.get(user, [ids.realm, ids.user]);
    expect(after).toMatchObject({ name: 'Jane Doe', email: 'j@example.com', family_name: 'Roe' });
    expect(after?.created_at).toBe(before?.created_at as number);
    expect(after?.updated_at).toBeGreaterThanOrEqual(at);
    expect(after?.revision).not.toBe(before?.revision as never);
    const last = (await changes(ids.realm)).at(-1);
    expect(last).toMatchObject({
      event: 'user-authentication-info.updated',
      members: ['email', 'family_name'],
    });
    expect(last?.revision).toBe(after?.revision as never);
    expect((await upsert(moved)).counts).toEqual(importCounts(0, 1, 0, 0));
  });

  test('an upsert takes the times in the line', async () => {
    const later = { ...lines.link, meta: { ...meta, updated_at: '2023-01-01T00:00:00.000Z' } };
    expect((await upsert(later)).counts).toEqual(importCounts(0, 0, 1, 0));
    const stored = await db.engine.records.get(oidcProfileInfo, [ids.realm, ids.user, ids.link]);
    expect(stored?.updated_at).toBe(Date.parse('2023-01-01T00:00:00.000Z'));
    expect(stored?.created_at).toBe(Date.parse(meta.created_at));
  });

  test('an upsert keeps a secret that is not in the line, and replaces one that is', async () => {
    const { client_secret: _, ...silent } = lines.oidc;
    const location = {
      table: 'oidc_profile',
      column: 'client_secret_sealed',
      realm: ids.realm,
      id: ids.oidc,
    };
    const secret = async (): Promise<string> => {
      const row = (await realmRows(service.database, [])).find(({ id }) => id === ids.oidc);
      return db.keyring.open('oidc-client-secret', location, row?.client_secret_sealed as Uint8Array);
    };
    expect((await upsert({ ...silent, name: 'Renamed' })).counts).toEqual(importCounts(0, 0, 1, 0));
    expect(await secret()).toBe('of-the-provider');
    expect((await upsert({ ...lines.oidc, name: 'Renamed', client_secret: 'another' })).counts.replaced).toBe(
      1,
    );
    expect(await secret()).toBe('another');
    const { password_hash, ...hashless } = lines.name;
    expect((await upsert({ ...hashless, username: 'renamed' })).counts.replaced).toBe(1);
    const row = (await realmRows(service.database)).find(({ id }) => id === ids.name);
    expect(row).toMatchObject({ username: 'renamed', username_key: 'renamed', password_hash });
  });

  test('an upsert of another discovery URL is refused unless the line has the client secret', async () => {
    const { ids: own, lines: fresh } = realmLines();
    await runImport(db, [fresh.realm, fresh.oidc]);
    const issuer = 'https://other.example';
    const moved = (line: Json) => ({
      ...line,
      ...{ discovery_url: `${issuer}/.well-known/openid-configuration`, meta: { ...meta, issuer } },
    });
    const report = await upsert(moved({ ...fresh.oidc, client_secret: undefined }));
    expect(report.refusals).toEqual([
      'line 1: differs from the stored record in discovery_url, issuer; client_secret must be stated as well',
    ]);
    const stored = await db.engine.records.get(oidcProfile, [own.realm, own.oidc]);
    expect(stored?.issuer).toBe(fresh.oidc.meta.issuer);
    expect((await upsert(moved(fresh.oidc))).counts).toEqual(importCounts(0, 0, 1, 0));
  });

  test('an upsert of a password hash clears password_normalised', async () => {
    const row = async () => (await realmRows(service.database)).find(({ id }) => id === ids.name);
    const known = { ...lines.name, username: 'renamed', password_normalised: true };
    expect((await upsert(known)).counts.replaced).toBe(1);
    expect(await row()).toMatchObject({ password_normalised: 1 });
    const { password_normalised: _, ...silent } = known;
    expect((await upsert(silent)).counts.unchanged).toBe(1);
    expect(await row()).toMatchObject({ password_normalised: 1 });
    const another = lines.name.password_hash.replace('m=19456', 'm=19457');
    expect((await upsert({ ...silent, password_hash: another })).counts.replaced).toBe(1);
    expect(await row()).toMatchObject({ password_hash: another, password_normalised: null });
    expect((await upsert(silent)).counts.replaced).toBe(1);
  });

  test('an upsert never moves a record to another realm, user or profile', async () => {
    const [other, elsewhere] = [{ ...lines.user, id: mintId() }, realmLines()];
    const second = { ...lines.oidc, id: mintId() };
    const secondPasswords = { ...lines.passwords, id: mintId() };
    await upsert(other, second, secondPasswords, ...elsewhere.all);
    const before = await realmRows(service.database, []);
    const report = await upsert(
      { ...lines.link, user_authentication_info_id: other.id },
      { ...lines.link, oidc_profile_id: second.id },
      { ...lines.name, user_authentication_info_id: other.id },
      { ...lines.name, password_profile_id: secondPasswords.id, username: 'renamed' },
    );
    expect(report.refusals.map((refusal) => refusal.replace(/^line \d: /, ''))).toEqual([
      'another record of the realm has the same id',
      expect.stringContaining('oidc_profile_id cannot change'),
      'another record of the realm has the same id',
      expect.stringContaining('password_profile_id cannot change'),
    ] as never);
    expect(await realmRows(service.database, [])).toEqual(before);
  });

  test('an upsert refuses a unique value of another record', async () => {
    const second = { ...lines.link, id: mintId(), subject: 'second' };
    await upsert(second);
    const report = await upsert({ ...second, subject: lines.link.subject });
    expect(report.refusals).toEqual(['line 1: another record of the realm has the same issuer and subject']);
  });
});
