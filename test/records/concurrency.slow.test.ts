import { expect, test } from 'bun:test';
import { join } from 'node:path';
import { changeClient, createClient } from '../../src/access/clients/clients.ts';
import { withdrawSigningKey } from '../../src/access/keys/signing.ts';
import { parseScopes } from '../../src/model/principal.ts';
import { systemClock } from '../../src/ops/process/clock.ts';
import { freshDatabase, openFreshDatabase } from '../support/database.ts';
import { AUTHREALM, type RunningCommand, runTogether, startCommand } from '../support/processes.ts';
import { createFixture, oidcPath } from '../support/service.ts';

test('of 64 concurrent inserts of one link by four processes, one succeeds and the others are conflicts', async () => {
  const { database, db } = await openFreshDatabase();
  const { realm, user, oidcProfile } = await createFixture(db);
  const script = join(import.meta.dir, 'contract/insert_process.ts');
  const command = [process.execPath, script, database.url, realm, user, oidcProfile, '16'];
  const lines = await runTogether(4, command, /^\[/);
  const kinds = lines.flatMap((line) => JSON.parse(line) as string[]);
  expect(kinds).toHaveLength(64);
  expect(kinds.filter((kind) => kind === 'written')).toHaveLength(1);
  expect(kinds.filter((kind) => kind === 'unique')).toHaveLength(63);
  await db.engine.close();
}, 300_000);

test('twenty processes that start at once on a new database all serve, with the same signing key', async () => {
  const { args } = await freshDatabase();
  const services = Array.from({ length: 20 }, () =>
    startCommand([AUTHREALM, 'serve', '--port', '0', ...args]),
  );
  const urls = await Promise.all(services.map(listeningUrl));
  const kids = new Set<string>();
  for (const url of urls) {
    expect((await fetch(`${url}/readyz`)).status).toBe(200);
    const { keys } = (await (await fetch(`${url}/.well-known/jwks.json`)).json()) as {
      keys: { kid: string }[];
    };
    for (const { kid } of keys) kids.add(kid);
  }
  expect(kids.size).toBe(1);
  expect(new Set(await Promise.all(services.map((service) => service.stop())))).toEqual(new Set([0]));
}, 300_000);

async function listeningUrl(service: RunningCommand): Promise<string> {
  return (await service.line(/^listening on /)).slice('listening on '.length);
}

/** The process that answered, by its part of the request ID. */
function processOf(answer: Response): string {
  return answer.headers.get('x-request-id')?.split('-')[0] ?? '';
}

/** Sends requests on fresh connections until every process has answered; returns the statuses by process. */
async function statusesOfAll(
  url: string,
  token: string,
  processes: number,
): Promise<Map<string, Set<number>>> {
  const seen = new Map<string, Set<number>>();
  for (let attempt = 0; seen.size < processes || attempt < 24; attempt += 1) {
    const headers = { Authorization: `Bearer ${token}`, Connection: 'close' };
    const answer = await fetch(url, { headers, keepalive: false });
    await answer.arrayBuffer();
    const statuses = seen.get(processOf(answer)) ?? new Set();
    seen.set(processOf(answer), statuses.add(answer.status));
  }
  return seen;
}

test('client changes and a withdrawn signing key take effect on both processes within a second', async () => {
  const { database, db } = await openFreshDatabase();
  const created = await createFixture(db);
  const { access } = db.engine;
  const service = startCommand([AUTHREALM, 'serve', '--port', '0', '--processes', '2', ...database.args]);
  const url = await listeningUrl(service);
  const link = `${url}${oidcPath(created)}`;

  const scopes = parseScopes('profile-infos:read') ?? new Set<string>();
  const made = await createClient(access, 'changed', { scopes, realms: '*' }, systemClock);
  await Bun.sleep(1_000);
  const token = await tokenFor(url, made.client.clientId, made.secret);

  const change = (patch: Parameters<typeof changeClient>[2]) =>
    changeClient(access, made.client.clientId, patch, systemClock);
  /** Every process answers this status one second after the change. */
  const expectAll = async (status: number, withToken = token) => {
    await Bun.sleep(1_000);
    const seen = await statusesOfAll(link, withToken, 2);
    expect([...seen.values()].map((statuses) => [...statuses])).toEqual([[status], [status]]);
  };

  await expectAll(200);
  await change({ disabledAt: systemClock.now() });
  await expectAll(401);
  await change({ disabledAt: undefined });
  await expectAll(200);
  await change({ realms: new Set([systemClock.mintId()]) });
  await expectAll(404);
  await change({ realms: '*' });
  await expectAll(200);
  await change({ scopes: parseScopes('password-profile-infos:read') ?? new Set() });
  await expectAll(403);
  await change({ scopes });
  await expectAll(200);

  const [key] = (await access.state(undefined))?.signingKeys ?? [];
  expect(await withdrawSigningKey(key?.kid ?? '', access, db.keyring, systemClock)).toBe(true);
  await expectAll(401);
  await expectAll(200, await tokenFor(url, made.client.clientId, made.secret));

  expect(await service.stop()).toBe(0);
  await db.engine.close();
}, 300_000);

async function tokenFor(url: string, clientId: string, secret: string): Promise<string> {
  const form = { grant_type: 'client_credentials', client_id: clientId, client_secret: secret };
  const answer = await fetch(`${url}/oauth/token`, { method: 'POST', body: new URLSearchParams(form) });
  return ((await answer.json()) as { access_token: string }).access_token;
}

test('a killed process is replaced, and the others continue to serve', async () => {
  const { database, db } = await openFreshDatabase();
  await db.engine.close();
  const service = startCommand([AUTHREALM, 'serve', '--port', '0', '--processes', '2', ...database.args]);
  const url = await listeningUrl(service);
  const before = await statusesOfAll(`${url}/readyz`, '', 2);
  const [started] = [...service.output().matchAll(/"event":"process_started","pid":(\d+)/g)];
  process.kill(Number(started?.[1]), 'SIGKILL');
  await Bun.sleep(1_500);
  const after = await statusesOfAll(`${url}/readyz`, '', 2);
  expect([...after.keys()].filter((each) => !before.has(each))).toHaveLength(1);
  expect(await service.stop()).toBe(0);
}, 300_000);
