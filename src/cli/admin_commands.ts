import { type Command, InvalidArgumentError, Option } from 'commander';
import { urlRule } from '../config/parse.ts';
import { Fault, Refusal } from '../domain/fault.ts';
import type { Uuid } from '../domain/id.ts';
import { LIMITS } from '../domain/limits.ts';
import type { LocalRequest } from '../http/operations/admin/operation.ts';
import { systemClock } from '../platform/clock.ts';
import { printLine } from '../platform/standard_streams.ts';
import { withDatabase } from '../service/open_database.ts';
import { addConfirmation, assertConfirmed, type ConfirmationOptions } from './confirmation.ts';
import { addDatabaseSettings, type CliContext } from './context.ts';

/** The properties of a client, webhook target or delivery, in the order in which they are printed. */
export type Properties = Readonly<
  Record<string, string | number | boolean | null | readonly string[] | Attempt>
>;

/** One attempt to deliver a message, as a property of its target. */
interface Attempt {
  readonly outcome: string;
  readonly status: number | null;
  readonly at: string;
}

/** A client or a webhook target as the admin operations return it; optional members belong to one of the two. */
interface Item {
  readonly id: string;
  readonly type: string;
  readonly name: string;
  readonly is_disabled: boolean;
  readonly meta: { readonly created_at: string; readonly updated_at: string };
  readonly scopes?: readonly string[];
  readonly secret?: string;
  readonly client_secret?: string;
  readonly last_used_at?: string | null;
  readonly previous_secret_expires_at: string | null;
  readonly links?: object;
}

interface Kind {
  readonly type: 'client' | 'webhook';
  /** For messages. */
  readonly noun: string;
  readonly description: string;
  readonly texts: Readonly<Record<'list' | 'delete' | 'rotate' | 'overlap', string>>;
}

interface Options {
  readonly json?: true;
  /** Seconds. */
  readonly overlap?: number;
}

/** The operations that put a client or a target into these states. */
const VERBS = { enabled: 'enable', disabled: 'disable' } as const;

interface UpdateOptions extends Options {
  readonly state?: keyof typeof VERBS;
}

/** The commands for clients or webhook targets. They run the admin operations of the HTTP API in this process. */
export function openAdminCommands(program: Command, context: CliContext, kind: Kind) {
  const { type, texts } = kind;
  const parent = program.command(type).description(kind.description);
  const command = (name: string, description: string) =>
    addDatabaseSettings(parent.command(name)).description(description);
  const named = (name: string, description: string) => command(name, description).argument(`<${type}-id>`);

  /** Runs an admin operation on the database of the command's settings. Throws Refusal for a fault of the request. */
  async function perform<Body>(by: Command, name: string, { id, ...request }: Request = {}): Promise<Body> {
    const settings = context.settingsOf(by);
    const params = { [`${type}_id`]: id ?? '' };
    try {
      return await withDatabase(settings, systemClock, async ({ engine, keyring }) => {
        const { LOCAL_OPERATIONS } = await import('../http/operations/admin/operations.ts');
        const operation = LOCAL_OPERATIONS.find((each) => each.name === name);
        const deps = {
          // Undefined, so that the command line may name a realm before it exists.
          store: undefined,
          accessStore: engine.access,
          webhooks: { store: engine.webhooks, keyring, brokenUrlRule: urlRule(settings) },
          clock: systemClock,
        };
        return (await operation?.perform({ ...request, params }, deps)) as Body;
      });
    } catch (error) {
      throw refusalBy(error, `no ${kind.noun} ${id}: list the ${kind.noun}s with "authrealm ${type} list"`);
    }
  }

  /** An action that runs an operation on the client or target that its argument names, and prints the result. */
  const showResultOf =
    <O extends Options>(verb: string, dataOf: (options: O) => object = () => ({})) =>
    async (id: string, options: O, by: Command) => {
      const data = dataOf(options);
      printProperties(
        describe((await perform<{ data: Item }>(by, `${verb}-${type}`, { id, data })).data),
        options.json,
      );
    };

  function addCreate<O extends Options>(create: Command, dataOf: (options: O) => object): void {
    create.option('--json', 'write JSON').action(async (options: O, by: Command) => {
      const { data } = await perform<{ data: Item }>(by, `create-${type}`, { data: dataOf(options) });
      printProperties(describe(data), options.json);
    });
  }

  function addList(): void {
    command('list', texts.list)
      .option('--json', 'write JSON')
      .action(async ({ json }: Options, by: Command) => {
        const query = { 'page[limit]': Number.MAX_SAFE_INTEGER - 1 };
        const { data } = await perform<{ data: readonly Item[] }>(by, `list-${type}s`, { query });
        const oldestFirst = data.toSorted((left, right) => timeOf(left) - timeOf(right));
        printAll(oldestFirst.map(describe), json);
      });
  }

  /** Changes the state alone, or what other options give a value. */
  function addUpdate<O extends UpdateOptions>(
    update: Command,
    stateHelp: string,
    membersOf: (options: O) => Readonly<Record<string, unknown>>,
  ): void {
    update
      .option('--json', 'write JSON')
      .addOption(
        new Option('--state <STATE>', `${stateHelp}; not with other changes`).choices(Object.keys(VERBS)),
      )
      .action((id: string, options: O, by: Command) => {
        const members = membersOf(options);
        const { state } = options;
        if (state === undefined) return showResultOf('update', () => givenMembers(members))(id, options, by);
        if (Object.values(members).some((value) => value !== undefined))
          throw mutuallyExclusive('--state', 'other changes');
        return showResultOf(VERBS[state])(id, options, by);
      });
  }

  /** `delete` and `rotate`. */
  function addChanges(): void {
    addConfirmation(named('delete', texts.delete), `show what would be deleted`).action(
      async (id: string, options: ConfirmationOptions, by: Command) => {
        if (options.dryRun) return showResultOf('get')(id, {}, by);
        await assertConfirmed(options, `deletes ${kind.noun} ${id}`, id);
        await perform(by, `delete-${type}`, { id });
        printLine(`${id} is deleted`);
      },
    );
    named('rotate', texts.rotate)
      .option('--overlap <HOURS>', texts.overlap, hours)
      .option('--json', 'write JSON')
      .action(
        showResultOf('rotate', ({ overlap }) => (overlap === undefined ? {} : { overlap_seconds: overlap })),
      );
  }
  return { command, named, perform, addCreate, addList, addUpdate, addChanges };
}

type Request = LocalRequest & { readonly id?: string };

/** The Refusal for a fault of the request, one sentence for each invalid field. */
function refusalBy(error: unknown, missing: string): unknown {
  if (!(error instanceof Fault)) return error;
  if (error.code === 'not_found') return new Refusal(missing);
  if (error.fieldErrors.length === 0) return error;
  const sentences = error.fieldErrors.map(({ field, rule }) => `${field.replace(/^data\./, '')}: ${rule}`);
  return new Refusal(sentences.join('\n'));
}

/** The members of a response, by the names and in the order of the command line. */
function describe({ id, type, secret, client_secret, name, scopes, ...item }: Item): Properties {
  const { is_disabled, previous_secret_expires_at, meta, links, last_used_at, ...members } = item;
  return {
    ...(secret === undefined ? {} : { secret }),
    [`${type}_id`]: id,
    ...(client_secret === undefined ? {} : { client_secret }),
    name,
    ...(scopes === undefined ? {} : { scope: scopes.join(' ') }),
    ...members,
    state: is_disabled ? 'disabled' : 'enabled',
    ...meta,
    ...(last_used_at === undefined ? {} : { last_used_at: last_used_at ?? 'never' }),
  };
}

function timeOf({ meta }: Item): number {
  return Date.parse(meta.created_at);
}

interface RealmOptions {
  readonly realm?: readonly Uuid[];
  readonly allRealms?: true;
}

/** The realms that the options name; undefined if they name none. */
export function realmsOption({ realm, allRealms }: RealmOptions): '*' | readonly Uuid[] | undefined {
  if (realm && allRealms) throw mutuallyExclusive('--realm', '--all-realms');
  return allRealms ? '*' : realm;
}

/** The members that have a value. Throws Refusal if none has. */
function givenMembers(members: Readonly<Record<string, unknown>>): object {
  const changes = Object.entries(members).filter(([, value]) => value !== undefined);
  if (changes.length === 0)
    throw new Refusal('nothing to change: pass at least one option', { isUsage: true });
  return Object.fromEntries(changes);
}

export function mutuallyExclusive(left: string, right: string): Refusal {
  return new Refusal(`${left} and ${right} are mutually exclusive`, { isUsage: true });
}

function hours(raw: string): number {
  const most = LIMITS.secretOverlapHoursMax;
  const value = /^\d{1,4}(\.\d+)?$/.test(raw) ? Number(raw) : Number.NaN;
  if (!(value <= most)) throw new InvalidArgumentError(`Expected a number of hours from 0 to ${most}.`);
  return Math.round(value * 3_600);
}

export function printAll(descriptions: readonly Properties[], asJson: true | undefined): void {
  if (asJson) printLine(JSON.stringify(descriptions, null, 2));
  else for (const each of descriptions) printProperties(each, undefined);
}

function printProperties(description: Properties, asJson: true | undefined): void {
  if (asJson) {
    printLine(JSON.stringify(description, null, 2));
    return;
  }
  const width = Math.max(14, ...Object.keys(description).map(({ length }) => length));
  for (const [name, value] of Object.entries(description))
    printLine(`${name.padEnd(width)} ${textOf(value)}`);
  printLine('');
}

function textOf(value: Properties[string]): string {
  if (value === null) return 'none';
  if (typeof value !== 'object' || !('outcome' in value)) return String(value);
  const { outcome, status, at } = value;
  return status === null ? `${outcome} at ${at}` : `${outcome} ${status} at ${at}`;
}
