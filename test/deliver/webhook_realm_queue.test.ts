import { afterEach, beforeEach, expect, setDefaultTimeout, test } from 'bun:test';
import { SQL } from 'bun';
import type { Settings } from '../../src/app/config/parse.ts';
import { type OpenDatabase, openDatabase } from '../../src/app/open_database.ts';
import { openRealmQueue } from '../../src/deliver/webhooks/realm_queue.ts';
import { changeWebhook } from '../../src/deliver/webhooks/targets.ts';
import type { Webhook } from '../../src/deliver/webhooks/webhook.ts';
import { NIL_UUID, type Uuid } from '../../src/model/id.ts';
import { LIMITS } from '../../src/model/limits.ts';
import { systemClock } from '../../src/ops/process/clock.ts';
import { freshDatabase, type TestDatabase } from '../support/database.ts';
import type { MovableClock } from '../support/movable_clock.ts';
import { createFixture } from '../support/service.ts';
import { addTarget, clockOrderOf, endRecentWrites, webhookDeps } from '../support/webhook_receivers.ts';
import { holdLease } from '../support/webhook_service.ts';

/** Which realms are queued for a target: those with undelivered changes, and no others. Nothing is sent here. */

// PostgreSQL numbers transactions by server: those of other suites would count as recent here.
delete process.env.AUTHREALM_TEST_POSTGRES;

setDefaultTimeout(300_000);

let database: TestDatabase;
let db: OpenDatabase;
let settings: Settings;
let clock: MovableClock;
let webhook: Webhook;
let queue: ReturnType<typeof openRealmQueue>;
/** Realms that have a slot. */
const running = new Set<Uuid>();
let one: Uuid;
let other: Uuid;
let busy: Uuid;

beforeEach(async () => {
  database = await freshDatabase();
  settings = database.settings({ AUTHREALM_ALLOW_PRIVATE: 'localhost 127.0.0.0/8' });
  db = await openDatabase(settings, systemClock);
  [one, other, busy] = (await Promise.all([createFixture(db), createFixture(db), createFixture(db)])).map(
    ({ realm }) => realm,
  ) as [Uuid, Uuid, Uuid];
  ({ webhook } = await addTarget({ db, settings }, 'http://127.0.0.1:9/'));
  // No change of these realms was delivered.
  await database.tamper('update webhook_progress set seq = 0');
  await endRecentWrites(database);
  clock = frozenClock();
  queue = queueOf(webhook);
});

afterEach(() => db.engine.close());

/** A clock that only `advance` moves: a scan ends when it has read everything, however slow the machine is. */
function frozenClock(): MovableClock {
  let at = systemClock.now();
  const now = () => at;
  return {
    ...systemClock,
    now,
    monotonic: now,
    advance: (milliseconds) => {
      at += milliseconds;
    },
  };
}

function queueOf(target: Webhook, store = db.engine.webhooks) {
  running.clear();
  return openRealmQueue({ store, clock, webhook: target, running });
}

/** Takes all queued realms, or at most so many, and delivers nothing. */
async function takeAll(most = Number.POSITIVE_INFINITY): Promise<readonly Uuid[]> {
  const taken: Uuid[] = [];
  for (let before = -1; before < taken.length && taken.length < most; ) {
    before = taken.length;
    await queue.fill(true);
    for (let next = take(); next; next = taken.length < most ? take() : undefined) {
      if (!taken.includes(next)) taken.push(next);
    }
  }
  return taken;
}

const take = () => queue.take(true);

/** Writes to another realm until earlier writes no longer count as recent transactions. */
async function writeElsewhere(): Promise<void> {
  for (let count = 0; count < 20; count += 1) await createFixture(db, { realm: busy });
  await endRecentWrites(database);
}

/** Takes all realms, until none of them counts as written recently. */
async function settle(): Promise<void> {
  await takeAll();
  await writeElsewhere();
  await takeAll();
}

async function saveProgress(realm: Uuid, seq: number, attempts: number, nextAt: number): Promise<void> {
  const lease = await holdLease({ db });
  const failed = { failedSeq: attempts && seq + 1, behindSince: attempts && 1 };
  const result = { webhookId: webhook.webhookId, progress: { realm, seq, attempts, nextAt, ...failed } };
  expect(await db.engine.webhooks.saveResult(lease, result)).toBe(true);
}

test('the first scan queues every realm, later scans queue the realms written since', async () => {
  expect((await takeAll()).toSorted()).toEqual([one, other, busy].toSorted());
  await writeElsewhere();
  expect(new Set(await takeAll())).toEqual(new Set([busy]));
  expect(await takeAll()).toEqual([]);
  await createFixture(db, { realm: one });
  const found = await takeAll();
  expect(found).toContain(one);
  expect(found).not.toContain(other);
});

test('a realm without undelivered changes is not queued', async () => {
  await saveProgress(one, 6, 0, 0);
  expect((await takeAll()).toSorted()).toEqual([other, busy].toSorted());
});

test('more realms than fit into a page are queued once each', async () => {
  await takeAll();
  const created = Array.from({ length: 150 }, () => systemClock.mintId());
  for (const realm of created) {
    await database.tamper(
      'insert into realm_clock (realm_id, seq, moved) select ?, 1, max(moved) + 1000000 from realm_clock',
      realm,
    );
  }
  if (database.address.engine === 'postgres') {
    // No transaction has had these numbers yet, as after rows of another cluster were inserted.
    expect((await takeAll()).filter((realm) => created.includes(realm))).toEqual([]);
    await database.tamper(`update realm_clock set moved = ${await clockNow()} where seq = 1`);
  }
  expect((await takeAll()).filter((realm) => created.includes(realm))).toEqual(created);
});

/** The number of a write made now. */
async function clockNow(): Promise<number> {
  const [found] = await database.query<{ readonly now: number }>(
    `select ${clockOrderOf(database).now} as now`,
  );
  return found?.now ?? 0;
}

/** Two pages of realms whose clocks seem never to have moved: only a sweep finds them. Returns all realms in the order of a sweep. */
async function addStillRealms(): Promise<readonly Uuid[]> {
  const still = Array.from({ length: 2 * LIMITS.webhookScanRealms - 3 }, () => systemClock.mintId());
  const rows = still.map(() => '(?, 1, 0)').join(', ');
  await database.tamper(`insert into realm_clock (realm_id, seq, moved) values ${rows}`, ...still);
  const all = await database.query<{ realm_id: Uuid }>(
    'select realm_id from realm_clock where realm_id <> ? order by moved, realm_id',
    NIL_UUID,
  );
  return all.map(({ realm_id }) => realm_id);
}

test('a sweep queues each realm once, also where its last page is full', async () => {
  const realms = await addStillRealms();
  expect(await takeAll()).toEqual(realms);
});

test('a sweep that finds no free slot continues where it stopped', async () => {
  const realms = await addStillRealms();
  expect(await takeAll(1)).toEqual(realms.slice(0, 1));
  expect(await takeAll(1)).toEqual(realms.slice(1, 2));
  expect(await takeAll()).toEqual(realms.slice(2));
});

test('the queue reads no more realms while enough of them wait for a slot', async () => {
  await addStillRealms();
  const { webhooks } = db.engine;
  let reads = 0;
  const dueRealms: typeof webhooks.dueRealms = (target, now, after) => {
    if (after) reads += 1;
    return webhooks.dueRealms(target, now, after);
  };
  queue = queueOf(webhook, { ...webhooks, dueRealms });
  await queue.fill(true);
  // The sweep, and the clocks that advanced.
  expect(reads).toBe(2);
  for (let free = 0; free < LIMITS.webhookRealmsAtOnceMax; free += 1) {
    take();
    await queue.fill(true);
  }
  expect(reads).toBe(2);
});

test('a realm without a free slot stays first in turn', async () => {
  await settle();
  await createFixture(db, { realm: one });
  for (let count = 0; count < 4; count += 1) {
    await queue.fill(true);
  }
  expect(await takeAll()).toContain(one);
});

test('a failed message is queued when it is due, and not before', async () => {
  await takeAll();
  await saveProgress(one, 3, 2, clock.now() + 5_000);
  expect(await takeAll()).not.toContain(one);
  clock.advance(5_001);
  expect(await takeAll()).toContain(one);
  expect(await db.engine.webhooks.progress(webhook.webhookId, one)).toMatchObject({ seq: 3, failedSeq: 4 });
});

test('many failed messages that are due do not keep a new change waiting', async () => {
  await settle();
  const failing = await addStillRealms();
  for (const realm of failing) if (realm !== one) await saveProgress(realm, 0, 1, 1);
  await createFixture(db, { realm: one });
  await queue.fill(true);
  const queued: Uuid[] = [];
  for (let next = take(); next; next = take()) queued.push(next);
  expect(queued).toContain(one);
  expect(queued.length).toBeLessThanOrEqual(3 * LIMITS.webhookScanRealms);
});

test('failed messages of realms removed from the list delay no other realm', async () => {
  const removed = (await Promise.all(Array.from({ length: 5 }, () => createFixture(db)))).map(
    ({ realm }) => realm,
  );
  await endRecentWrites(database);
  const changed = await changeWebhook(
    webhookDeps({ db, settings }),
    webhook.webhookId,
    { realms: new Set([one]) },
    systemClock,
  );
  queue = queueOf(changed as Webhook);
  for (const realm of removed) await saveProgress(realm, 1, 1, 1);
  await saveProgress(one, 3, 2, 2);
  expect(await takeAll()).toEqual([one]);
  const left = await database.query(
    'select realm_id from webhook_progress where webhook_id = ?',
    webhook.webhookId,
  );
  expect(left).toEqual([{ realm_id: one }]);
});

test('a realm written during its delivery waits for its slot, and is queued again afterwards', async () => {
  await settle();
  await createFixture(db, { realm: one });
  expect(await takeAll()).toContain(one);
  running.add(one);
  await createFixture(db, { realm: one });
  expect(await takeAll()).not.toContain(one);
  running.clear();
  expect(await takeAll()).toContain(one);
});

test('realms that are written whenever they are delivered keep no other realm waiting', async () => {
  await settle();
  const always = await Promise.all([
    createFixture(db),
    createFixture(db),
    createFixture(db),
    createFixture(db),
  ]);
  for (const { realm } of always) running.add(realm);
  await queue.fill(true);
  await createFixture(db, { realm: one });
  await queue.fill(true);
  const [freed] = running;
  running.delete(freed as Uuid);
  const queued: Uuid[] = [];
  for (let next = take(); next; next = take()) queued.push(next);
  expect(queued).toContain(one);
});

test('a realm with more to deliver is queued again', async () => {
  queue.add(other);
  expect(take()).toBe(other);
});

test('while a target is suspended only realms with a failed message are queued', async () => {
  await saveProgress(one, 0, 1, 1);
  await queue.fill(false);
  expect([queue.take(false), queue.take(false)]).toEqual([one, undefined]);
  await queue.fill(true);
  expect(queue.take(false)).toBe(one);
  expect(queue.take(false)).toBeUndefined();
  expect(queue.take(true)).toBeDefined();
});

test('a write whose realm is not found as moved, as on a node with a wrong clock, is queued within ten minutes', async () => {
  await settle();
  await database.tamper('update realm_clock set seq = seq + 1 where realm_id = ?', one);
  expect(await takeAll()).not.toContain(one);
  expect(LIMITS.webhookSweepMs).toBe(600_000);
  clock.advance(LIMITS.webhookSweepMs);
  expect(await takeAll()).toContain(one);
});

test('a realm that was removed from the list during its delivery is not queued again', async () => {
  queue = queueOf({ ...webhook, realms: new Set([other]) });
  queue.add(one);
  expect(await takeAll()).toEqual([other]);
});

test('a sweep queues only the realms of the target', async () => {
  await addStillRealms();
  const realms = new Set([one, other]);
  queue = queueOf({ ...webhook, realms });
  expect(new Set(await takeAll())).toEqual(realms);
});

/** Runs a function while a write to the realm is uncommitted: on PostgreSQL only, which has concurrent writes. */
async function whileOneIsWritten(during: () => Promise<void>): Promise<void> {
  const client = new SQL(database.url, { max: 1 });
  await client.begin(async (writing) => {
    // Asked first: Citus allows no volatile function in an update.
    const [{ now }] = await writing.unsafe(`select ${clockOrderOf(database).now} as now`);
    await writing.unsafe(`update realm_clock set seq = seq + 1, moved = ${now} where realm_id = '${one}'`);
    await during();
  });
  await client.close();
}

test('a late commit is queued although new realms always outnumber the free slots', async () => {
  if (database.address.engine !== 'postgres') return;
  await takeAll();
  await whileOneIsWritten(async () => {
    await writeElsewhere();
    await Promise.all([createFixture(db), createFixture(db)]);
    expect(await takeAll(1)).not.toContain(one);
    expect(await takeAll(1)).not.toContain(one);
  });
  let isQueued = false;
  for (let scans = 0; scans < 40 && !isQueued; scans += 1) {
    await Promise.all([createFixture(db), createFixture(db)]);
    isQueued = (await takeAll(1)).includes(one);
  }
  expect(isQueued).toBe(true);
});

test('a write that begins before others and is committed after them is queued', async () => {
  if (database.address.engine !== 'postgres') return;
  await takeAll();
  await whileOneIsWritten(async () => {
    await writeElsewhere();
    expect(await takeAll()).not.toContain(one);
    await writeElsewhere();
    await takeAll();
  });
  expect(await takeAll()).toContain(one);
});

test('realms beyond the time budget of one scan are queued by later scans, also during a long transaction', async () => {
  await takeAll();
  const { webhooks } = db.engine;
  const dueRealms: typeof webhooks.dueRealms = (...request) => {
    // So slow that one page uses up the time budget.
    clock.advance(LIMITS.webhookScanMsMax);
    return webhooks.dueRealms(...request);
  };
  queue = queueOf(webhook, { ...webhooks, dueRealms });
  const queue150 = async () => {
    const created = Array.from({ length: 150 }, () => systemClock.mintId());
    const { now } = clockOrderOf(database);
    for (const realm of created) {
      await database.tamper(`insert into realm_clock (realm_id, seq, moved) select ?, 1, ${now}`, realm);
    }
    const left = new Set(created);
    for (let scan = 0; scan < 20; scan += 1) {
      await queue.fill(true);
      for (let next = take(); next; next = take()) left.delete(next);
    }
    expect(left.size).toBe(0);
  };
  if (database.address.engine === 'sqlite') await queue150();
  else {
    const client = new SQL(database.url, { max: 1 });
    await client.begin(async (writing) => {
      await writing.unsafe('select pg_current_xact_id()');
      await queue150();
    });
    await client.close();
  }
});
