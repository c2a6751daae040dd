import { afterEach, describe, expect, test } from 'bun:test';
import type { LogStore } from '../../src/audit/port.ts';
import { openTokenGrantLog, type PendingGrants } from '../../src/audit/token_grant_log.ts';
import type { AuditEntry } from '../../src/domain/audit_entry.ts';
import { Fault } from '../../src/domain/fault.ts';
import { LIMITS } from '../../src/domain/limits.ts';
import { systemClock } from '../../src/platform/clock.ts';
import type { Engine } from '../../src/store/open.ts';
import { createFixture, oidcPath, type Service, startService } from '../support/service.ts';

/** An engine whose log can be made to fail. */
function failingLog(code: 'unavailable' | 'internal' = 'unavailable') {
  let isFailing = false;
  const note =
    (log: LogStore): LogStore['append'] =>
    (auditEntries) =>
      isFailing ? Promise.reject(new Fault(code)) : log.append(auditEntries);
  return {
    wrap: (engine: Engine): Engine => ({ ...engine, log: { ...engine.log, append: note(engine.log) } }),
    fail(value: boolean) {
      isFailing = value;
    },
  };
}

let service: Service | undefined;
afterEach(async () => {
  await service?.stop();
  service = undefined;
});

interface Row {
  readonly action: string;
  readonly actor: string;
  readonly object: string | null;
  readonly address: string | null;
  readonly request_id: string | null;
  readonly detail: string;
}

async function grantsOf({ database }: Service): Promise<readonly Row[]> {
  return database.query<Row>(
    `select action, actor, object, address, request_id, detail from act where action = 'token.granted' order by seq`,
  );
}

async function requestGrant(of: Service, clientId: string, secret: string, headers = {}) {
  const form = { grant_type: 'client_credentials', client_id: clientId, client_secret: secret };
  return of.requestToken(form, headers);
}

test('a token grant is logged with client, rights, expiry and address before it is answered', async () => {
  service = await startService();
  const { clientId, secret } = await service.client('profile-infos:read');
  const answer = await requestGrant(service, clientId, secret, { 'X-Request-Id': 'shop-7' });
  const { access_token: token, expires } = (await answer.json()) as { access_token: string; expires: number };
  const fixture = await createFixture(service.db);
  const limited = await service.client('profile-infos:read', new Set([fixture.realm]));
  await requestGrant(service, limited.clientId, limited.secret);
  const [row, other, ...more] = await grantsOf(service);
  expect([more, JSON.parse(other?.detail ?? '').realms]).toEqual([[], [fixture.realm]]);
  const [, claims = ''] = token.split('.');
  const { jti } = JSON.parse(Buffer.from(claims, 'base64url').toString()) as { jti: string };
  expect([row, JSON.parse(row?.detail ?? '')]).toEqual([
    {
      action: 'token.granted',
      actor: clientId,
      object: clientId,
      address: '127.0.0.1',
      request_id: 'shop-7',
      detail: expect.any(String),
    },
    {
      scope: 'oidc-profile-infos:read password-profile-infos:read',
      realms: '*',
      jti,
      expires_at: new Date(expires * 1_000).toISOString(),
    },
  ]);
});

test('a token is issued while the log cannot be written, and its entry is written later', async () => {
  const log = failingLog();
  service = await startService({}, log.wrap);
  const fixture = await createFixture(service.db);
  const { clientId, secret } = await service.client('profile-infos:read');
  log.fail(true);
  const tokens = [];
  for (let count = 0; count < 3; count += 1) {
    const answer = await requestGrant(service, clientId, secret);
    tokens.push(((await answer.json()) as { access_token: string }).access_token);
  }
  for (const token of tokens) expect((await service.get(oidcPath(fixture), token)).status).toBe(200);
  expect(await grantsOf(service)).toEqual([]);
  expect(pendingReports(service)).toEqual([{ event: 'audit_entries_pending', pending: 1, dropped: 0 }]);
  log.fail(false);
  while (pendingReports(service).length < 2) await Bun.sleep(50);
  expect(pendingReports(service).at(-1)).toEqual({ event: 'audit_entries_pending', pending: 0, dropped: 0 });
  expect((await grantsOf(service)).map(({ object }) => object)).toEqual([clientId, clientId, clientId]);
}, 300_000);

test('pending grant entries are written when the service stops', async () => {
  const log = failingLog();
  service = await startService({}, log.wrap);
  const { clientId, secret } = await service.client('profile-infos:read');
  log.fail(true);
  expect((await requestGrant(service, clientId, secret)).status).toBe(200);
  log.fail(false);
  const { server } = service;
  await server.stop();
  expect(await grantsOf(service)).toHaveLength(1);
});

test('no token is issued when logging its grant fails with an unexpected error', async () => {
  const log = { wrap: (engine: Engine): Engine => ({ ...engine, log: { ...engine.log, append: broken } }) };
  const broken = () => Promise.reject(new TypeError('broken'));
  const other = await startService({}, log.wrap);
  const { clientId, secret } = await other.client('profile-infos:read');
  expect((await requestGrant(other, clientId, secret)).status).toBe(500);
  await expect(other.stop()).rejects.toThrow('answered 500');
});

function pendingReports({ log }: Service) {
  return log.filter(({ event }) => event === 'audit_entries_pending');
}

describe('pending grant entries', () => {
  function openStore() {
    const written: AuditEntry[] = [];
    const store = {
      isFailing: true,
      written,
      async append(auditEntries: readonly AuditEntry[]) {
        if (store.isFailing) throw new Fault('unavailable');
        written.push(...auditEntries);
      },
    };
    return store;
  }

  const actAt = (at: number): AuditEntry => ({
    action: 'token.granted',
    actor: 'shop',
    address: undefined,
    requestId: undefined,
    object: 'shop',
    detail: {},
    at,
  });

  test('the queue of grant entries is bounded: grants beyond it are counted in one entry', async () => {
    const store = openStore();
    const reports: PendingGrants[] = [];
    const notes = openTokenGrantLog(store, { ...systemClock, now: () => 5 }, (waiting) =>
      reports.push(waiting),
    );
    const excess = 7;
    for (let at = 0; at < LIMITS.grantsWaitingMax + excess; at += 1) await notes.append(actAt(at));
    store.isFailing = false;
    await notes.stop();
    expect(store.written.slice(0, -1).map(({ at }) => at)).toEqual(
      Array.from({ length: LIMITS.grantsWaitingMax }, (_, at) => at),
    );
    expect(store.written.at(-1)).toMatchObject({
      action: 'token.granted',
      actor: 'authrealm',
      detail: { without_entry: excess },
    });
    expect(reports).toEqual([
      { waiting: 1, dropped: 0 },
      { waiting: 0, dropped: 0 },
    ]);
  });

  test('dropped grants whose entry has an unknown outcome are counted by the same entry again', async () => {
    const seen: (readonly AuditEntry[])[] = [];
    let code: 'unavailable' | 'unknown_outcome' | undefined = 'unavailable';
    const note = async (auditEntries: readonly AuditEntry[]) => {
      seen.push(auditEntries);
      if (code) throw new Fault(code);
    };
    const notes = openTokenGrantLog({ append: note }, systemClock, () => undefined);
    for (let at = 0; at < LIMITS.grantsWaitingMax + 3; at += 1) await notes.append(actAt(at));
    code = 'unknown_outcome';
    await notes.stop();
    await notes.append(actAt(-1));
    code = undefined;
    await notes.stop();
    await notes.append(actAt(-2));
    const lost = seen.map((auditEntries) => auditEntries.find(({ detail }) => 'without_entry' in detail));
    const [first, second] = lost.filter((auditEntry) => auditEntry !== undefined);
    expect(first).toMatchObject({ id: expect.any(String), detail: { without_entry: 3 } });
    expect(second).toBe(first as AuditEntry);
    expect(seen.at(-1)?.map(({ at }) => at)).toEqual([-2]);
  });

  test('grant entries that cannot be written at stop are reported as lost', async () => {
    const store = openStore();
    const reports: PendingGrants[] = [];
    const notes = openTokenGrantLog(store, { ...systemClock, now: () => 5 }, (waiting) =>
      reports.push(waiting),
    );
    await notes.append(actAt(1));
    await notes.append(actAt(2));
    await notes.stop();
    expect(reports).toEqual([
      { waiting: 1, dropped: 0 },
      { waiting: 0, dropped: 2 },
    ]);
  });
});
