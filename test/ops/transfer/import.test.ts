import { describe, expect, test } from 'bun:test';
import { Fault } from '../../../src/model/fault.ts';
import type { Uuid } from '../../../src/model/id.ts';
import { LIMITS } from '../../../src/model/limits.ts';
import {
  oidcProfile,
  oidcProfileInfo,
  passwordProfileInfo,
  realm,
  user,
} from '../../../src/model/resources.ts';
import {
  bytesOf,
  importCounts,
  type Json,
  meta,
  mintId,
  realmLines,
  realmRows,
  runImport,
  runImportFrom,
} from '../../support/import_fixtures.ts';
import { ofRecord } from '../../support/log_rows.ts';
import { startService } from '../../support/service.ts';

const service = await startService();
const db = service.db;

const changes = (realmId: Uuid) => db.engine.records.changes(realmId, 0, 1_000);

describe('an import of a realm', () => {
  const { ids, lines, all } = realmLines();
  const base = `/v2/authentication-realms/${ids.realm}/user-authentication-info/${ids.user}`;
  const linkPath = `${base}/user-authentication-oidc-profile-info/${ids.link}`;
  const namePath = `${base}/user-authentication-password-profile-info/${ids.name}`;

  test('imported records are read over HTTP with their identifiers and times', async () => {
    const report = await runImport(db, all);
    expect(report).toEqual({
      counts: importCounts(6, 0, 0, 0),
      resumeLine: undefined,
      error: undefined,
      ignored: new Map(),
      mapped: new Map(),
      refusals: [],
    });
    const token = await service.token('profile-infos:read');
    const link = (await (await service.get(linkPath, token)).json()) as Json;
    expect(link.data).toEqual({
      id: ids.link,
      type: oidcProfileInfo.type,
      subject: lines.link.subject,
      issuer: lines.link.issuer,
      oidc_profile_id: ids.oidc,
      meta,
    });
    const name = (await (await service.get(namePath, token)).json()) as Json;
    expect(name.data).toEqual({
      id: ids.name,
      type: passwordProfileInfo.type,
      username: lines.name.username,
      password_profile_id: ids.passwords,
      meta,
    });
  });

  test('an import stores one change for each record, without personal values, and does not touch users', async () => {
    const found = await changes(ids.realm);
    expect(found.map(({ event, id, user: of }) => [event, id, of])).toEqual([
      ['authentication-realm.created', ids.realm, undefined],
      ['oidc-profile.created', ids.oidc, undefined],
      ['password-profile.created', ids.passwords, undefined],
      ['user-authentication-info.created', ids.user, ids.user],
      ['user-authentication-oidc-profile-info.created', ids.link, ids.user],
      ['user-authentication-password-profile-info.created', ids.name, ids.user],
    ]);
    expect(found.every(({ actor }) => actor === 'import')).toBe(true);
    const text = JSON.stringify(found);
    for (const value of ['Jane', 'subject-', 'name-', 'argon2', 'of-the-provider', 'https:']) {
      expect(text).not.toContain(value);
    }
    const jane = await db.engine.records.get(user, [ids.realm, ids.user]);
    expect(jane?.updated_at).toBe(Date.parse(meta.updated_at));
  });

  test('an import fills in the origin, keeps the slash at the end of an issuer, and seals the secret', async () => {
    const shop = await db.engine.records.get(realm, [ids.realm]);
    const store = await db.engine.access.storeId();
    expect(shop?.origin).toEqual({ data: { id: store, type: 'account_authentication_settings' } });
    const login = await db.engine.records.get(oidcProfile, [ids.realm, ids.oidc]);
    expect(login?.issuer).toBe('https://login.example.com/');
    const [row] = await service.database.query<{ client_secret_sealed: Uint8Array }>(
      `select client_secret_sealed from oidc_profile where ${ofRecord(service.database.address.engine)}`,
      ids.oidc,
    );
    const location = {
      table: 'oidc_profile',
      column: 'client_secret_sealed',
      realm: ids.realm,
      id: ids.oidc,
    };
    const sealed = row?.client_secret_sealed ?? new Uint8Array();
    expect(Buffer.from(sealed).includes('of-the-provider')).toBe(false);
    expect(db.keyring.open('oidc-client-secret', location, sealed)).toBe('of-the-provider');
  });

  test('a repeated import changes nothing, whatever the letter case of its identifiers', async () => {
    const before = await realmRows(service.database, []);
    const upper = all.map((line) => ({ ...line, id: String(line.id).toUpperCase() }));
    const silent = all.map(({ meta, client_secret, password_hash, ...line }) => ({
      ...line,
      meta: { issuer: (meta as Json).issuer },
    }));
    for (const isUpsert of [false, true]) {
      for (const source of [all, upper, silent]) {
        expect((await runImport(db, source, { isUpsert })).counts).toEqual(importCounts(0, 6, 0, 0));
      }
    }
    expect(await realmRows(service.database, [])).toEqual(before);
    expect(await changes(ids.realm)).toHaveLength(6);
  });
});

describe('the order of imported lines', () => {
  test('a line before its parent or profile is refused, and imported when the file is imported again', async () => {
    const { lines } = realmLines();
    const source = [lines.user, lines.realm, lines.link, lines.user, lines.link, lines.oidc];
    const report = await runImport(db, source);
    expect(report.counts).toEqual(importCounts(3, 0, 0, 3));
    expect(report.refusals).toEqual([
      'line 1: its authentication-realm does not exist',
      'line 3: its user-authentication-info does not exist',
      'line 5: oidc_profile_id names a record that the realm does not have',
    ]);
    expect((await runImport(db, source)).counts).toEqual(importCounts(1, 5, 0, 0));
  });

  test('a line with a profile of another realm is refused', async () => {
    const [here, there] = [realmLines(), realmLines()];
    await runImport(db, [...there.all, here.lines.realm, here.lines.user]);
    const foreign = { ...here.lines.link, oidc_profile_id: there.ids.oidc };
    expect((await runImport(db, [foreign])).refusals).toEqual([
      'line 1: oidc_profile_id names a record that the realm does not have',
    ]);
  });
});

describe('the imported file', () => {
  test('an import accepts a byte order mark, CRLF, empty lines and a missing last newline', async () => {
    for (const pieceBytes of [1, 7, 1 << 20]) {
      const { all } = realmLines();
      const text = `\ufeff${all.map((line) => JSON.stringify(line)).join('\r\n\r\n\n')}`;
      const report = await runImport(db, Buffer.from(text), { pieceBytes });
      expect([report.counts, report.refusals]).toEqual([importCounts(6, 0, 0, 0), []]);
    }
  });

  test('line numbers count empty lines', async () => {
    expect((await runImport(db, ['', '', '{'])).refusals).toEqual(['line 3: is not JSON']);
  });

  test('an empty file and a file of newlines import no records', async () => {
    for (const source of [[], ['', '']])
      expect((await runImport(db, source)).counts).toEqual(importCounts(0, 0, 0, 0));
  });

  test('a line of 1 MiB is refused, and the next line is imported', async () => {
    const { lines } = realmLines();
    const long = JSON.stringify({ ...lines.realm, name: 'x'.repeat(1 << 20) });
    for (const pieceBytes of [1_000, 1 << 22]) {
      const report = await runImport(db, [long, realmLines().lines.realm], { pieceBytes });
      expect(report.refusals).toEqual(['line 1: is longer than 65536 bytes']);
      expect(report.counts.imported).toBe(1);
    }
  });

  test('a line of exactly 64 KiB is imported, and one byte more is refused', async () => {
    const padded = (bytes: number): string => {
      const line = { ...realmLines().lines.realm, ignored: '' };
      return JSON.stringify({ ...line, ignored: 'x'.repeat(bytes - JSON.stringify(line).length) });
    };
    const report = await runImport(db, [
      padded(LIMITS.importLineBytesMax),
      padded(LIMITS.importLineBytesMax + 1),
    ]);
    expect([report.counts.imported, report.refusals]).toEqual([1, ['line 2: is longer than 65536 bytes']]);
  });

  test('a line with invalid UTF-8 is refused with its number', async () => {
    const { lines } = realmLines();
    const broken = Buffer.from(`${JSON.stringify({ ...lines.realm, name: 'caf#' })}\n`, 'latin1');
    broken[broken.indexOf('#')] = 0xe9;
    const valid = Buffer.from(`${JSON.stringify(lines.realm)}\n`);
    const report = await runImport(db, Buffer.concat([broken, valid]));
    expect([report.counts, report.refusals]).toEqual([importCounts(1, 0, 0, 1), ['line 1: is not UTF-8']]);
  });
});

describe('import --on-error abort', () => {
  test('an import stops at the first refused line, keeps the lines before it, and names the resume line', async () => {
    const { ids, lines } = realmLines();
    const third = { ...lines.user, id: mintId() };
    for (const bad of ['{', { ...lines.user, name: 'another' }]) {
      const source = [lines.realm, lines.user, bad, third];
      const report = await runImport(db, source, { stopAtFirst: true });
      expect(report.refusals).toHaveLength(1);
      expect([report.resumeLine, report.counts.refused]).toEqual([3, 1]);
      expect(await db.engine.records.get(user, [ids.realm, ids.user])).toBeDefined();
      expect(await db.engine.records.get(user, [ids.realm, third.id])).toBeUndefined();
    }
    const rest = await runImport(db, [lines.realm, lines.user, '{', third], {
      stopAtFirst: true,
      fromLine: 4,
    });
    expect([rest.counts, rest.resumeLine]).toEqual([importCounts(1, 0, 0, 0), undefined]);
  });

  test('an import stops at the first of several refused lines in one commit', async () => {
    const { lines } = realmLines();
    const differs = { ...lines.realm, name: 'another' };
    const report = await runImport(db, [lines.realm, differs, '{'], { stopAtFirst: true });
    expect(report.refusals).toEqual(['line 2: differs from the stored record in name']);
  });

  test('a signal ends an import after the current commit', async () => {
    const { lines } = realmLines();
    const stop = new AbortController();
    const users = Array.from({ length: 2 * LIMITS.importCommitLines }, () => ({
      ...lines.user,
      id: mintId(),
    }));
    const report = await runImport(db, [lines.realm, ...users], {
      signal: stop.signal,
      onProgress: () => stop.abort(),
      pieceBytes: 1 << 20,
    });
    expect(report.counts).toEqual(importCounts(LIMITS.importCommitLines, 0, 0, 0));
    expect(report.resumeLine).toBe(LIMITS.importCommitLines + 1);
  });
});

describe('refused lines of a missing commit are reported when the import is resumed', () => {
  const source = () => {
    const { lines, all } = realmLines();
    return { all: ['{', { type: 'nothing' }, ...all], first: lines.realm };
  };

  test('an import ended by a signal before a commit reports its refused lines when it is resumed', async () => {
    const stop = new AbortController();
    const { all } = source();
    // The signal comes while lines are read, after the two refused ones.
    const lines = (async function* () {
      yield Buffer.concat(all.slice(0, 3).map((line) => bytesOf([line])));
      stop.abort();
      yield bytesOf(all.slice(3));
    })();
    const report = await runImportFrom(db, lines, { signal: stop.signal });
    expect([report.counts, report.refusals, report.resumeLine]).toEqual([importCounts(0, 0, 0, 0), [], 1]);
    const resumed = await runImport(db, all, { fromLine: 1 });
    expect([resumed.counts, resumed.refusals.length]).toEqual([importCounts(6, 0, 0, 2), 2]);
  });

  test('an import ended by a full disk before a commit counts no refused lines', async () => {
    const { all } = source();
    const full = new Fault('unavailable', [], new Error('disk full'));
    const { records } = db.engine;
    const stop = new AbortController();
    const store = {
      get: records.get,
      async load(): Promise<never> {
        stop.abort();
        throw full;
      },
    };
    const report = await runImport(db, all, { store, signal: stop.signal });
    expect([report.counts, report.refusals, report.resumeLine]).toEqual([importCounts(0, 0, 0, 0), [], 1]);
    expect(report.error).toBe(full);
  });
});

test('an import retries while the database is busy, and a signal during that names the resume line', async () => {
  const [waiting, stopped] = [realmLines(), realmLines()];
  const release = await service.database.lockWriters();
  const stop = new AbortController();
  const reports = Promise.all([
    runImport(db, waiting.all),
    runImport(db, stopped.all, { signal: stop.signal, fromLine: 2 }),
  ]);
  await Bun.sleep(LIMITS.storeWaitMsMax / 2);
  stop.abort();
  await Bun.sleep(LIMITS.storeWaitMsMax / 2 + 1_500);
  await release();
  const [first, second] = await reports;
  expect([first.counts, first.error]).toEqual([importCounts(6, 0, 0, 0), undefined]);
  expect([second.counts, second.resumeLine]).toEqual([importCounts(0, 0, 0, 0), 2]);
  expect(second.error?.code).toBe('unavailable');
}, 300_000);
