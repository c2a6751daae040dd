import { describe, expect, test } from 'bun:test';
import type { Uuid } from '../../../src/model/id.ts';
import { LIMITS } from '../../../src/model/limits.ts';
import type { SequencedChange } from '../../../src/model/log/change.ts';
import { user } from '../../../src/model/resources.ts';
import { systemClock } from '../../../src/ops/process/clock.ts';
import { draftDescribed } from '../../../src/records/plan.ts';
import { makePresetRealms } from '../../../src/records/presets.ts';
import { verifyCleanRecords } from '../../support/record_verification.ts';
import {
  createParents,
  createRecord,
  FULL_SCOPE,
  KINDS,
  OFFLINE,
  type ParentIds,
  type RecordBody,
  userPath,
} from '../../support/resource_cases.ts';
import { comparableResponse, errorsOf, startService } from '../../support/service.ts';

/** The records that a DELETE removes, and the changes it stores (docs/wire.md#deletes). */

const service = await startService(OFFLINE);
const token = await service.token(FULL_SCOPE);

const [realms, oidcProfiles, passwordProfiles, users, identities, usernames] = KINDS;
const mint = systemClock.mintId;

/** Two users with an identity and a username each, in one realm. */
interface TwoUsers {
  readonly home: ParentIds;
  readonly jane: string;
  readonly john: string;
  /** Paths by the name of the record. */
  readonly paths: Readonly<Record<string, string>>;
}

async function createTwoUsers(): Promise<TwoUsers> {
  const home = await createParents(service, token);
  const john = (await createRecord(service, token, { kind: users, home })).id;
  const at = { jane: home, john: { ...home, user: john } };
  const paths: Record<string, string> = {
    realm: `/v2/authentication-realms/${home.realm}`,
    oidcProfile: `${oidcProfiles.collection(home)}/${home.oidcProfile}`,
    passwordProfile: `${passwordProfiles.collection(home)}/${home.passwordProfile}`,
    jane: userPath(at.jane),
    john: userPath(at.john),
  };
  for (const name of ['jane', 'john'] as const) {
    paths[`${name}'s identity`] = (
      await createRecord(service, token, { kind: identities, home: at[name] })
    ).path;
    paths[`${name}'s username`] = (
      await createRecord(service, token, { kind: usernames, home: at[name] })
    ).path;
  }
  return { home, jane: home.user, john, paths };
}

async function changesOf({ realm }: ParentIds): Promise<readonly SequencedChange[]> {
  return service.db.engine.records.changes(realm as Uuid, 0, 1_000);
}

const NAMES = {
  identity: identities.resource.name,
  username: usernames.resource.name,
  user: users.resource.name,
} as const;

/** For each deleted record: the records deleted with it, and the users whose revision changes. */
const CASCADES: [what: string, gone: readonly string[], touched: readonly string[]][] = [
  ["jane's identity", ["jane's identity"], ['jane']],
  ["jane's username", ["jane's username"], ['jane']],
  ['jane', ["jane's identity", "jane's username", 'jane'], []],
  ['oidcProfile', ["jane's identity", "john's identity", 'oidcProfile'], ['jane', 'john']],
  ['passwordProfile', ["jane's username", "john's username", 'passwordProfile'], ['jane', 'john']],
  [
    'realm',
    [
      ...["jane's identity", "jane's username", "john's identity", "john's username"],
      ...['jane', 'john', 'oidcProfile', 'passwordProfile', 'realm'],
    ],
    [],
  ],
];

describe('DELETE removes the dependents of a record, each with its change', () => {
  test.each(CASCADES)(
    'DELETE of %s deletes its dependents, with a change for each',
    async (what, gone, touched) => {
      const { home, paths } = await createTwoUsers();
      const before = new Map<string, { etag: string | null; id: string }>();
      for (const [name, path] of Object.entries(paths)) {
        const answer = await service.get(path, token);
        const { data } = (await answer.json()) as RecordBody;
        before.set(name, { etag: answer.headers.get('etag'), id: data.id });
      }
      const seq = (await changesOf(home)).length;
      service.clock.advance(5);
      const removal = await service.del(paths[what] ?? '', token);
      expect(removal.status).toBe(204);
      for (const [name, path] of Object.entries(paths)) {
        const answer = await service.get(path, token);
        expect([name, answer.status]).toEqual([name, gone.includes(name) ? 404 : 200]);
        if (answer.status === 404) continue;
        const isTouched = answer.headers.get('etag') !== before.get(name)?.etag;
        expect([name, isTouched]).toEqual([name, touched.includes(name)]);
      }
      const newChanges = (await changesOf(home)).slice(seq);
      const idOf = (name: string) => before.get(name)?.id ?? '';
      const changes = newChanges.map(({ event, id }) => [event.split('.')[1], id]);
      expect(changes.slice(0, gone.length).sort()).toEqual(
        gone.map((name) => ['deleted', idOf(name)]).sort(),
      );
      expect(changes.slice(gone.length).sort()).toEqual(
        touched.map((name) => ['updated', idOf(name)]).sort(),
      );
      expect(newChanges.map(({ seq: place }) => place)).toEqual(
        newChanges.map((_, index) => seq + index + 1),
      );
      expect(new Set(newChanges.map(({ requestId }) => requestId))).toEqual(
        new Set([removal.headers.get('x-request-id') as string]),
      );
      // A reader in order never sees a child after the deletion of its parent.
      const place = (name: string) => changes.findIndex(([, id]) => id === idOf(name));
      for (const name of gone) expect(place(name)).toBeLessThanOrEqual(place(what));
    },
  );

  test('the change of a delete has the last revision of the record, and no members', async () => {
    const { home, paths } = await createTwoUsers();
    const etag = (await service.get(paths.jane ?? '', token)).headers.get('etag') ?? '';
    await service.del(paths.jane ?? '', token);
    const last = (await changesOf(home)).at(-1);
    expect([last?.event, last?.members, last?.revision]).toEqual([
      `${NAMES.user}.deleted`,
      [],
      etag.slice(1, 17) as never,
    ]);
  });

  test('a deleted identity can be created again', async () => {
    const { home, paths } = await createTwoUsers();
    const identity = ((await (await service.get(paths["jane's identity"] ?? '', token)).json()) as RecordBody)
      .data;
    await service.del(paths.jane ?? '', token);
    const where = { ...home, user: (await createRecord(service, token, { kind: users, home })).id };
    const { subject } = identity;
    await createRecord(service, token, { kind: identities, home: where, data: { subject } });
  });
});

test('every write stores a change with the record and the caller, and no personal value', async () => {
  const { clientId, secret } = await service.client(FULL_SCOPE);
  const bearer = await service.grant({ clientId, secret });
  const home = await createParents(service, bearer);
  const identity = await createRecord(service, bearer, { kind: identities, home });
  await service.put(identity.path, bearer, {
    data: { type: identities.resource.type, subject: 'another-subject' },
  });
  const changes = await changesOf(home);
  expect(changes.map(({ event, members }) => [event, members])).toEqual([
    ...[realms, oidcProfiles, passwordProfiles, users].map(({ resource }) => [
      `${resource.name}.created`,
      [],
    ]),
    [`${NAMES.identity}.created`, []],
    [`${NAMES.user}.updated`, ['updated_at']],
    [`${NAMES.identity}.updated`, ['subject']],
    [`${NAMES.user}.updated`, ['updated_at']],
  ] as never);
  expect(new Set(changes.map(({ actor }) => actor))).toEqual(new Set([clientId]));
  const text = JSON.stringify(changes);
  expect(text).not.toContain('another-subject');
  expect(text).not.toContain(identity.body.data.subject as string);
});

test('the preset realms can be updated, but not deleted', async () => {
  const { engine } = service.db;
  const from = { clock: systemClock, actor: 'test' };
  const presets = await makePresetRealms(engine.records, await engine.access.storeId(), from);
  expect(presets.map(({ name }) => name)).toEqual([
    'Buyer Organization',
    'Merchant Organization',
    'Account Management Realm',
  ]);
  for (const { id } of presets) {
    const path = `/v2/authentication-realms/${id}`;
    const answer = await service.del(path, token);
    expect(answer.status).toBe(422);
    expect((await errorsOf(answer))[0]?.detail).toBe('data.id: this record is kept and cannot be deleted');
    // The requests of `epcc reset-store` and of terraform's destroy.
    const reset = { redirect_uris: [], duplicate_email_policy: 'allowed', name: 'Renamed' };
    const put = { data: { type: 'authentication-realm', preset: false, relationships: null, ...reset } };
    expect((await service.put(path, token, put)).status).toBe(200);
    expect((await service.del(path, token)).status).toBe(422);
    expect((await service.get(path, token)).status).toBe(200);
  }
  const origins = await Promise.all(
    presets.map(async ({ id }) => {
      const answer = await service.get(`/v2/authentication-realms/${id}`, token);
      const { relationships } = ((await answer.json()) as RecordBody).data;
      return (relationships as { origin: { data: { type: string } } }).origin.data.type;
    }),
  );
  expect(origins).toEqual([
    'customer-authentication-settings',
    'merchant-realm-mappings',
    'account_authentication_settings',
  ]);
});

/** Adds users in one commit, as an import does. */
async function addUsers({ realm }: ParentIds, count: number): Promise<void> {
  const by = { clock: systemClock, actor: 'test' };
  const writes = Array.from({ length: count }, (_, index) => {
    const members = { name: `User ${index}`, email: `user-${index}@example.com` };
    return draftDescribed(user, [realm as Uuid, mint()], members, by);
  });
  const result = await service.db.engine.records.commit(writes);
  expect(result.kind).toBe('written');
}

test('a DELETE of a realm with 1,001 records below is 422 and changes nothing; with 1,000 it is 204', async () => {
  const home = await createParents(service, token);
  await addUsers(home, LIMITS.cascadeRecordsMax - 2);
  const path = `/v2/authentication-realms/${home.realm}`;
  const state = await comparableResponse(await service.get(path, token));
  const answer = await service.del(path, token);
  expect(answer.status).toBe(422);
  expect((await errorsOf(answer))[0]).toMatchObject({
    detail:
      'data.id: more than 1000 records would go with this one: authrealm delete --in-pages removes them',
    source: { pointer: '/data/id' },
  });
  expect(await comparableResponse(await service.get(path, token))).toBe(state);
  expect((await service.get(userPath(home), token)).status).toBe(200);
  await service.del(userPath(home), token);
  expect((await service.del(path, token)).status).toBe(204);
  expect((await service.get(path, token)).status).toBe(404);
});

describe('a client with a list of realms', async () => {
  const own = await createParents(service, token);
  const other = await createParents(service, token);
  const limited = await service.token(FULL_SCOPE, new Set([own.realm as Uuid]));

  test('a client with a list of realms cannot create or delete a realm: 403, even if it does not exist', async () => {
    const answers = [
      await service.post('/v2/authentication-realms', limited, { data: realms.fresh(own) }),
      await service.del(`/v2/authentication-realms/${own.realm}`, limited),
      await service.del(`/v2/authentication-realms/${other.realm}`, limited),
      await service.del(`/v2/authentication-realms/${mint()}`, limited),
      await service.del('/v2/authentication-realms/no-identifier', limited),
    ];
    const all = await Promise.all(answers.map(comparableResponse));
    expect(all[0]).toStartWith('[403,');
    expect(new Set(all).size).toBe(1);
    expect((await service.get(`/v2/authentication-realms/${own.realm}`, limited)).status).toBe(200);
  });

  test.each([...KINDS])(
    'every request for a $name in a realm outside the list is the same 404 as for an unknown realm',
    async (kind) => {
      const otherPath =
        kind === realms
          ? `/v2/authentication-realms/${other.realm}`
          : (await createRecord(service, token, { kind, home: other })).path;
      const absentPath = otherPath.replace(other.realm, mint());
      const state = await comparableResponse(await service.get(otherPath, token));
      const data = { type: kind.resource.type, ...kind.changes() };
      const calls: ((path: string) => Promise<Response>)[] = [
        (path) => service.get(path, limited),
        (path) => service.put(path, limited, { data }),
        (path) => service.put(path, limited, { data: { type: 'wrong' } }),
        (path) => service.put(path, limited, '{', { 'Content-Type': 'text/plain' }),
        (path) => service.put(path, limited, { data }, { 'If-Match': '"0000000000000000-AAAAAAAA"' }),
      ];
      if (kind !== realms) {
        calls.push((path) => service.del(path, limited));
        const collection = (path: string) => path.replace(/\/[^/]+$/, '');
        calls.push((path) => service.post(collection(path), limited, { data: kind.fresh(other) }));
        calls.push((path) =>
          service.post(collection(path), limited, { data: kind.fresh(other) }, { 'Idempotency-Key': 'one' }),
        );
        calls.push((path) => service.get(collection(path), limited));
      }
      for (const call of calls) {
        const answer = await comparableResponse(await call(otherPath));
        expect(answer).toStartWith('[404,');
        expect(await comparableResponse(await call(absentPath))).toBe(answer);
      }
      expect(await comparableResponse(await service.get(otherPath, token))).toBe(state);
    },
  );
});

test('all records that one request changes have the same timestamp', async () => {
  const home = await createParents(service, token);
  const identity = await createRecord(service, token, { kind: identities, home });
  const above = ((await (await service.get(userPath(home), token)).json()) as RecordBody).data.meta;
  expect(above.updated_at).toBe(identity.body.data.meta.created_at as string);
});

test('audit verify --records is clean after deletes with dependents, updates and creates', async () => {
  const { covered, notCovered } = await verifyCleanRecords(service.database);
  expect(notCovered).toBe(0);
  expect(covered).toBeGreaterThan(20);
});
