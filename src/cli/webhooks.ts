import { type Command, Option } from 'commander';
import { isTrue } from '../app/config/values.ts';
import { EVENT_NAMES } from '../deliver/webhooks/targets.ts';
import { Refusal } from '../model/fault.ts';
import { LIMITS } from '../model/limits.ts';
import { printLine } from '../ops/process/standard_streams.ts';
import { addAdminCommands, type MemberOptions } from './admin_commands.ts';
import type { CliContext } from './context.ts';
import { parseId } from './identifiers.ts';
import { allOption, listOption, parseWholeNumber } from './option_values.ts';
import { printResult } from './table.ts';

/** `webhook`: webhook targets, which receive events. */
export function addWebhookCommands(program: Command, context: CliContext): void {
  const { named, perform } = addAdminCommands(program, context, {
    type: 'webhook',
    noun: 'webhook target',
    texts: {
      kind: 'manage webhook targets',
      create: 'create a webhook target and show its secret once',
      list: 'list webhook targets without their secrets, with last delivery, last error and how far behind they are',
      update: 'change a target; takes effect within seconds',
      state: 'deliveries to a disabled target pause, and resume where they stopped once it is enabled',
      delete: 'delete a target, its delivery log and its dead letters',
      rotate: 'issue a new webhook secret and show it once',
      overlap: 'how long messages are also signed with the previous secret (default: 24)',
    },
    settings: ['allowPrivate'],
    membersFor,
    defaults: { events: '*', realms: '*' },
  });

  named('deliveries', 'list recent deliveries to a target, newest first')
    .option('--limit <N>', 'maximum number of entries', parseWholeNumber(), LIMITS.pageRecordsMax)
    .option('--dead', 'list dead letters instead: messages whose delivery was given up')
    .option('--json', 'write JSON')
    .action(async (id: string, options: { limit: number; dead?: true; json?: true }, by: Command) => {
      const operation = options.dead ? 'list-dead-letters' : 'list-deliveries';
      const query = { 'page[limit]': options.limit };
      const entries = await perform<readonly DeliveryEntry[]>(by, operation, { id, query });
      printResult(entries.map(describe), options.json);
    });

  named('redeliver', 'deliver dead letters again, and failed messages without waiting for their next attempt')
    .option('--all', 'all dead letters and failed messages of the target')
    .option('--realm <ID>', 'realm of the message', parseId)
    .option('--first-seq <N>', 'sequence number of the first event in the message', parseWholeNumber())
    .action(async (id: string, options: MessageOptions, by: Command) => {
      const { dead_letters, retries } = await perform<{ dead_letters: number; retries: number }>(
        by,
        'redeliver-webhook',
        { id, data: { message: messageId(options) } },
      );
      printLine(
        `${dead_letters} dead letters and ${retries} failed messages are queued; a running service delivers them within seconds`,
      );
    });
}

function membersFor(verb: 'create' | 'update'): MemberOptions {
  const isNew = verb === 'create';
  const [ofEvents, ofRealms, ofMax, ofClient] = isNew
    ? [' (default: all)', ' (default: all realms)', ' (default: 1)', '']
    : ['', '', '', '; an empty value removes the exclusion'];
  const url = 'URL that receives the events: https, port 443';
  const eventsMax = `maximum number of events per message, 1 to ${LIMITS.webhookEventsMax}${ofMax}`;
  return [
    ['name', new Option('--name <NAME>', 'display name').makeOptionMandatory(isNew)],
    ['url', new Option('--url <URL>', url).makeOptionMandatory(isNew)],
    ['events', listOption('--event <NAMES>', EVENT_HELP + ofEvents)],
    ['realms', listOption('--realm <ID>', REALM_HELP + ofRealms)],
    [
      'with_data',
      new Option(
        `--with-data${isNew ? '' : ' <BOOLEAN>'}`,
        'include the current state of the record in events',
      ).argParser((raw) => isTrue(raw) ?? raw),
    ],
    ['events_max', new Option('--events-max <N>', eventsMax).argParser(parseWholeNumber())],
    [
      'skipped_client',
      new Option('--skip-client <ID>', `do not deliver changes made by this client${ofClient}`),
    ],
    isNew
      ? ['from', new Option('--from <WHERE>', FROM_HELP).choices(['present', 'oldest'])]
      : ['events', allOption('event', 'deliver all events')],
    ...(isNew ? [] : [['realms', allOption('realm', 'deliver events of all realms')] as const]),
  ];
}

const EVENT_HELP = `deliver only these events: ${EVENT_NAMES.join(', ')}`;
const FROM_HELP = 'where deliveries start: at new events, the default, or at the oldest stored event';
const REALM_HELP = 'deliver only events of this realm; separate several by spaces or repeat the option';

interface DeliveryEntry {
  readonly id: string;
  readonly type: 'delivery' | 'dead_letter';
}

/** A dead letter is identified by its members realm and first_seq, so its ID is left out. */
function describe({ id, type, ...members }: DeliveryEntry): object {
  return type === 'delivery' ? { delivery_id: id, ...members } : members;
}

interface MessageOptions {
  readonly all?: true;
  readonly realm?: string;
  readonly firstSeq?: number;
}

/** The message that the options name; `*` for all. */
function messageId({ all, realm, firstSeq }: MessageOptions): string {
  if (all && !realm && firstSeq === undefined) return '*';
  if (!all && realm && firstSeq !== undefined) return `${realm}.${firstSeq}`;
  throw new Refusal('choose messages: pass --all, or --realm and --first-seq', { isUsage: true });
}
