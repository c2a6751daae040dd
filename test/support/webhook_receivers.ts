import { Webhook as Verifier } from 'standardwebhooks';
import { webhookRule } from '../../src/config/parse.ts';
import {
  createWebhook,
  deleteWebhook,
  type IssuedWebhook,
  type WebhookDeps,
  type WebhookOptions,
} from '../../src/events/webhooks/targets.ts';
import { systemClock } from '../../src/platform/clock.ts';
import type { TestDatabase } from './database.ts';
import type { Service } from './service.ts';

/** One event as a receiver reads it. */
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

/** One message as it came. */
export interface ReceivedMessage {
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
  readonly events: readonly ReceivedEvent[];
}

/** A real server that is told events. */
export interface WebhookReceiver {
  readonly url: string;
  /** Every message that it answered with a 2xx. */
  readonly accepted: readonly ReceivedMessage[];
  /** Every message that came. */
  readonly received: readonly ReceivedMessage[];
  /** What it answers from now on: 204 unless told otherwise. */
  respond(by: (message: ReceivedMessage) => Response | Promise<Response>): void;
  /** The places of accepted events in a realm, in the order in which they came. */
  sequences(realm: string): readonly number[];
  /** Resolves once something is so. */
  until(isSo: () => boolean, ms?: number): Promise<void>;
  stop(): void;
}

export function startReceiver(): WebhookReceiver {
  const accepted: ReceivedMessage[] = [];
  const received: ReceivedMessage[] = [];
  const places = new Map<string, number[]>();
  const accept = (message: ReceivedMessage): void => {
    accepted.push(message);
    for (const { data, sequence } of message.events) {
      const known = places.get(data.realm_id) ?? [];
      known.push(Number(sequence));
      places.set(data.realm_id, known);
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
      const said = JSON.parse(body) as ReceivedEvent | readonly ReceivedEvent[];
      const events = Array.isArray(said) ? said : [said];
      const message = { headers: Object.fromEntries(request.headers), body, events } as ReceivedMessage;
      received.push(message);
      const reply = await answer(message);
      if (reply.ok) accept(message);
      return reply;
    },
  });
  return {
    url: `http://127.0.0.1:${server.port}/hook?to=us`,
    accepted,
    received,
    respond(by) {
      answer = by;
    },
    sequences: (realm) => places.get(realm) ?? [],
    async until(isSo, ms = 15_000) {
      const deadline = performance.now() + ms;
      while (!isSo()) {
        if (performance.now() > deadline) {
          throw new Error(`it never came: ${received.length} messages, ${accepted.length} of them accepted`);
        }
        await Bun.sleep(10);
      }
    },
    stop: () => server.stop(true),
  };
}

/** Throws where a message is not signed by this secret, as the specification's own library sees it. */
export function verifySignature(secret: string, { headers, body }: ReceivedMessage): void {
  new Verifier(secret).verify(body, { ...headers });
}

export function webhookDeps({ db, settings }: Pick<Service, 'db' | 'settings'>): WebhookDeps {
  return { store: db.engine.webhooks, keyring: db.keyring, isAllowed: webhookRule(settings) };
}

/** A target that leads to a URL: all events of all realms, one by one, unless told otherwise. */
export function addTarget(
  service: Pick<Service, 'db' | 'settings'>,
  url: string,
  wish: Partial<WebhookOptions> & { readonly from?: 'present' | 'oldest' } = {},
): Promise<IssuedWebhook> {
  const { from = 'present', ...said } = wish;
  const whole: WebhookOptions = {
    ...{
      name: 'test',
      url,
      events: '*',
      realms: '*',
      withData: false,
      eventsMax: 1,
      skippedClient: undefined,
    },
    ...said,
  };
  return createWebhook(webhookDeps(service), whole, from, systemClock);
}

/** Places from 1 to `last`. */
export function sequenceRange(last: number, first = 1): readonly number[] {
  return Array.from({ length: last - first + 1 }, (_, at) => first + at);
}

/** A service tells nobody any more. */
export async function deleteTargets({ db }: Service): Promise<void> {
  const { webhooks } = db.engine;
  for (const { webhookId } of await webhooks.list()) await deleteWebhook(webhooks, webhookId, systemClock);
}

/** Transactions of PostgreSQL share a number: has so many of them be over that what was written has one of its own. */
export async function advanceTransactionIds({ address, connect }: TestDatabase): Promise<void> {
  if (address.engine === 'sqlite') return;
  const { ask, close } = connect();
  for (let count = 0; count < 64; count += 1) await ask('select pg_current_xact_id()::text');
  await close();
}
