import { Webhook as Verifier } from 'standardwebhooks';
import { urlRule } from '../../src/app/config/parse.ts';
import {
  createWebhook,
  deleteWebhook,
  type IssuedWebhook,
  type WebhookDeps,
} from '../../src/deliver/webhooks/targets.ts';
import type { WebhookOptions } from '../../src/deliver/webhooks/webhook.ts';
import { systemClock } from '../../src/ops/process/clock.ts';
import { CITUS, POSTGRES } from '../../src/records/store/postgres/dialect.ts';
import { SQLITE } from '../../src/records/store/sqlite/dialect.ts';
import type { ClockOrder } from '../../src/sql/dialect.ts';
import { isCitusEngine } from './citus_cluster.ts';
import type { TestDatabase } from './database.ts';
import { atEnd } from './ending.ts';
import type { Service } from './service.ts';

/** An event as a receiver reads it. */
export interface ReceivedEvent {
  readonly id: string;
  readonly source: string;
  readonly type: string;
  readonly sequence: string;
  readonly data: {
    readonly realm_id: string;
    readonly record_id: string;
    readonly client_id: string;
    readonly record?: unknown;
  };
}

/** A message as received. */
export interface ReceivedMessage {
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
  readonly events: readonly ReceivedEvent[];
}

/** A server that receives webhook messages. */
export interface WebhookReceiver {
  readonly url: string;
  /** Every message answered with a 2xx. */
  readonly accepted: readonly ReceivedMessage[];
  /** Every received message. */
  readonly received: readonly ReceivedMessage[];
  /** Sets the handler of later messages. Default: 204. */
  respond(by: (message: ReceivedMessage) => Response | Promise<Response>): void;
  /** The sequence numbers of the accepted events of a realm, in the order received. */
  sequences(realm: string): readonly number[];
  /** Resolves once the condition holds; rejects after `ms`. */
  until(isTrue: () => boolean, ms?: number): Promise<void>;
  stop(): void;
}

export function startReceiver(): WebhookReceiver {
  const accepted: ReceivedMessage[] = [];
  const received: ReceivedMessage[] = [];
  const sequencesByRealm = new Map<string, number[]>();
  const accept = (message: ReceivedMessage): void => {
    accepted.push(message);
    for (const { data, sequence } of message.events) {
      const known = sequencesByRealm.get(data.realm_id) ?? [];
      known.push(Number(sequence));
      sequencesByRealm.set(data.realm_id, known);
    }
  };
  let answer: (message: ReceivedMessage) => Response | Promise<Response> = () =>
    new Response(null, { status: 204 });
  const server = Bun.serve({
    port: 0,
    hostname: '127.0.0.1',
    maxRequestBodySize: 16_777_216,
    async fetch(request) {
      const body = await request.text();
      const parsed = JSON.parse(body) as ReceivedEvent | readonly ReceivedEvent[];
      const events = Array.isArray(parsed) ? parsed : [parsed];
      const message = { headers: Object.fromEntries(request.headers), body, events } as ReceivedMessage;
      received.push(message);
      const reply = await answer(message);
      if (reply.ok) accept(message);
      return reply;
    },
  });
  atEnd(() => server.stop(true));
  return {
    url: `http://127.0.0.1:${server.port}/hook?to=us`,
    accepted,
    received,
    respond(by) {
      answer = by;
    },
    sequences: (realm) => sequencesByRealm.get(realm) ?? [],
    async until(isTrue, ms = 60_000) {
      const deadline = performance.now() + ms;
      while (!isTrue()) {
        if (performance.now() > deadline) {
          throw new Error(`timed out: ${received.length} messages, ${accepted.length} of them accepted`);
        }
        await Bun.sleep(10);
      }
    },
    stop: () => server.stop(true),
  };
}

/** Throws where the signature of a message is invalid, by the library of the specification. */
export function verifySignature(secret: string, { headers, body }: ReceivedMessage): void {
  new Verifier(secret).verify(body, { ...headers });
}

export function webhookDeps({ db, settings }: Pick<Service, 'db' | 'settings'>): WebhookDeps {
  return {
    store: db.engine.webhooks,
    keyring: db.keyring,
    brokenUrlRule: urlRule(settings),
  };
}

/** Creates a target with this URL, by default for single events of all kinds and realms. */
export function addTarget(
  service: Pick<Service, 'db' | 'settings'>,
  url: string,
  options: Partial<WebhookOptions> & { readonly from?: 'present' | 'oldest' } = {},
): Promise<IssuedWebhook> {
  const { from = 'present', ...others } = options;
  const allOptions: WebhookOptions = {
    name: 'test',
    url,
    events: '*',
    realms: '*',
    withData: false,
    eventsMax: 1,
    skippedClient: undefined,
    ...others,
  };
  return createWebhook(webhookDeps(service), allOptions, from, systemClock);
}

/** The numbers from `first` to `last`. */
export function sequenceRange(last: number, first = 1): readonly number[] {
  return Array.from({ length: last - first + 1 }, (_, at) => first + at);
}

/** Stores the first change of a realm as a dead letter of a target. */
export async function insertDeadLetter(
  { database }: Pick<Service, 'database'>,
  webhookId: string,
  realm: string,
): Promise<void> {
  await database.tamper(
    `insert into dead_letter (webhook_id, realm_id, first_seq, last_seq, attempts, at) values (?, ?, 1, 1, 9, 1)`,
    webhookId,
    realm,
  );
}

/** Deletes all targets of a service. */
export async function deleteTargets({ db }: Service): Promise<void> {
  const { webhooks } = db.engine;
  for (const { webhookId } of await webhooks.list()) await deleteWebhook(webhooks, webhookId, systemClock);
}

/** How the engine of a test database orders clocks. */
export function clockOrderOf({ address }: Pick<TestDatabase, 'address'>): ClockOrder {
  if (address.engine === 'sqlite') return SQLITE.clockOrder;
  return (isCitusEngine ? CITUS : POSTGRES).clockOrder;
}

/**
 * Makes all writes so far older than those that a scan begun after it reads, and leaves them to the scan that is due now: uses up
 * PostgreSQL transaction IDs, or sets back the clocks of a cluster, which are ordered by time.
 */
export async function endRecentWrites(database: TestDatabase): Promise<void> {
  if (database.address.engine === 'sqlite') return;
  const { ask, close } = database.connect();
  if (isCitusEngine) {
    // A scan reads the clocks since the second before its predecessor's, so that second must have ended.
    await Bun.sleep(1_000);
    const [bounds] = await ask<{ readonly begins: number }>(clockOrderOf(database).bounds);
    const last = String((bounds?.begins ?? 0) - 1);
    await database.tamper(`update realm_clock set moved = ${last} where moved > ${last}`);
  } else for (let count = 0; count < 64; count += 1) await ask('select pg_current_xact_id()::text');
  await close();
}
