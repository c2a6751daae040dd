import { type Command, InvalidArgumentError } from 'commander';
import { Refusal } from '../domain/fault.ts';
import type { Uuid } from '../domain/id.ts';
import { LIMITS } from '../domain/limits.ts';
import { EVENT_NAMES } from '../events/webhooks/targets.ts';
import { addSettings, type CliContext } from './context.ts';
import { type Description, showAll } from './descriptions.ts';
import { realmIds } from './identifiers.ts';
import { changesIn, excluded, openManaged, realmsIn } from './managed.ts';

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
  readonly limit?: number;
  readonly dead?: true;
  readonly all?: true;
  readonly firstSeq?: number;
}

function openWebhooks(program: Command, context: CliContext) {
  return openManaged(program, context, {
    type: 'webhook',
    noun: 'webhook target',
    description: 'who is told what changes',
    texts: {
      list: 'list the targets, without secrets',
      disable: 'tell a target nothing for now; it is told later what it missed',
      enable: 'go on telling a disabled target',
      delete: 'forget a target, its deliveries and what it was not told',
      rotate: 'give a target a new secret and show it, once',
      overlap: 'how long the old secret signs as well',
    },
  });
}

type Webhooks = ReturnType<typeof openWebhooks>;

/** `webhook`: receivers of events. */
export function addWebhookCommands(program: Command, context: CliContext): void {
  const webhook = openWebhooks(program, context);
  addCreate(webhook);
  webhook.addList();
  webhook
    .named('show', 'show a target, without its secret')
    .option('--json', 'write JSON')
    .action(webhook.showing('get'));
  addUpdate(webhook);
  webhook.addChanges();
  addDeliveries(webhook);
  addRedeliver(webhook);
}

function addCreate({ command, addCreate }: Webhooks): void {
  addCreate<WebhookOptions>(
    addSettings(command('create', 'make a target and show its secret, once'), ['allowLoopbackWebhooks'])
      .requiredOption('--name <NAME>', 'what people call it')
      .requiredOption('--url <URL>', 'where events are sent: https, port 443')
      .option('--event <NAMES>', EVENT_HELP, words)
      .option('--realm <ID>', REALM_HELP, realmIds)
      .option('--with-data', 'send the state of the record along')
      .option('--events-max <N>', `events of one message, 1 to ${LIMITS.webhookEventsMax}`, whole, 1)
      .option('--skip-client <ID>', 'do not tell what this client changes')
      .option('--from <present|oldest>', 'from where on it is told', beginning, 'present'),
    ({ name, url, event, realm, withData, eventsMax, skipClient, from }) => ({
      ...{ name, url, events: event ?? '*', realms: realm ?? '*', from },
      ...{ with_data: withData, events_max: eventsMax, skipped_client: skipClient },
    }),
  );
}

function addUpdate({ named, showing }: Webhooks): void {
  addSettings(named('update', 'change what a target is told; felt within seconds'), ['allowLoopbackWebhooks'])
    .option('--json', 'write JSON')
    .option('--name <NAME>', 'what people call it')
    .option('--url <URL>', 'where events are sent: https, port 443')
    .option('--event <NAMES>', EVENT_HELP, words)
    .option('--all-events', 'tell every event')
    .option('--realm <ID>', REALM_HELP, realmIds)
    .option('--all-realms', 'lift the limit to some realms')
    .option('--with-data <true|false>', 'send the state of the record along', truth)
    .option('--events-max <N>', `events of one message, 1 to ${LIMITS.webhookEventsMax}`, whole)
    .option('--skip-client <ID>', 'do not tell what this client changes; an empty one lifts it')
    .action(showing('update', changesOf));
}

function changesOf({ name, url, event, allEvents, skipClient, ...options }: WebhookOptions): object {
  if (event && allEvents) throw excluded('--event', '--all-events');
  return changesIn({
    ...{ name, url, events: allEvents ? '*' : event, realms: realmsIn(options) },
    ...{ with_data: options.withData, events_max: options.eventsMax },
    skipped_client: skipClient === '' ? null : skipClient,
  });
}

function addDeliveries({ named, perform }: Webhooks): void {
  named('deliveries', 'what was sent to a target lately, the newest first')
    .option('--limit <N>', 'how many', whole, LIMITS.pageRecordsMax)
    .option('--dead', 'what was given up instead')
    .option('--json', 'write JSON')
    .action(async (id: string, { limit, dead, json }: WebhookOptions, by: Command) => {
      const operation = dead ? 'list-dead-letters' : 'list-deliveries';
      const query = { 'page[limit]': limit };
      const { data } = await perform<{ data: readonly Entry[] }>(by, operation, { id, query });
      showAll(data.map(describeEntry), json);
    });
}

type Entry = Description & { readonly id: string; readonly type: 'delivery' | 'dead_letter' };

/** A dead letter is named by its realm and first place, which are members. */
function describeEntry({ id, type, ...members }: Entry): Description {
  return type === 'delivery' ? { delivery_id: id, ...members } : members;
}

function addRedeliver({ named, perform }: Webhooks): void {
  named('redeliver', 'send again what was given up')
    .option('--all', 'everything that was not received yet')
    .option('--realm <ID>', 'of this realm', realmIds)
    .option('--first-seq <N>', 'the dead letter that begins at this place', whole)
    .action(async (id: string, options: WebhookOptions, by: Command) => {
      const data = { dead_letter: letterIn(options) };
      const redelivery = await perform<{ data: { dead_letters: number } }>(by, 'redeliver-webhook', {
        id,
        data,
      });
      console.log(`${redelivery.data.dead_letters} sent again within seconds, while a service runs`);
    });
}

const EVENT_HELP = `tell these events alone: ${EVENT_NAMES.join(', ')}. All unless given`;
const REALM_HELP =
  'tell of this realm alone; several: separated by spaces, or given again. All realms unless given';

/** The identifier of the dead letter that the options name; `*` for all. */
function letterIn({ all, realm, firstSeq }: WebhookOptions): string {
  const [one] = realm ?? [];
  if (all && !realm && firstSeq === undefined) return '*';
  if (!all && one && firstSeq !== undefined) return `${one}.${firstSeq}`;
  throw new Refusal('say which: --all, or --realm and --first-seq', { isUsage: true });
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
