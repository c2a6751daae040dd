import { describe, expect, test } from 'bun:test';
import { connect } from 'node:net';
import type { Uuid } from '../../../src/model/id.ts';
import { LIMITS } from '../../../src/model/limits.ts';
import { realm, user } from '../../../src/model/resources.ts';
import { EXPORT_START } from '../../../src/ops/transfer/export.ts';
import { bytesOf, type Json, mintId, realmLines, runImport } from '../../support/import_fixtures.ts';
import { errorsOf, PASSWORD_HASH, startService } from '../../support/service.ts';

/** Imports and exports over HTTP. */

const service = await startService();
const { db } = service;
const IMPORT = '/admin/v1/import';
const EXPORT = '/admin/v1/export';
const all = await service.client('transfer admin');
const token = await service.grant(all);
const encoder = new TextEncoder();

/** The lines of an answer: the rejected ones, and the counts. */
async function resultOf(answer: Response) {
  expect([answer.status, answer.headers.get('content-type')]).toEqual([200, 'application/x-ndjson']);
  const texts = (await answer.text()).trim().split('\n');
  const lines = texts.map((line) => JSON.parse(line) as Json);
  return { rejected: lines.slice(0, -1), end: lines.at(-1) ?? {} };
}

const send = (lines: readonly (Json | string)[], query = '', by = token) =>
  service.post(`${IMPORT}${query}`, by, Buffer.from(bytesOf(lines)));

const counts = (imported: number, unchanged: number, replaced: number, refused: number) => ({
  ...{ imported, unchanged, replaced, refused },
});

/** The entries of a log of the installation or a realm, oldest first. */
async function entriesOf(path: string): Promise<readonly Json[]> {
  const items: Json[] = [];
  for (let next: string | null = `/admin/v1${path}?page%5Blimit%5D=100`; next; ) {
    const page = (await (await service.get(next, token)).json()) as {
      data: Json[];
      links: { next: string | null };
    };
    items.push(...page.data);
    next = page.links.next;
  }
  return items;
}

const transfersIn = async () =>
  (await entriesOf('/log')).filter(({ what }) => /^records\./.test(String(what)));

/** A stream that the test feeds. */
function openStream() {
  const { readable, writable } = new TransformStream<Uint8Array, Uint8Array>();
  const writer = writable.getWriter();
  return {
    readable,
    write: (text: string) => writer.write(encoder.encode(text)),
    close: () => writer.close(),
  };
}

const countUsers = async (within: Uuid) => {
  const snapshot = await db.engine.records.openSnapshot();
  const { length } = await snapshot.scan(user, EXPORT_START, 1_000, within);
  snapshot.close();
  return length;
};

describe('an import over HTTP', () => {
  test('an import over HTTP stores its lines, answers the counts, and is an entry of the log with its digest', async () => {
    const { ids, lines } = realmLines();
    const { password_hash: _, ...name } = lines.name;
    const { client_secret: __, ...oidc } = lines.oidc;
    const source = [
      lines.realm,
      oidc,
      lines.passwords,
      lines.user,
      lines.link,
      name,
      '{',
      { ...lines.user, phone: 1 },
    ];
    const { rejected, end } = await resultOf(await send(source));
    expect(rejected).toEqual([{ line: 7, reason: 'is not JSON' }]);
    const bytes = bytesOf(source);
    const sha256 = new Bun.CryptoHasher('sha256').update(bytes).digest('hex');
    expect(end).toMatchObject({
      ...counts(6, 1, 0, 1),
      ignored: { phone: 1 },
      resume_line: null,
      dry_run: false,
    });
    expect(end).toMatchObject({ mapped: {}, sha256 });
    const entry = (await transfersIn()).at(-1);
    expect(entry).toMatchObject({ what: 'records.imported', actor: all.clientId, address: '127.0.0.1' });
    expect(entry?.detail).toMatchObject({ ...counts(6, 1, 0, 1), sha256 });
    const changes = await entriesOf(`/realms/${ids.realm}/log`);
    expect(changes).toHaveLength(6);
    for (const { actor, request_id } of changes)
      expect([actor, request_id]).toEqual([all.clientId, entry?.request_id]);
  });

  test('an import over HTTP refuses each member that only the command imports, by its name', async () => {
    const { lines } = realmLines();
    const { password_hash: _, ...name } = lines.name;
    const { client_secret: __, ...oidc } = lines.oidc;
    const wrong: readonly [Json, string][] = [
      [{ ...lines.realm, preset: false }, 'preset'],
      [{ ...lines.realm, prefix: 'shop' }, 'prefix'],
      [{ ...lines.realm, account_settings: {} }, 'account_settings'],
      [{ ...oidc, client_secret: 'of-the-provider' }, 'client_secret'],
      [{ ...name, password_hash: PASSWORD_HASH }, 'password_hash'],
      [{ ...name, password_normalised: true }, 'password_normalised'],
      [{ ...name, password_hash: null }, 'password_hash'],
    ];
    const { rejected, end } = await resultOf(await send(wrong.map(([line]) => line)));
    expect(rejected).toEqual(
      wrong.map(([, member], at) => ({
        line: at + 1,
        reason: `${member} is imported by the command "authrealm import" alone`,
      })),
    );
    expect(end).toMatchObject(counts(0, 0, 0, wrong.length));
  });

  test('a line in a realm that the caller may not write is refused as one whose realm does not exist', async () => {
    const [own, other] = [realmLines(), realmLines()];
    const { password_hash: _, ...name } = other.lines.name;
    await runImport(db, [own.lines.realm, other.lines.realm, other.lines.passwords, other.lines.user]);
    const limited = await service.token('transfer', new Set([own.ids.realm, mintId()]));
    const reject = async (line: Json) =>
      (await (await send([line], '?upsert=true', limited)).text()).split('\n')[0];
    const existing = await reject(other.lines.user);
    const absent = await reject({ ...other.lines.user, realm_id: mintId() });
    expect(existing).toBe('{"line":1,"reason":"its authentication-realm does not exist"}');
    expect(absent).toBe(existing);
    const link = await resultOf(await send([name], '', limited));
    expect(link.rejected).toEqual([{ line: 1, reason: 'its user-authentication-info does not exist' }]);
    const owned = { ...own.lines.realm, name: 'Renamed' };
    const renamed = await resultOf(await send([owned, own.lines.user], '?upsert=true', limited));
    expect(renamed.rejected).toEqual([{ line: 1, reason: 'needs access to all realms' }]);
    expect([renamed.end, await countUsers(own.ids.realm)]).toMatchObject([counts(1, 0, 0, 1), 1]);
  });

  test('a dry run over HTTP answers what the import would, and stores and logs nothing', async () => {
    const { ids, lines } = realmLines();
    await runImport(db, [lines.realm, lines.user]);
    const before = await transfersIn();
    const source = [{ ...lines.user, name: 'Renamed' }, { ...lines.user, id: mintId() }, '{'];
    const dry = await resultOf(await send(source, '?dry_run=true&upsert=true'));
    expect(dry.end).toMatchObject({ ...counts(1, 0, 1, 1), dry_run: true });
    expect([await transfersIn(), await countUsers(ids.realm)]).toEqual([before, 1]);
    const real = await resultOf(await send(source, '?upsert=true'));
    expect([real.rejected, real.end]).toEqual([dry.rejected, { ...dry.end, dry_run: false }]);
  });

  test('a CSV file is imported over HTTP with its map', async () => {
    const { ids, lines } = realmLines();
    await runImport(db, [lines.realm, lines.passwords]);
    const map = {
      constants: { realm_id: ids.realm, 'links.0.password_profile_id': ids.passwords },
      columns: { No: 'id', Name: ['name', 'links.0.username'], 'E-mail': 'email' },
    };
    const query = `?map=${encodeURIComponent(JSON.stringify(map))}`;
    const file = Buffer.from('No,Name,E-mail\r\n1,anna,"a@example.com"\r\n2,bo\r\n3,cy,none\r\n');
    const { rejected, end } = await resultOf(await service.post(`${IMPORT}${query}`, token, file));
    expect(rejected).toEqual([
      { line: 3, reason: 'has 2 cells, and the header row 3' },
      { line: 4, reason: 'email must be an e-mail address' },
      { line: 4, reason: 'its user-authentication-info does not exist' },
    ]);
    expect(end).toMatchObject(counts(2, 0, 0, 3));
    const hashed = {
      ...map,
      columns: { ...map.columns, Name: ['name', 'links.0.username', 'links.0.password_hash'] },
    };
    const refused = await resultOf(
      await service.post(`${IMPORT}?map=${encodeURIComponent(JSON.stringify(hashed))}`, token, file),
    );
    expect(refused.rejected).toContainEqual({
      line: 2,
      reason: 'password_hash is imported by the command "authrealm import" alone',
    });
  });

  test.each([
    ['a map that is no map', '?map=none', 'No\n1\n'],
    [
      'a map that names another column',
      `?map=${encodeURIComponent('{"columns":{"Number":"id"}}')}`,
      'No\n1\n',
    ],
    ['a flag that is neither true nor false', '?upsert=yes', ''],
  ])('an import over HTTP with %s is 400', async (_, query, text) => {
    const answer = await service.post(`${IMPORT}${query}`, token, Buffer.from(text));
    expect([answer.status, (await errorsOf(answer))[0]?.source?.parameter]).toEqual([
      400,
      query.includes('map') ? 'map' : 'upsert',
    ]);
  });

  test('an empty file is imported over HTTP', async () => {
    expect((await resultOf(await send([]))).end).toMatchObject(counts(0, 0, 0, 0));
  });

  test('rejected lines beyond the limit are counted and not listed', async () => {
    const wrong = Array.from({ length: LIMITS.uploadRejectionsMax + 5 }, () => '{');
    const { rejected, end } = await resultOf(await send(wrong));
    expect(rejected).toHaveLength(LIMITS.uploadRejectionsMax);
    expect(end).toMatchObject(counts(0, 0, 0, wrong.length));
  });

  test('a second import over HTTP during another one is 429, and lookups are answered meanwhile', async () => {
    const { ids, lines } = realmLines();
    const stream = openStream();
    const first = fetch(`${service.url}${IMPORT}`, {
      method: 'POST',
      headers: { Authorization: `Bearer ${token}` },
      body: stream.readable,
    });
    const users = Array.from({ length: LIMITS.uploadCommitLines }, () => ({ ...lines.user, id: mintId() }));
    await stream.write(Buffer.from(bytesOf([lines.realm, ...users])).toString());
    while ((await countUsers(ids.realm)) === 0) await Bun.sleep(5);
    const second = await send([]);
    expect([second.status, second.headers.get('retry-after')]).toEqual([429, '60']);
    expect((await errorsOf(second))[0]?.code).toBe('rate_limited');
    expect((await service.get('/healthz')).status).toBe(200);
    await stream.write(`${JSON.stringify(lines.user)}\n`);
    await stream.close();
    expect((await resultOf(await first)).end).toMatchObject(counts(users.length + 2, 0, 0, 0));
    expect(await countUsers(ids.realm)).toBe(users.length + 1);
    expect((await send([])).status).toBe(200);
  });

  test('an import over HTTP of more than 1 GiB is 413 before a byte is read', async () => {
    const { promise, resolve } = Promise.withResolvers<string>();
    const socket = connect({ host: '127.0.0.1', port: Number(new URL(service.url).port) });
    const size = 5 * 2 ** 30;
    socket.write(
      `POST ${IMPORT} HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer ${token}\r\nContent-Length: ${size}\r\n\r\n`,
    );
    socket.once('data', (part) => resolve(part.toString('latin1')));
    const text = await promise;
    socket.destroy();
    expect(text).toStartWith('HTTP/1.1 413');
    expect(text).toContain('upload_too_large');
    expect((await transfersIn()).at(-1)?.detail).toMatchObject({
      fault: 'upload_too_large',
      resume_line: 1,
    });
  });

  test('after a disconnect the committed lines of an import over HTTP stay, and the log has the first line to send again', async () => {
    const { ids, lines } = realmLines();
    await runImport(db, [lines.realm]);
    const users = Array.from({ length: LIMITS.uploadCommitLines }, () => ({ ...lines.user, id: mintId() }));
    const text = Buffer.from(
      bytesOf([...users, ...users.slice(0, 3).map((line) => ({ ...line, id: mintId() }))]),
    );
    const before = (await transfersIn()).length;
    const socket = connect({ host: '127.0.0.1', port: Number(new URL(service.url).port) });
    socket.on('error', () => undefined);
    socket.write(
      `POST ${IMPORT} HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer ${token}\r\nContent-Length: ${text.length + 1_000}\r\n\r\n`,
    );
    socket.write(text);
    while ((await countUsers(ids.realm)) < users.length) await Bun.sleep(5);
    socket.destroy();
    let entries = await transfersIn();
    while (entries.length === before) entries = await transfersIn();
    expect(entries.at(-1)?.detail).toMatchObject({
      ...counts(users.length, 0, 0, 0),
      ...{ resume_line: users.length + 1, fault: 'malformed' },
    });
    expect(await countUsers(ids.realm)).toBe(users.length);
    expect((await send([])).status).toBe(200);
  });
});

describe('an export over HTTP', () => {
  const lineTexts = async (answer: Response) => {
    expect(answer.status).toBe(200);
    return (await answer.text()).trim().split('\n').filter(Boolean);
  };

  test('an export over HTTP has no secret, and is an entry of the log with its digest', async () => {
    const { all: records } = realmLines();
    await runImport(db, records);
    const answer = await service.get(EXPORT, token);
    expect(answer.headers.get('content-type')).toBe('application/x-ndjson');
    const text = await answer.text();
    for (const { id } of records) expect(text).toContain(String(id));
    expect(text).not.toMatch(
      /argon2|client_secret|password_hash|password_normalised|"preset"|account_settings/,
    );
    const sha256 = new Bun.CryptoHasher('sha256').update(text).digest('hex');
    const lines = text.trim().split('\n').length;
    expect((await transfersIn()).at(-1)).toMatchObject({
      ...{ what: 'records.exported', actor: all.clientId },
      detail: { records: lines, realms: '*', sha256 },
    });
  });

  test('an export over HTTP that is imported over HTTP changes nothing', async () => {
    const answer = await service.get(EXPORT, token);
    const again = await service.post(IMPORT, token, Buffer.from(await answer.arrayBuffer()));
    const { rejected, end } = await resultOf(again);
    expect([rejected, end]).toMatchObject([[], { imported: 0, replaced: 0, refused: 0 }]);
    expect(Number(end.unchanged)).toBeGreaterThan(0);
  });

  test.each(['ndjson', 'csv'])(
    'an export over HTTP as %s has the realms of the caller alone, or a single one of them',
    async (format) => {
      const [first, second, other] = [realmLines(), realmLines(), realmLines()];
      for (const { all: records } of [first, second, other]) await runImport(db, records);
      const limited = await service.token('transfer', new Set([second.ids.realm, first.ids.realm, mintId()]));
      const url = `${EXPORT}?format=${format}`;
      const lines = await lineTexts(await service.get(url, limited));
      expect(lines).toHaveLength(format === 'csv' ? 5 : 12);
      const text = lines.join('\n');
      for (const id of [first, second].flatMap(({ ids }) => Object.values(ids))) expect(text).toContain(id);
      expect(text).not.toContain(other.ids.realm);
      expect(lines.filter((line) => line.startsWith('"realm_id"'))).toHaveLength(format === 'csv' ? 1 : 0);
      const nowhere = await service.token('transfer', new Set([mintId()]));
      const none = await lineTexts(await service.get(url, nowhere));
      expect(none).toHaveLength(format === 'csv' ? 1 : 0);
      const within = async (id: string) => lineTexts(await service.get(`${url}&realm=${id}`, limited));
      const single = await within(first.ids.realm.toUpperCase());
      expect(single).toHaveLength(format === 'csv' ? 3 : 6);
      for (const id of Object.values(first.ids)) expect(single.join()).toContain(id);
      expect(await within(other.ids.realm)).toEqual(none);
    },
  );

  test('an export over HTTP is a snapshot: it has no record that was written after its start', async () => {
    const answer = await service.get(EXPORT, token);
    const reader = (answer.body as ReadableStream<Uint8Array>).getReader();
    const first = await reader.read();
    const { ids, all: records } = realmLines();
    await runImport(db, records);
    let text = new TextDecoder().decode(first.value);
    for (let part = await reader.read(); !part.done; part = await reader.read())
      text += new TextDecoder().decode(part.value);
    expect(text).not.toContain(ids.realm);
    expect(await (await service.get(EXPORT, token)).text()).toContain(ids.realm);
  });

  test('HEAD of an export over HTTP starts none', async () => {
    const before = await transfersIn();
    const url = `${service.url}${EXPORT}?format=csv`;
    const headers = { Authorization: `Bearer ${token}` };
    const answer = await fetch(url, { method: 'HEAD', headers });
    expect([answer.status, answer.headers.get('content-type')]).toEqual([200, 'text/csv']);
    expect(await transfersIn()).toEqual(before);
    for (const query of ['format=xml', 'realm=shop'])
      expect((await service.get(`${EXPORT}?${query}`, token)).status).toBe(400);
  });

  test('an export over HTTP whose reader disconnects is logged as incomplete, and another one can start', async () => {
    const { ids, lines } = realmLines();
    const users = Array.from({ length: 20_000 }, () => ({
      ...lines.user,
      id: mintId(),
      name: 'x'.repeat(200),
    }));
    await runImport(db, [lines.realm, ...users]);
    const before = (await transfersIn()).length;
    const stop = new AbortController();
    const answer = await fetch(`${service.url}${EXPORT}`, {
      headers: { Authorization: `Bearer ${token}` },
      signal: stop.signal,
    });
    const reader = (answer.body as ReadableStream<Uint8Array>).getReader();
    await reader.read();
    const second = await service.get(EXPORT, token);
    expect([second.status, second.headers.get('retry-after')]).toEqual([429, '60']);
    stop.abort();
    await reader.read().catch(() => undefined);
    let entries = await transfersIn();
    while (entries.length === before) entries = await transfersIn();
    expect(entries.at(-1)?.detail).toMatchObject({ records: null });
    let third = await service.get(EXPORT, token);
    while (third.status === 429) third = await service.get(EXPORT, token);
    expect(await third.text()).toContain(ids.realm);
  });
});

test('imports and exports over HTTP need the scope transfer, which admin does not contain', async () => {
  const admin = await service.token('admin users:write');
  const answers = [await send([], '', admin), await service.get(EXPORT, admin)];
  expect(answers.map(({ status }) => status)).toEqual([403, 403]);
  const alone = await service.token('transfer');
  expect((await service.get('/admin/v1/clients', alone)).status).toBe(403);
  expect((await service.get(`/v2/${realm.collection}`, alone)).status).toBe(403);
});
