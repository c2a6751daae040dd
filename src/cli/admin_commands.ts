import { type Command, InvalidArgumentError, Option } from 'commander';
import { type SettingName, type Settings, urlRule } from '../app/config/parse.ts';
import { withDatabase } from '../app/open_database.ts';
import type { LocalRequest } from '../http/operations/admin/operation.ts';
import { Fault, Refusal } from '../model/fault.ts';
import { LIMITS } from '../model/limits.ts';
import { systemClock } from '../ops/process/clock.ts';
import { printLine } from '../ops/process/standard_streams.ts';
import { addConfirmation, assertConfirmed, type ConfirmationOptions } from './confirmation.ts';
import { addDatabaseSettings, addSettings, type CliContext } from './context.ts';
import { printResult } from './table.ts';

/** A client or a webhook target as the admin operations return it. */
interface Item {
  readonly id: string;
  readonly type: string;
  readonly scopes?: readonly string[];
  readonly is_disabled: boolean;
  readonly links?: object;
  readonly meta: object;
}

/** Options of `create` and `update`, each with the member of the request that its value becomes. */
export type MemberOptions = readonly (readonly [member: string, option: Option])[];

interface Kind {
  readonly type: 'client' | 'webhook';
  readonly noun: string;
  readonly texts: Readonly<
    Record<'kind' | 'create' | 'list' | 'update' | 'state' | 'delete' | 'rotate' | 'overlap', string>
  >;
  /** Settings that `create` and `update` read in addition to those of the database. */
  readonly settings: readonly SettingName[];
  membersFor(verb: 'create' | 'update'): MemberOptions;
  /** The members of a new one for which no option is given. */
  readonly defaults: object;
}

type Given = Readonly<Record<string, unknown>> & {
  readonly json?: true;
  readonly state?: keyof typeof VERBS;
  /** Seconds. */
  readonly overlap?: number;
};

/** The operations that put a client or a target into these states. */
const VERBS = { enabled: 'enable', disabled: 'disable' } as const;

/**
 * Adds the commands for clients or webhook targets. They run the admin operations of the HTTP API in this process, which check the
 * values of options.
 */
export function addAdminCommands(program: Command, context: CliContext, kind: Kind) {
  const { type, noun, texts } = kind;
  const ofNew = kind.membersFor('create');
  const parent = program.command(type).description(texts.kind);
  const command = (name: string, description: string) =>
    addDatabaseSettings(parent.command(name)).description(description);
  const named = (name: string, description: string) => command(name, description).argument(`<${type}-id>`);

  async function perform<Data>(by: Command, name: string, { id = '', ...request }: Request = {}) {
    const missing = `no ${noun} ${id}: list the ${noun}s with "authrealm ${type} list"`;
    const call = { ...request, name, params: { [`${type}_id`]: id }, missing, members: ofNew };
    return performOperation<Data>(context.settingsOf(by), call);
  }

  /** Runs an operation on the client or target of this ID, if there is one, and prints the result. */
  async function show(by: Command, verb: string, request: Request, json?: true): Promise<void> {
    printResult(describe(await perform<Item>(by, `${verb}-${type}`, request)), json);
  }

  function addMembers(to: Command, members: MemberOptions): Command {
    for (const [, option] of members) to.addOption(option);
    return addSettings(to, kind.settings).option('--json', 'write JSON');
  }

  addMembers(command('create', texts.create), ofNew).action((given: Given, by: Command) =>
    show(by, 'create', { data: { ...kind.defaults, ...valuesOf(ofNew, given) } }, given.json),
  );

  command('list', texts.list)
    .option('--json', 'write JSON')
    .action(async ({ json }: Given, by: Command) => {
      const items = await perform<readonly Item[]>(by, `list-${type}s`, { query: EVERY_ITEM });
      printResult(items.map(describe), json);
    });

  const changed = kind.membersFor('update');
  addMembers(named('update', texts.update), changed)
    .addOption(
      new Option('--state <STATE>', `${texts.state}; not with other changes`)
        .choices(Object.keys(VERBS))
        .conflicts(changed.map(([, option]) => option.attributeName())),
    )
    .action((id: string, given: Given, by: Command) => {
      const data = valuesOf(changed, given);
      if (given.state !== undefined) return show(by, VERBS[given.state], { id }, given.json);
      if (Object.keys(data).length > 0) return show(by, 'update', { id, data }, given.json);
      throw new Refusal('nothing to change: pass at least one option', { isUsage: true });
    });

  addConfirmation(named('delete', texts.delete), 'show what would be deleted').action(
    async (id: string, options: ConfirmationOptions, by: Command) => {
      if (options.dryRun) return show(by, 'get', { id });
      await assertConfirmed(options, `deletes ${noun} ${id}`, id);
      await perform(by, `delete-${type}`, { id });
      printLine(`${id} is deleted`);
    },
  );

  named('rotate', texts.rotate)
    .option('--overlap <HOURS>', texts.overlap, hours)
    .option('--json', 'write JSON')
    .action((id: string, { overlap, json }: Given, by: Command) =>
      show(by, 'rotate', { id, data: { overlap_seconds: overlap } }, json),
    );
  return { named, perform };
}

type Request = LocalRequest & { readonly id?: string };

/** The query for a list without pages. */
export const EVERY_ITEM = { 'page[limit]': Number.MAX_SAFE_INTEGER - 1 };

export interface OperationCall extends LocalRequest {
  readonly name: string;
  /** The sentence for a record that does not exist. */
  readonly missing?: string;
  /** For the names of options in sentences. */
  readonly members?: MemberOptions;
}

/** Runs an admin operation in this process, and returns the `data` of its answer. Throws Refusal for a fault of the request. */
export async function performOperation<Data>(settings: Settings, call: OperationCall): Promise<Data> {
  const { LOCAL_OPERATIONS } = await import('../http/operations/admin/operations.ts');
  const operation = LOCAL_OPERATIONS.find(({ name }) => name === call.name);
  try {
    const run = operation?.prepare(call);
    const answer = await withDatabase(settings, systemClock, async ({ engine, keyring }) =>
      run?.({
        // Undefined, so that the command line may name a realm before it exists.
        store: undefined,
        accessStore: engine.access,
        webhooks: { store: engine.webhooks, keyring, brokenUrlRule: urlRule(settings) },
        keyring,
        clock: systemClock,
      }),
    );
    return (answer as { data: Data } | undefined)?.data as Data;
  } catch (error) {
    throw refusalBy(error, call);
  }
}

/** The members that options give a value. */
function valuesOf(members: MemberOptions, given: Given): Readonly<Record<string, unknown>> {
  const values = members.map(([member, option]) => [member, given[option.attributeName()]] as const);
  return Object.fromEntries(
    values
      .filter(([, value]) => value !== undefined)
      .map(([member, value]) => [member, value === '' && NULLABLE.has(member) ? null : value]),
  );
}

/** Members that a client or a target may lack: an empty value removes them. */
const NULLABLE: ReadonlySet<string> = new Set(['rate_per_address', 'skipped_client']);

/**
 * The Refusal for a fault of the request, one sentence for each invalid field, which names its option, and its place in a list. A
 * fault whose cause is a Refusal is that one.
 */
function refusalBy(error: unknown, { missing, members = [] }: OperationCall): unknown {
  if (!(error instanceof Fault)) return error;
  if (error.cause instanceof Refusal) return error.cause;
  if (error.code === 'not_found' && missing !== undefined) return new Refusal(missing);
  if (error.fieldErrors.length === 0) return error;
  const sentences = error.fieldErrors.map(({ field, rule }) => {
    const [, name = field, at] = field.split('.');
    const place = at === undefined ? '' : `, value ${Number(at) + 1}`;
    return `${new Map(members).get(name)?.long ?? name}${place}: ${rule}`;
  });
  return new Refusal(sentences.join('\n'), { isUsage: error.code === 'invalid' });
}

/** The members of a response, by the names of the command line. */
function describe({ id, type, scopes, is_disabled, links, meta, ...members }: Item): object {
  return {
    [`${type}_id`]: id,
    ...members,
    ...(scopes && { scope: scopes.join(' ') }),
    state: is_disabled ? 'disabled' : 'enabled',
    ...meta,
  };
}

function hours(raw: string): number {
  const most = LIMITS.secretOverlapHoursMax;
  const value = /^\d{1,4}(\.\d+)?$/.test(raw) ? Number(raw) : Number.NaN;
  if (!(value <= most)) throw new InvalidArgumentError(`Expected a number of hours from 0 to ${most}.`);
  return Math.round(value * 3_600);
}
