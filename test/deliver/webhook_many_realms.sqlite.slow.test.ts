import { expect, setDefaultTimeout, test } from 'bun:test';
import { changeWebhook } from '../../src/deliver/webhooks/targets.ts';
import { realm as realmResource } from '../../src/model/resources.ts';
import { systemClock } from '../../src/ops/process/clock.ts';
import { insertRecord, realmMembers } from '../support/service.ts';
import { addTarget, sequenceRange, startReceiver, webhookDeps } from '../support/webhook_receivers.ts';
import { CHANGES, startWebhookService, untilStored } from '../support/webhook_service.ts';

/** Targets that are down, while there is much to deliver. */

setDefaultTimeout(600_000);

const REALMS = 10_000;
const DAY_MS = 86_400_000;

const hooks = await startWebhookService();
const { service } = hooks;

test('of two targets of 10,000 realms one is down: the other receives everything, and it catches up once it is up', async () => {
  const realms = Array.from({ length: REALMS }, () => systemClock.mintId());
  for (let done = 0; done < REALMS; done += 100) {
    const some = realms.slice(done, done + 100);
    await Promise.all(some.map((id) => insertRecord(service.db, realmResource, [id], realmMembers)));
  }
  const down = startReceiver();
  down.respond(() => new Response(null, { status: 503 }));
  const options = { realms: new Set(realms), from: 'oldest' } as const;
  const { webhook } = await addTarget(service, down.url, options);
  await addTarget(service, hooks.receiver.url, options);
  await hooks.receiver.until(() => hooks.receiver.accepted.length === REALMS, 300_000);
  for (const each of realms) expect(hooks.receiver.sequences(each)).toEqual([1]);
  // A few realms were tried, at growing intervals.
  expect(down.received.length).toBeLessThan(REALMS / 20);
  down.respond(() => new Response());
  await changeWebhook(webhookDeps(service), webhook.webhookId, { name: 'up again' }, systemClock);
  await down.until(() => down.accepted.length > REALMS / 10, 300_000);
});

test('two realms whose messages fail delay no other realm for long', async () => {
  const others = Array.from({ length: 20 }, () => systemClock.mintId());
  const failing = [systemClock.mintId(), systemClock.mintId()];
  for (const id of [...failing, ...others]) await insertRecord(service.db, realmResource, [id], realmMembers);
  hooks.receiver.respond(({ events }) => {
    const isFailing = failing.some((id) => id === events[0]?.data.realm_id);
    return new Response(null, { status: isFailing ? 503 : 204 });
  });
  await hooks.addReceiver({ realms: new Set([...failing, ...others]), from: 'oldest' });
  await hooks.receiver.until(() => hooks.receiver.accepted.length === others.length, 30_000);
});

test('a target that was down for a day receives everything in order, and nothing is a dead letter', async () => {
  hooks.receiver.respond(() => new Response(null, { status: 503 }));
  const id = await hooks.addReceiver({ from: 'oldest' });
  await hooks.receiver.until(() => hooks.receiver.received.length >= 2);
  service.clock.advance(DAY_MS);
  await untilStored(async () => (await hooks.deliveries(id)).length > 2);
  hooks.receiver.respond(() => new Response());
  service.clock.advance(DAY_MS);
  await hooks.receiver.until(() => hooks.receiver.accepted.length === CHANGES);
  expect(hooks.receiver.sequences(hooks.fixture.realm)).toEqual(sequenceRange(CHANGES));
  expect(await hooks.deadLetters(id)).toEqual([]);
});
