import { expect, test } from 'bun:test';
import { openLogReading } from '../../../src/log/reading.ts';
import type { Uuid } from '../../../src/model/id.ts';
import { oidcProfileInfo, passwordProfile, passwordProfileInfo, user } from '../../../src/model/resources.ts';
import {
  createParents,
  createRecord,
  FULL_SCOPE,
  kindOf,
  OFFLINE,
  type ParentIds,
} from '../../support/resource_cases.ts';
import { startService } from '../../support/service.ts';

/** The changes and log entries of a batch, compared with those of the same requests sent one after the other. */

const service = await startService(OFFLINE);
const token = await service.token(FULL_SCOPE);

interface Request {
  readonly method: 'POST' | 'PUT' | 'DELETE';
  readonly path: string;
  readonly body?: object;
}

/** A request of each kind, in a realm of its own. */
async function requestsIn(home: ParentIds): Promise<readonly Request[]> {
  const create = (at: ParentIds) => createRecord(service, token, { kind: kindOf(user), home: at });
  const [linked, gone] = [await create(home), await create(home)];
  const oidcLinks = kindOf(oidcProfileInfo);
  const link = () => oidcLinks.fresh(home);
  await createRecord(service, token, { kind: oidcLinks, home: { ...home, user: gone.id } });
  const old = await createRecord(service, token, { kind: oidcLinks, home: { ...home, user: linked.id } });
  const profile = `${kindOf(passwordProfile).collection(home)}/${home.passwordProfile}`;
  const included = [link(), kindOf(passwordProfileInfo).fresh(home)];
  return [
    {
      method: 'POST',
      path: kindOf(user).collection(home),
      body: { data: kindOf(user).fresh(home), included },
    },
    { method: 'PUT', path: linked.path, body: { data: { type: user.type, name: 'Jane', given_name: 'J' } } },
    { method: 'DELETE', path: old.path },
    { method: 'POST', path: oidcLinks.collection({ ...home, user: linked.id }), body: { data: link() } },
    { method: 'PUT', path: profile, body: { data: { type: passwordProfile.type, name: 'Names' } } },
    { method: 'DELETE', path: gone.path },
  ];
}

const REQUEST_ID = { 'X-Request-Id': 'of-the-batch' };

async function sendEach(requests: readonly Request[]): Promise<void> {
  for (const { method, path, body = {} } of requests) {
    if (method === 'POST') expect((await service.post(path, token, body, REQUEST_ID)).status).toBe(201);
    else if (method === 'PUT') expect((await service.put(path, token, body, REQUEST_ID)).status).toBe(200);
    else expect((await service.del(path, token, REQUEST_ID)).status).toBe(204);
  }
}

async function sendTogether(requests: readonly Request[], { realm }: ParentIds): Promise<void> {
  const path = `/v2/authentication-realms/${realm}/batch`;
  expect((await service.post(path, token, { requests }, REQUEST_ID)).status).toBe(200);
}

/** What the requests of `send` left in the change feed and in the log of their realm; equal IDs have equal numbers. */
async function tracesOf(send: (requests: readonly Request[], home: ParentIds) => Promise<void>) {
  const home = await createParents(service, token);
  const realm = home.realm as Uuid;
  const requests = await requestsIn(home);
  const { engine, logKeys } = service.db;
  const before = (await engine.records.changes(realm, 0, 1_000)).at(-1)?.seq ?? 0;
  await send(requests, home);
  const changes = await engine.records.changes(realm, before, 1_000);
  const reading = openLogReading(engine.log, logKeys);
  const entries = await reading.entries(realm, before, 1_000);
  const ofUsers = Map.groupBy(entries, ({ user_id }) => user_id);
  for (const [id, own] of ofUsers) {
    if (id === undefined) continue;
    const person = { realm, user: id as Uuid };
    expect(await reading.entriesOf(person, 'realm', before, 1_000)).toEqual([...own]);
  }
  return comparable({
    changes: changes.map(({ at: _, revision: __, ...change }) => change),
    entries: entries.map(({ at: _, tag: __, ...entry }) => entry),
  });
}

function comparable(traces: { readonly changes: readonly object[]; readonly entries: readonly object[] }) {
  const seen = new Map<string, string>();
  const text = JSON.stringify(traces)
    .replaceAll(/[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}/g, (id) => {
      seen.set(id, seen.get(id) ?? `id ${seen.size}`);
      return seen.get(id) as string;
    })
    .replaceAll(/-\d+-\d+/g, '-unique');
  return JSON.parse(text) as typeof traces;
}

test('a batch leaves the changes and log entries that its requests leave when sent one by one', async () => {
  const together = await tracesOf(sendTogether);
  expect(together).toEqual(await tracesOf(sendEach));
  expect(together.entries).toHaveLength(together.changes.length);
  expect(together.changes.map((change) => (change as { event: string }).event)).toEqual([
    'user-authentication-info.created',
    'user-authentication-oidc-profile-info.created',
    'user-authentication-password-profile-info.created',
    'user-authentication-info.updated',
    'user-authentication-oidc-profile-info.deleted',
    'user-authentication-info.updated',
    'user-authentication-oidc-profile-info.created',
    'user-authentication-info.updated',
    'password-profile.updated',
    'user-authentication-oidc-profile-info.deleted',
    'user-authentication-info.deleted',
  ]);
});
