import { afterEach, beforeEach, describe, expect, setDefaultTimeout, test } from 'bun:test';
import { SQL } from 'bun';
import { systemAmbient } from '../../src/ambient.ts';
import type { Settings } from '../../src/config.ts';
import type { Uuid } from '../../src/domain/id.ts';
import { LIMITS } from '../../src/domain/limits.ts';
import { POSTGRES } from '../../src/store/postgres/dialect.ts';
import { SQLITE } from '../../src/store/sqlite/dialect.ts';
import { openVault, type Vault } from '../../src/vault.ts';
import type { Line } from '../../src/webhooks/line.ts';
import type { Standing, Webhook } from '../../src/webhooks/port.ts';
import { openSources, type Sources } from '../../src/webhooks/sources.ts';
import { changeWebhook } from '../../src/webhooks/targets.ts';
import { freshDatabase, type TestDatabase } from '../support/database.ts';
import { moveOn, roomsOf, target } from '../support/receivers.ts';
import { type MovableAmbient, plant } from '../support/service.ts';

/** Which realms are looked at for a target: those with something new, and no others. Nobody sends anything here. */

setDefaultTimeout(300_000);

let database: TestDatabase;
let vault: Vault;
let settings: Settings;
let ambient: MovableAmbient;
let webhook: Webhook;
let sources: Sources;
let one: Uuid;
let other: Uuid;
let busy: Uuid;

beforeEach(async () => {
  database = await freshDatabase();
  settings = database.settings({ AUTHREALM_ALLOW_LOOPBACK_WEBHOOKS: 'true' });
  vault = await openVault(settings, systemAmbient);
  [one, other, busy] = (await Promise.all([plant(vault), plant(vault), plant(vault)])).map(
    ({ realm }) => realm,
  ) as [Uuid, Uuid, Uuid];
  ({ webhook } = await target({ vault, settings }, 'http://127.0.0.1:9/'));
  await moveOn(database);
  ambient = standingAmbient();
  sources = openSources(lineOf(webhook), new Set());
});

afterEach(() => vault.engine.close());

/** A clock that moves when it is told to: a look ends when it has met what there is, however slow the machine is. */
function standingAmbient(): MovableAmbient {
  let at = systemAmbient.now();
  const now = () => at;
  return {
    ...systemAmbient,
    now,
    monotonic: now,
    advance: (milliseconds) => {
      at += milliseconds;
    },
  };
}

function lineOf(of: Webhook): Line {
  const rooms = { store: vault.engine.webhooks, ambient };
  return { rooms, webhookId: of.webhookId, webhook: () => of } as unknown as Line;
}

/** The realms that one look meets, or as many as it is let. */
async function met(most = Number.POSITIVE_INFINITY): Promise<readonly Standing[]> {
  const found: Standing[] = [];
  await sources.look(() => (standing) => {
    if (found.length >= most) return false;
    found.push(standing);
    return true;
  });
  return found;
}

const realmsOf = (found: readonly Standing[]): readonly Uuid[] => found.map(({ realm }) => realm);

/** Has so much written elsewhere that what was written before is no more of these transactions. */
async function passBy(): Promise<void> {
  for (let count = 0; count < 20; count += 1) await plant(vault, { realm: busy });
  await moveOn(database);
}

async function settle(realm: Uuid, seq: number, attempts: number, nextAt: number): Promise<void> {
  const lease = { name: 'test', holder: 'test' };
  await vault.engine.leases.replace({ ...lease, until: 1 }, undefined);
  const progress = [
    { realm, seq, attempts, nextAt, failedSeq: attempts && seq + 1, behindSince: attempts && 1 },
  ];
  const settled = { webhookId: webhook.webhookId, progress, deliveries: [], deadLetters: [] };
  expect(await vault.engine.webhooks.settle(lease, settled)).toBe(true);
}

test('the first look meets every realm, later ones those that were written since', async () => {
  expect(realmsOf(await met()).toSorted()).toEqual([one, other, busy].toSorted());
  await passBy();
  expect(new Set(realmsOf(await met()))).toEqual(new Set([busy]));
  expect(await met()).toEqual([]);
  await plant(vault, { realm: one });
  const found = await met();
  expect(found.find(({ realm }) => realm === one)).toMatchObject({ seq: 6, head: 11, attempts: 0 });
  expect(realmsOf(found)).not.toContain(other);
});

test('more realms than are asked for together are met once each, by one look', async () => {
  await met();
  const made = Array.from({ length: 150 }, () => systemAmbient.mintId());
  for (const realm of made) {
    await database.spoil(
      'insert into realm_clock (realm_id, seq, moved) select ?, 1, max(moved) + 1000000 from realm_clock',
      realm,
    );
  }
  if (database.address.engine === 'postgres') {
    // These numbers are those of no transaction that was, as after another cluster's rows were put in.
    expect(realmsOf(await met()).filter((realm) => made.includes(realm))).toEqual([]);
    await database.spoil(`update realm_clock set moved = ${POSTGRES.moves.now} where seq = 1`);
  }
  expect(realmsOf(await met()).filter((realm) => made.includes(realm))).toEqual(made);
});

/** Sources of this target that write down how many realms are asked for at once. */
function watchedSources(of: Webhook) {
  const { webhooks } = vault.engine;
  const asked = { moved: [] as number[], swept: [] as number[] };
  const store: typeof webhooks = {
    ...webhooks,
    moved(id, after, limit) {
      asked.moved.push(limit);
      return webhooks.moved(id, after, limit);
    },
    standingsBehind(id, after, limit) {
      asked.swept.push(limit);
      return webhooks.standingsBehind(id, after, limit);
    },
    standingsOf(id, realms) {
      asked.swept.push(realms.length);
      return webhooks.standingsOf(id, realms);
    },
  };
  const line = lineOf(of);
  sources = openSources({ ...line, rooms: { ...line.rooms, store } }, new Set());
  return asked;
}

describe('a sweep', () => {
  const { webhookClocksAtOnce: whole, webhookRealmsAtOnceMax: places } = LIMITS;
  let realms: readonly Uuid[];

  /** Two whole pages of clocks, most of which seem never to have moved: a sweep alone finds them. */
  beforeEach(async () => {
    const still = Array.from({ length: 2 * whole - 3 }, () => systemAmbient.mintId());
    const rows = still.map(() => '(?, 1, 0)').join(', ');
    await database.spoil(`insert into realm_clock (realm_id, seq, moved) values ${rows}`, ...still);
    realms = [one, other, busy, ...still].toSorted();
  });

  test('meets each realm once, also where the last page is full', async () => {
    const { swept } = watchedSources(webhook);
    expect(realmsOf(await met())).toEqual(realms);
    expect(swept).toEqual([whole, whole, whole]);
  });

  test('that found no place goes on there, with as many as there are places, and then twice as many', async () => {
    const { swept } = watchedSources(webhook);
    expect(realmsOf(await met(1))).toEqual(realms.slice(0, 1));
    expect(realmsOf(await met(1))).toEqual(realms.slice(1, 2));
    expect(realmsOf(await met())).toEqual(realms.slice(2));
    expect(swept).toEqual([whole, places, places, 2 * places, 4 * places, 8 * places, whole, whole]);
  });

  test('that is begun again meets again what it had met', async () => {
    watchedSources(webhook);
    expect(realmsOf(await met(5))).toEqual(realms.slice(0, 5));
    sources.restart();
    expect(realmsOf(await met())).toEqual(realms);
  });

  test('of a list goes on behind realms without a clock', async () => {
    const nobody = Array.from(
      { length: 2 * whole },
      (_, at) => `00000000-0000-7000-8000-${String(at).padStart(12, '0')}` as Uuid,
    );
    const { swept } = watchedSources({ ...webhook, realms: new Set([...realms.slice(0, 3), ...nobody]) });
    expect(realmsOf(await met())).toEqual(realms.slice(0, 3));
    expect(swept).toEqual([whole, whole, 3]);
  });
});

/** Plants so many realms that nobody was told of, and has what was there before be no more of these transactions. */
async function plantSome(count: number): Promise<readonly Uuid[]> {
  await met();
  await moveOn(database);
  await met();
  const planted = await Promise.all(Array.from({ length: count }, () => plant(vault)));
  return planted.map(({ realm }) => realm);
}

test('of realms that moved no more are read than there are places, once there was none, and then twice as many', async () => {
  const { moved } = watchedSources(webhook);
  const realms = await plantSome(14);
  moved.length = 0;
  const found = [...(await met(1)), ...(await met(1)), ...(await met())];
  expect(realmsOf(found).toSorted()).toEqual(realms.toSorted());
  const most = LIMITS.webhookRealmsAtOnceMax;
  expect(moved).toEqual([LIMITS.webhookClocksAtOnce, most, most, 2 * most, 4 * most]);
});

test('what was told of just now is met in its order, and of it too no more is read than there are places', async () => {
  const { swept } = watchedSources(webhook);
  const realms = (await plantSome(10)).toReversed();
  await met();
  await moveOn(database);
  await met();
  realms.forEach(sources.again);
  swept.length = 0;
  const found = [...(await met(1)), ...(await met(1)), ...(await met()), ...(await met())];
  expect(realmsOf(found)).toEqual(realms);
  expect(swept).toEqual([10, 4, 4, 4]);
});

test('what was stopped is met again, and first what is behind it in turn', async () => {
  await met();
  await passBy();
  await met();
  await plant(vault, { realm: one });
  for (let count = 0; count < 4; count += 1) expect(await met(0)).toEqual([]);
  expect(realmsOf(await met())).toContain(one);
});

test('what was not received is met when it is due, and not before', async () => {
  await met();
  await settle(one, 3, 2, ambient.now() + 5_000);
  expect(realmsOf(await met())).not.toContain(one);
  sources.again(one);
  expect(realmsOf(await met())).not.toContain(one);
  ambient.advance(5_001);
  expect((await met()).filter(({ realm }) => realm === one)).toMatchObject([
    { seq: 3, head: 6, attempts: 2, failedSeq: 4 },
  ]);
});

test('what was not received of realms that were taken off the list meanwhile is in the way of no other', async () => {
  const gone = (await Promise.all(Array.from({ length: 5 }, () => plant(vault)))).map(({ realm }) => realm);
  await moveOn(database);
  const changed = await changeWebhook(
    roomsOf({ vault, settings }),
    webhook.webhookId,
    { realms: new Set([one]) },
    systemAmbient,
  );
  sources = openSources(lineOf(changed as Webhook), new Set());
  for (const realm of gone) await settle(realm, 1, 1, 1);
  await settle(one, 3, 2, 2);
  expect(await met()).toMatchObject([{ realm: one, seq: 3, attempts: 2 }]);
  const left = await database.ask(
    'select realm_id from webhook_progress where webhook_id = ?',
    webhook.webhookId,
  );
  expect(left).toEqual([{ realm_id: one }]);
});

test('what was told of just now is met again, and everything after the target was changed', async () => {
  await met();
  await passBy();
  await met();
  sources.again(other);
  expect(realmsOf(await met())).toContain(other);
  sources.restart();
  expect(new Set(realmsOf(await met()))).toEqual(new Set([one, other, busy]));
});

test('what release 0.1.0 wrote, which leaves no sign of it, is met within ten minutes', async () => {
  await met();
  await passBy();
  await met();
  await database.spoil('update realm_clock set seq = seq + 1 where realm_id = ?', one);
  expect(realmsOf(await met())).not.toContain(one);
  expect(LIMITS.webhookSweepMs).toBe(600_000);
  ambient.advance(LIMITS.webhookSweepMs);
  expect((await met()).find(({ realm }) => realm === one)).toMatchObject({ seq: 6, head: 7 });
});

test('a target of some realms is swept by their list', async () => {
  const realms = new Set([one, other]);
  sources = openSources(lineOf({ ...webhook, realms }), new Set());
  expect(new Set(realmsOf(await met()))).toEqual(realms);
});

test('a target whose list was changed is swept by the new one', async () => {
  const changing: { -readonly [Name in keyof Webhook]: Webhook[Name] } = {
    ...webhook,
    realms: new Set([one]),
  };
  sources = openSources(lineOf(changing), new Set());
  expect(realmsOf(await met())).toEqual([one]);
  changing.realms = new Set([one, other]);
  sources.restart();
  expect(new Set(realmsOf(await met()))).toEqual(new Set([one, other]));
});

/** Begins to write to a realm before this happens, and commits behind it. On PostgreSQL, which alone has such writes. */
async function whileOneIsWritten(during: () => Promise<void>): Promise<void> {
  const client = new SQL(database.url, { max: 1 });
  await client.begin(async (writing) => {
    await writing.unsafe(
      `update realm_clock set seq = seq + 1, moved = ${POSTGRES.moves.now} where realm_id = '${one}'`,
    );
    await during();
  });
  await client.close();
}

test('a write that is committed late is met also while there is never a place for all that is new', async () => {
  if (database.address.engine !== 'postgres') return;
  await met();
  await whileOneIsWritten(async () => {
    await passBy();
    await Promise.all([plant(vault), plant(vault)]);
    expect(realmsOf(await met(1))).not.toContain(one);
    expect(realmsOf(await met(1))).not.toContain(one);
  });
  let isMet = false;
  for (let looks = 0; looks < 40 && !isMet; looks += 1) {
    await Promise.all([plant(vault), plant(vault)]);
    isMet = realmsOf(await met(1)).includes(one);
  }
  expect(isMet).toBe(true);
});

test('a write that began before others and is committed after them is met', async () => {
  if (database.address.engine !== 'postgres') return;
  await met();
  await whileOneIsWritten(async () => {
    await passBy();
    expect(realmsOf(await met())).not.toContain(one);
    await passBy();
    await met();
  });
  expect((await met()).find(({ realm }) => realm === one)).toMatchObject({ seq: 6, head: 7 });
});

test('more than one look has time for is met by those that follow, also while a transaction goes on and on', async () => {
  await met();
  const met150 = async () => {
    const made = Array.from({ length: 150 }, () => systemAmbient.mintId());
    for (const realm of made) {
      await database.spoil(
        `insert into realm_clock (realm_id, seq, moved) select ?, 1, ${moveOf(database)}`,
        realm,
      );
    }
    const left = new Set(made);
    for (let look = 0; look < 20; look += 1) {
      await sources.look(() => {
        // As slow as that: there is time for one page.
        ambient.advance(LIMITS.webhookLookMsMax);
        return ({ realm }) => {
          left.delete(realm);
          return true;
        };
      });
    }
    expect(left.size).toBe(0);
  };
  if (database.address.engine === 'sqlite') await met150();
  else {
    const client = new SQL(database.url, { max: 1 });
    await client.begin(async (writing) => {
      await writing.unsafe('select pg_current_xact_id()');
      await met150();
    });
    await client.close();
  }
});

/** The number that a write has now. */
function moveOf({ address }: TestDatabase): string {
  return (address.engine === 'postgres' ? POSTGRES : SQLITE).moves.now;
}
