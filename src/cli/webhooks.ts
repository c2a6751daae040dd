import { type Command, InvalidArgumentError } from 'commander';
import { systemAmbient } from '../ambient.ts';
import { webhookRule } from '../config.ts';
import { Fault, Refusal } from '../domain/fault.ts';
import type { Uuid } from '../domain/id.ts';
import { LIMITS } from '../domain/limits.ts';
import type { Realms } from '../domain/principal.ts';
import { openVault } from '../vault.ts';
import type { DeadLetter, Delivery, Webhook } from '../webhooks/port.ts';
import {
  changeWebhook,
  createWebhook,
  deleteWebhook,
  EVENT_NAMES,
  findWebhook,
  type IssuedWebhook,
  redeliver,
  rotateWebhook,
  type WebhookPatch,
  type WebhookRooms,
} from '../webhooks/targets.ts';
import { addDatabaseSettings, addSettings, type CliContext } from './context.ts';
import { type Description, show, showAll } from './descriptions.ts';
import { realmIds } from './identifiers.ts';

interface WebhookOptions {
  readonly name?: string;
  readonly url?: string;
  readonly event?: readonly string[];
  readonly allEvents?: true;
  readonly realm?: readonly Uuid[];
  readonly allRealms?: true;
  /** Of `create` a switch, of `update` a word. */
  readonly withData?: boolean;
  readonly eventsMax?: number;
  readonly skipClient?: string;
  readonly from?: 'present' | 'oldest';
  readonly json?: true;
  /** Milliseconds. */
  readonly overlap?: number;
  readonly limit?: number;
  readonly dead?: true;
  readonly all?: true;
  readonly firstSeq?: number;
}

/** `webhook`: who is told what changes. */
export function addWebhookCommands(program: Command, context: CliContext): void {
  const webhook = program.command('webhook').description('who is told what changes');

  async function withRooms<T>(command: Command, work: (rooms: WebhookRooms) => Promise<T>): Promise<T> {
    const settings = context.settingsOf(command);
    const { engine, keyring } = await openVault(settings, systemAmbient);
    try {
      return await work({ store: engine.webhooks, keyring, isAllowed: webhookRule(settings) });
    } catch (error) {
      throw refusedBy(error);
    } finally {
      await engine.close();
    }
  }

  const named = (name: string, description: string): Command =>
    addDatabaseSettings(webhook.command(name).argument('<webhook-id>')).description(description);

  addCreate(webhook, withRooms);
  addDatabaseSettings(webhook.command('list'))
    .description('list the targets, without secrets')
    .option('--json', 'write JSON')
    .action(async (options: WebhookOptions, command: Command) => {
      const all = await withRooms(command, async ({ store }) => store.list());
      showAll(all.map(describe), options.json);
    });
  named('show', 'show a target, without its secret')
    .option('--json', 'write JSON')
    .action(async (id: string, options: WebhookOptions, command: Command) => {
      show(
        describe(found(id, await withRooms(command, ({ store }) => findWebhook(store, id)))),
        options.json,
      );
    });
  addChanges(named, withRooms);
  named('delete', 'forget a target, its deliveries and what it was not told').action(
    async (id: string, _options, command: Command) => {
      const isGone = await withRooms(command, ({ store }) => deleteWebhook(store, id, systemAmbient));
      found(id, isGone || undefined);
      console.log(`${id} is deleted`);
    },
  );
  addDeliveries(named, withRooms);
}

type WithRooms = <T>(command: Command, work: (rooms: WebhookRooms) => Promise<T>) => Promise<T>;
type Named = (name: string, description: string) => Command;

function addCreate(webhook: Command, withRooms: WithRooms): void {
  addSettings(addDatabaseSettings(webhook.command('create')), ['allowLoopbackWebhooks'])
    .description('make a target and show its secret, once')
    .requiredOption('--name <NAME>', 'what people call it')
    .requiredOption('--url <URL>', 'where events are sent: https, port 443')
    .option('--event <NAMES>', EVENT_HELP, words)
    .option('--realm <ID>', REALM_HELP, realmIds)
    .option('--with-data', 'send the state of the record along')
    .option('--events-max <N>', `events of one message, 1 to ${LIMITS.webhookEventsMax}`, whole, 1)
    .option('--skip-client <ID>', 'do not tell what this client changes')
    .option('--from <present|oldest>', 'from where on it is told', beginning, 'present')
    .option('--json', 'write JSON')
    .action(async (options: WebhookOptions, command: Command) => {
      const { name = '', url = '', event, realm, withData = false, eventsMax = 1 } = options;
      const wish = {
        ...{ name, url, withData, eventsMax },
        events: event ?? ('*' as const),
        realms: realm ? new Set(realm) : ('*' as const),
        skippedClient: options.skipClient,
      };
      const from = options.from ?? 'present';
      const issued = await withRooms(command, (rooms) => createWebhook(rooms, wish, from, systemAmbient));
      show(describeIssued(issued), options.json);
    });
}

function addChanges(named: Named, withRooms: WithRooms): void {
  /** The command that makes one change to one target and shows the target as it then is. */
  const changing = (name: string, description: string, patch: (options: WebhookOptions) => WebhookPatch) =>
    named(name, description)
      .option('--json', 'write JSON')
      .action(async (id: string, options: WebhookOptions, command: Command) => {
        const wanted = patch(options);
        const changed = await withRooms(command, (rooms) => changeWebhook(rooms, id, wanted, systemAmbient));
        show(describe(found(id, changed)), options.json);
      });

  addSettings(changing('update', 'change what a target is told; felt within seconds', patchOf), [
    'allowLoopbackWebhooks',
  ])
    .option('--name <NAME>', 'what people call it')
    .option('--url <URL>', 'where events are sent: https, port 443')
    .option('--event <NAMES>', EVENT_HELP, words)
    .option('--all-events', 'tell every event')
    .option('--realm <ID>', REALM_HELP, realmIds)
    .option('--all-realms', 'lift the limit to some realms')
    .option('--with-data <true|false>', 'send the state of the record along', truth)
    .option('--events-max <N>', `events of one message, 1 to ${LIMITS.webhookEventsMax}`, whole)
    .option('--skip-client <ID>', 'do not tell what this client changes; an empty one lifts it');
  changing('disable', 'tell a target nothing for now; it is told later what it missed', () => ({
    disabledAt: systemAmbient.now(),
  }));
  changing('enable', 'go on telling a disabled target', () => ({ disabledAt: undefined }));
  named('rotate', 'give a target a new secret and show it, once')
    .option('--overlap <HOURS>', 'how long the old secret signs as well', hours, LIMITS.secretOverlapMs)
    .option('--json', 'write JSON')
    .action(async (id: string, options: WebhookOptions, command: Command) => {
      const overlap = options.overlap ?? LIMITS.secretOverlapMs;
      const issued = await withRooms(command, (rooms) => rotateWebhook(rooms, id, overlap, systemAmbient));
      show(describeIssued(found(id, issued)), options.json);
    });
}

function addDeliveries(named: Named, withRooms: WithRooms): void {
  named('deliveries', 'what was sent to a target lately, the newest first')
    .option('--limit <N>', 'how many', whole, LIMITS.pageRecordsMax)
    .option('--dead', 'what was given up instead')
    .option('--json', 'write JSON')
    .action(
      async (id: string, { limit = LIMITS.pageRecordsMax, dead, json }: WebhookOptions, command: Command) => {
        const told = await withRooms(command, async ({ store }) => {
          found(id, await findWebhook(store, id));
          return dead
            ? (await store.deadLetters(id, undefined, limit)).map(describeLetter)
            : (await store.deliveries(id, undefined, limit)).map(describeDelivery);
        });
        showAll(told, json);
      },
    );
  named('redeliver', 'send again what was given up')
    .option('--all', 'everything that was not received yet')
    .option('--realm <ID>', 'of this realm', realmIds)
    .option('--first-seq <N>', 'the dead letter that begins at this place', whole)
    .action(async (id: string, options: WebhookOptions, command: Command) => {
      const which = letterOf(options);
      const count = await withRooms(command, async ({ store }) => {
        found(id, await findWebhook(store, id));
        return redeliver(store, id, which, systemAmbient);
      });
      if (which && count === 0)
        throw new Refusal('there is no such dead letter: deliveries --dead names them all');
      console.log(`${count} sent again within seconds, while a service runs`);
    });
}

const EVENT_HELP = `tell these events alone: ${EVENT_NAMES.join(', ')}. All unless given`;
const REALM_HELP =
  'tell of this realm alone; several: separated by spaces, or given again. All realms unless given';

function letterOf({ all, realm, firstSeq }: WebhookOptions): { realm: Uuid; firstSeq: number } | undefined {
  const [one] = realm ?? [];
  if (all && !realm && firstSeq === undefined) return undefined;
  if (!all && one && firstSeq !== undefined) return { realm: one, firstSeq };
  throw new Refusal('say which: --all, or --realm and --first-seq', { isUsage: true });
}

function patchOf(options: WebhookOptions): WebhookPatch {
  const { name, url, event, allEvents, realm, allRealms, withData, eventsMax, skipClient } = options;
  if (event && allEvents) throw excluded('--event', '--all-events');
  if (realm && allRealms) throw excluded('--realm', '--all-realms');
  const events = allEvents ? '*' : event;
  const realms: Realms | undefined = allRealms ? '*' : realm && new Set(realm);
  const said = { name, url, events, realms, withData, eventsMax };
  const patch = Object.fromEntries(Object.entries(said).filter(([, value]) => value !== undefined));
  const skipped = skipClient === undefined ? {} : { skippedClient: skipClient || undefined };
  const whole: WebhookPatch = { ...patch, ...skipped };
  if (Object.keys(whole).length === 0) throw new Refusal('nothing to change: say what', { isUsage: true });
  return whole;
}

function excluded(left: string, right: string): Refusal {
  return new Refusal(`${left} and ${right} exclude each other`, { isUsage: true });
}

/** What is wrong with a target, in sentences. */
function refusedBy(error: unknown): unknown {
  if (!(error instanceof Fault) || error.complaints.length === 0) return error;
  return new Refusal(error.complaints.map(({ field, rule }) => `${field}: ${rule}`).join('\n'));
}

function found<T>(id: string, what: T | undefined): T {
  if (what !== undefined) return what;
  throw new Refusal(`there is no webhook target ${id}: authrealm webhook list names them all`);
}

function words(raw: string, before: readonly string[] = []): readonly string[] {
  return [...before, ...raw.split(' ').filter(Boolean)];
}

function whole(raw: string): number {
  if (!/^[1-9]\d{0,14}$/.test(raw)) throw new InvalidArgumentError('A whole number from 1 on is wanted.');
  return Number(raw);
}

function truth(raw: string): boolean {
  if (raw !== 'true' && raw !== 'false') throw new InvalidArgumentError('true or false is wanted.');
  return raw === 'true';
}

function beginning(raw: string): 'present' | 'oldest' {
  if (raw !== 'present' && raw !== 'oldest') throw new InvalidArgumentError('present or oldest is wanted.');
  return raw;
}

function hours(raw: string): number {
  const value = /^\d{1,4}(\.\d+)?$/.test(raw) ? Number(raw) : Number.NaN;
  if (Number.isNaN(value)) throw new InvalidArgumentError('Hours are a number from 0 to 9999.');
  return value * 3_600_000;
}

function describe(webhook: Webhook): Description {
  const { webhookId, name, url, events, realms, withData, eventsMax, skippedClient, disabledAt } = webhook;
  return {
    webhook_id: webhookId,
    name,
    url,
    events,
    realms: realms === '*' ? realms : [...realms],
    with_data: withData,
    events_max: eventsMax,
    skipped_client: skippedClient ?? null,
    state: disabledAt === undefined ? 'enabled' : 'disabled',
    created_at: instant(webhook.createdAt),
    updated_at: instant(webhook.updatedAt),
  };
}

function describeIssued({ webhook, secret }: IssuedWebhook): Description {
  return { secret, ...describe(webhook) };
}

function describeDelivery(delivery: Delivery): Description {
  return {
    delivery_id: delivery.deliveryId,
    message_id: delivery.messageId,
    realm_id: delivery.realm,
    first_seq: delivery.firstSeq,
    last_seq: delivery.lastSeq,
    attempt: delivery.attempt,
    outcome: delivery.outcome,
    status: delivery.status ?? null,
    duration_ms: delivery.durationMs,
    at: instant(delivery.at),
  };
}

function describeLetter({ realm, firstSeq, lastSeq, attempts, at, redeliveredAt }: DeadLetter): Description {
  const waits = attempts === 0 ? 'waiting' : 'dead';
  return {
    realm_id: realm,
    first_seq: firstSeq,
    last_seq: lastSeq,
    attempts,
    state: redeliveredAt === undefined ? waits : 'redelivered',
    at: instant(at),
    redelivered_at: redeliveredAt === undefined ? null : instant(redeliveredAt),
  };
}

function instant(at: number): string {
  return new Date(at).toISOString();
}
