import { type Command, Option } from 'commander';
import { Refusal } from '../domain/fault.ts';
import type { Uuid } from '../domain/id.ts';
import { LIMITS } from '../domain/limits.ts';
import { EVENT_NAMES } from '../events/webhooks/targets.ts';
import { printLine } from '../platform/standard_streams.ts';
import {
  mutuallyExclusive,
  openAdminCommands,
  type Properties,
  printAll,
  realmsOption,
} from './admin_commands.ts';
import { addSettings, type CliContext } from './context.ts';
import { realmIds } from './identifiers.ts';
import { parseWholeNumber, words } from './option_values.ts';

interface WebhookOptions {
  readonly name?: string;
  readonly url?: string;
  readonly event?: readonly string[];
  readonly allEvents?: true;
  readonly realm?: readonly Uuid[];
  readonly allRealms?: true;
  /** A flag of `create`, and an option with a value of `update`. */
  readonly withData?: true | 'true' | 'false';
  readonly eventsMax?: number;
  readonly skipClient?: string;
  readonly from?: 'present' | 'oldest';
  readonly json?: true;
  readonly limit?: number;
  readonly dead?: true;
  readonly all?: true;
  readonly firstSeq?: number;
}

/** `webhook`: webhook targets, which receive events. */
export function addWebhookCommands(program: Command, context: CliContext): void {
  const webhook = openAdminCommands(program, context, {
    type: 'webhook',
    noun: 'webhook target',
    description: 'manage webhook targets',
    texts: {
      list: 'list webhook targets without their secrets, with last delivery, last error and how far behind they are',
      delete: 'delete a target, its delivery log and its dead letters',
      rotate: 'issue a new webhook secret and show it once',
      overlap: 'how long messages are also signed with the previous secret (default: 24)',
    },
  });
  addCreate(webhook);
  webhook.addList();
  addUpdate(webhook);
  webhook.addChanges();
  addDeliveries(webhook);
  addRedeliver(webhook);
}

type Webhooks = ReturnType<typeof openAdminCommands>;

function addCreate({ command, addCreate }: Webhooks): void {
  addCreate<WebhookOptions>(
    addMembers(command('create', 'create a webhook target and show its secret once'))
      .option('--with-data', WITH_DATA_HELP)
      .addOption(
        new Option('--from <WHERE>', 'where deliveries start: at new events, or at the oldest stored event')
          .choices(['present', 'oldest'])
          .default('present'),
      ),
    ({ from, ...options }) => {
      const { events = '*', realms = '*', ...members } = membersOf(options);
      return { ...members, events, realms, from };
    },
  );
}

function addUpdate({ named, addUpdate }: Webhooks): void {
  addUpdate<WebhookOptions>(
    addMembers(named('update', 'change a target; takes effect within seconds'))
      .option('--all-events', 'deliver all events')
      .option('--all-realms', 'deliver events of all realms')
      .addOption(new Option('--with-data <BOOLEAN>', WITH_DATA_HELP).choices(['true', 'false'])),
    'deliveries to a disabled target pause, and resume where they stopped once it is enabled',
    membersOf,
  );
}

/** The options that `create` and `update` share. */
function addMembers(command: Command): Command {
  const isNew = command.name() === 'create';
  const [ofEvents, ofRealms, ofClient] = isNew
    ? [' (default: all)', ' (default: all realms)', '']
    : ['', '', '; an empty value removes the exclusion'];
  const eventsMax = `maximum number of events per message, 1 to ${LIMITS.webhookEventsMax}`;
  return addSettings(command, ['allowPrivate'])
    .addOption(new Option('--name <NAME>', 'display name').makeOptionMandatory(isNew))
    .addOption(
      new Option('--url <URL>', 'URL that receives the events: https, port 443').makeOptionMandatory(isNew),
    )
    .option('--event <NAMES>', EVENT_HELP + ofEvents, words)
    .option('--realm <ID>', REALM_HELP + ofRealms, realmIds)
    .option('--events-max <N>', eventsMax, parseWholeNumber(), isNew ? 1 : undefined)
    .option('--skip-client <ID>', `do not deliver changes made by this client${ofClient}`);
}

const WITH_DATA_HELP = 'include the current state of the record in events';

/** The members that the options name; the others are undefined. */
function membersOf({ name, url, event, allEvents, withData, skipClient, ...options }: WebhookOptions) {
  if (event && allEvents) throw mutuallyExclusive('--event', '--all-events');
  return {
    name,
    url,
    events: allEvents ? '*' : event,
    realms: realmsOption(options),
    with_data: withData === undefined ? undefined : String(withData) === 'true',
    events_max: options.eventsMax,
    skipped_client: skipClient === '' ? null : skipClient,
  };
}

function addDeliveries({ named, perform }: Webhooks): void {
  named('deliveries', 'list recent deliveries to a target, newest first')
    .option('--limit <N>', 'maximum number of entries', parseWholeNumber(), LIMITS.pageRecordsMax)
    .option('--dead', 'list dead letters instead: messages whose delivery was given up')
    .option('--json', 'write JSON')
    .action(async (id: string, { limit, dead, json }: WebhookOptions, by: Command) => {
      const operation = dead ? 'list-dead-letters' : 'list-deliveries';
      const query = { 'page[limit]': limit };
      const { data } = await perform<{ data: readonly DeliveryEntry[] }>(by, operation, { id, query });
      printAll(data.map(describeEntry), json);
    });
}

type DeliveryEntry = Properties & { readonly id: string; readonly type: 'delivery' | 'dead_letter' };

/** A dead letter is identified by its members realm and first_seq, so its ID is left out. */
function describeEntry({ id, type, ...members }: DeliveryEntry): Properties {
  return type === 'delivery' ? { delivery_id: id, ...members } : members;
}

function addRedeliver({ named, perform }: Webhooks): void {
  named('redeliver', 'deliver dead letters again, and failed messages without waiting for their next attempt')
    .option('--all', 'all dead letters and failed messages of the target')
    .option('--realm <ID>', 'realm of the message', realmIds)
    .option('--first-seq <N>', 'sequence number of the first event in the message', parseWholeNumber())
    .action(async (id: string, options: WebhookOptions, by: Command) => {
      const data = { message: messageId(options) };
      const { data: redelivery } = await perform<{ data: { dead_letters: number; retries: number } }>(
        by,
        'redeliver-webhook',
        { id, data },
      );
      const queued = `${redelivery.dead_letters} dead letters and ${redelivery.retries} failed messages are queued`;
      printLine(`${queued}; a running service delivers them within seconds`);
    });
}

const EVENT_HELP = `deliver only these events: ${EVENT_NAMES.join(', ')}`;
const REALM_HELP = 'deliver only events of this realm; separate several by spaces or repeat the option';

/** The message that the options name; `*` for all. */
function messageId({ all, realm, firstSeq }: WebhookOptions): string {
  const [one] = realm ?? [];
  if (all && !realm && firstSeq === undefined) return '*';
  if (!all && one && firstSeq !== undefined) return `${one}.${firstSeq}`;
  throw new Refusal('choose messages: pass --all, or --realm and --first-seq', { isUsage: true });
}
