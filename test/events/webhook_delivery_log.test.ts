import { afterEach, beforeEach, expect, setDefaultTimeout, test } from 'bun:test';
import { systemAmbient } from '../../src/ambient.ts';
import { Fault } from '../../src/domain/fault.ts';
import type { Uuid } from '../../src/domain/id.ts';
import { openVault, type Vault } from '../../src/vault.ts';
import { type Ledger, openLedger } from '../../src/webhooks/ledger.ts';
import { freshDatabase } from '../support/database.ts';
import { target } from '../support/receivers.ts';
import { plant } from '../support/service.ts';

/** When what was sent to a target is written down, and who hears of it. */

setDefaultTimeout(300_000);

const LEASE = { name: 'test', holder: 'test' };

let vault: Vault;
let webhookId: string;
let ledger: Ledger;
let one: Uuid;
let busy: Uuid;

beforeEach(async () => {
  const database = await freshDatabase();
  const settings = database.settings({ AUTHREALM_ALLOW_LOOPBACK_WEBHOOKS: 'true' });
  vault = await openVault(settings, systemAmbient);
  [one, busy] = (await Promise.all([plant(vault), plant(vault)])).map(({ realm }) => realm) as [Uuid, Uuid];
  ({ webhookId } = (await target({ vault, settings }, 'http://127.0.0.1:9/')).webhook);
  await vault.engine.leases.replace({ ...LEASE, until: 1 }, undefined);
  ledger = openLedger(vault.engine.webhooks, webhookId, LEASE);
});

afterEach(async () => {
  ledger.close();
  await ledger.settled().catch(() => undefined);
  await vault.engine.close();
});

function note(realm: Uuid, seq: number): void {
  ledger.noteProgress({ realm, seq, attempts: 0, nextAt: 0, failedSeq: 0, behindSince: 0 });
}

const placeOf = async (realm: Uuid) => (await vault.engine.webhooks.standingsOf(webhookId, [realm]))[0]?.seq;

test('who waits hears once his own is written down, however much is noted meanwhile', async () => {
  let isOver = false;
  let seq = 0;
  const goOn = (): void => {
    seq += 1;
    note(busy, seq);
    if (!isOver) setImmediate(goOn);
  };
  note(one, 3);
  goOn();
  const settled = await Promise.race([ledger.settled().then(() => true), Bun.sleep(10_000)]);
  isOver = true;
  expect(settled).toBe(true);
  expect(await placeOf(one)).toBe(3);
  await ledger.settled();
  expect(await placeOf(busy)).toBe(seq);
});

test('who waits for what nobody may write down any more hears of its end', async () => {
  await ledger.settled();
  note(one, 2);
  await ledger.settled();
  await vault.engine.leases.giveBack(LEASE.name, LEASE.holder);
  note(one, 3);
  await ledger.settled();
  expect(ledger.isClosed()).toBe(true);
  note(one, 4);
  await ledger.settled();
  expect(await placeOf(one)).toBe(2);
});

test('what cannot be written down for now is waited for until it is, and what was noted since is right', async () => {
  const store = vault.engine.webhooks;
  let faults = 0;
  const settle: typeof store.settle = (...asked) => {
    faults += 1;
    if (faults > 1) return store.settle(...asked);
    // The next place is noted while the one before it is on its way.
    note(one, 3);
    return Promise.reject(new Fault('unavailable'));
  };
  ledger = openLedger({ trim: store.trim, settle }, webhookId, LEASE);
  note(one, 2);
  note(busy, 4);
  await ledger.settled();
  expect(faults).toBe(2);
  expect([await placeOf(one), await placeOf(busy)]).toEqual([3, 4]);
});

test('who waits hears of a failure that nobody foresaw', async () => {
  const { trim } = vault.engine.webhooks;
  ledger = openLedger({ trim, settle: () => Promise.reject(new TypeError('ours')) }, webhookId, LEASE);
  note(one, 2);
  expect(await ledger.settled().catch((error: unknown) => error)).toBeInstanceOf(TypeError);
});
