import { afterEach, beforeEach } from 'bun:test';
import type { DeadLetter, Delivery, WebhookOptions } from '../../src/deliver/webhooks/webhook.ts';
import { createFixture, type Fixture, type Service, startService } from './service.ts';
import { addTarget, deleteTargets, startReceiver, type WebhookReceiver } from './webhook_receivers.ts';

/** The changes that one call of `createFixture` makes in a new realm, and in an existing one. */
export const CHANGES = 6;
export const FURTHER_CHANGES = 5;

/** The flags of a service that may send to receivers on this machine. */
export const LOOPBACK_TARGETS = { offline: 'true', allowPrivate: 'localhost 127.0.0.0/8' } as const;

/** A service for the tests of a file; each test has a receiver and a realm of its own, and leaves no target. */
export interface WebhookService {
  readonly service: Service;
  receiver: WebhookReceiver;
  fixture: Fixture;
  /** Creates a target with the receiver's URL for the realm, by default for single events of all kinds. Returns its ID. */
  addReceiver(options?: Partial<WebhookOptions> & { readonly from?: 'present' | 'oldest' }): Promise<string>;
  /** The newest deliveries first. */
  deliveries(webhookId: string): Promise<readonly Delivery[]>;
  deadLetters(webhookId: string): Promise<readonly DeadLetter[]>;
}

export async function startWebhookService(): Promise<WebhookService> {
  const service = await startService(LOOPBACK_TARGETS);
  const { webhooks } = service.db.engine;
  const hooks: WebhookService = {
    service,
    receiver: startReceiver(),
    fixture: await createFixture(service.db),
    async addReceiver(options = {}) {
      const realms = new Set([hooks.fixture.realm]);
      const { webhook } = await addTarget(service, hooks.receiver.url, { realms, ...options });
      return webhook.webhookId;
    },
    deliveries: async (webhookId) => webhooks.deliveries(webhookId, undefined, 1_000),
    deadLetters: async (webhookId) => webhooks.deadLetters(webhookId, undefined, 1_000),
  };
  beforeEach(async () => {
    hooks.receiver = startReceiver();
    hooks.fixture = await createFixture(service.db);
  });
  afterEach(() => deleteTargets(service));
  return hooks;
}

/** Resolves once a condition on stored rows holds. */
export async function untilStored(condition: () => Promise<boolean>): Promise<void> {
  while (!(await condition())) await Bun.sleep(50);
}

/** A lease of the test, with which it stores results as a process that delivers does. */
export async function holdLease({ db }: Pick<Service, 'db'>): Promise<{ name: string; holder: string }> {
  const lease = { name: 'test', holder: 'test' };
  await db.engine.leases.replace({ ...lease, until: 1 }, undefined);
  return lease;
}
