import { type Command, InvalidArgumentError } from 'commander';
import {
  CLIENT_NAME,
  changeClient,
  createClient,
  deleteClient,
  edited,
  type Issued,
  listClients,
  rotateSecret,
} from '../access/clients.ts';
import type { AccessStore, Client } from '../access/port.ts';
import { systemAmbient } from '../ambient.ts';
import { Refusal } from '../domain/fault.ts';
import type { Uuid } from '../domain/id.ts';
import { LIMITS } from '../domain/limits.ts';
import { parseScopes, type Realms, SCOPE_WORDS, type Scopes } from '../domain/principal.ts';
import { openVault } from '../vault.ts';
import { addDatabaseSettings, type CliContext } from './context.ts';
import { type Description, show, showAll } from './descriptions.ts';
import { realmIds } from './identifiers.ts';

interface ClientOptions {
  readonly name?: string;
  readonly scope?: Scopes;
  readonly realm?: readonly Uuid[];
  readonly allRealms?: true;
  readonly json?: true;
  /** Milliseconds. */
  readonly overlap?: number;
}

async function withStore<T>(
  context: CliContext,
  command: Command,
  work: (store: AccessStore) => Promise<T>,
): Promise<T> {
  const { engine } = await openVault(context.settingsOf(command), systemAmbient);
  try {
    return await work(engine.access);
  } finally {
    await engine.close();
  }
}

/** `client`: who may ask for tokens, and what they may do. */
export function addClientCommands(program: Command, context: CliContext): void {
  const client = program.command('client').description('who may ask for tokens');

  /** The command that makes one change to one client and shows the client as it then is. */
  function changing(
    name: string,
    description: string,
    patch: (options: ClientOptions) => Partial<Client>,
  ): Command {
    return addDatabaseSettings(client.command(name).argument('<client-id>'))
      .description(description)
      .option('--json', 'write JSON')
      .action(async (clientId: string, options: ClientOptions, command: Command) => {
        const wanted = patch(options);
        const changed = await withStore(context, command, (store) =>
          changeClient(store, clientId, wanted, systemAmbient),
        );
        show(describe(changed), options.json);
      });
  }

  addDatabaseSettings(client.command('create'))
    .description('make a client and show its secret, once')
    .requiredOption('--name <NAME>', 'what people call it', clientName)
    .requiredOption('--scope <SCOPES>', SCOPE_HELP, scopes)
    .option('--realm <ID>', REALM_HELP, realmIds)
    .option('--json', 'write JSON')
    .action(async (options: ClientOptions, command: Command) => {
      const grant = { scopes: options.scope ?? new Set<string>(), realms: realmsOf(options) ?? '*' };
      const issued = await withStore(context, command, (store) =>
        createClient(store, options.name ?? '', grant, systemAmbient),
      );
      show(describeIssued(issued), options.json);
    });

  addDatabaseSettings(client.command('list'))
    .description('list the clients, without secrets')
    .option('--json', 'write JSON')
    .action(async (options: ClientOptions, command: Command) => {
      const described = await withStore(context, command, async (store) => {
        const uses = await store.uses();
        return (await listClients(store)).map((each) => ({ ...describe(each), ...lastUse(each, uses) }));
      });
      showAll(described, options.json);
    });

  changing('update', 'change name, scopes or realms; felt within a second', (options) => {
    const realms = realmsOf(options);
    const { name, scope } = options;
    if (!name && !scope && !realms) throw new Refusal('nothing to change: say what', { isUsage: true });
    return { ...(name ? { name } : {}), ...(scope ? { scopes: scope } : {}), ...(realms ? { realms } : {}) };
  })
    .option('--name <NAME>', 'what people call it', clientName)
    .option('--scope <SCOPES>', SCOPE_HELP, scopes)
    .option('--realm <ID>', REALM_HELP, realmIds)
    .option('--all-realms', 'lift the limit to some realms');

  changing('disable', 'refuse the client and its tokens, within a second', () => ({
    disabledAt: systemAmbient.now(),
  }));
  changing('enable', 'accept a disabled client again', () => ({ disabledAt: undefined }));
  addEnding(client, context);
}

/** What ends a secret, or the whole client. */
function addEnding(client: Command, context: CliContext): void {
  addDatabaseSettings(client.command('delete').argument('<client-id>'))
    .description('remove the client for good; its tokens are refused within a second')
    .action(async (clientId: string, _options, command: Command) => {
      const outcome = await withStore(context, command, (store) =>
        deleteClient(store, clientId, undefined, systemAmbient),
      );
      edited(clientId, outcome);
      console.log(`${clientId} is deleted`);
    });

  addDatabaseSettings(client.command('rotate').argument('<client-id>'))
    .description('give a client a new secret and show it, once')
    .option('--overlap <HOURS>', 'how long the old secret is still accepted', hours, LIMITS.secretOverlapMs)
    .option('--json', 'write JSON')
    .action(async (clientId: string, options: ClientOptions, command: Command) => {
      const overlap = options.overlap ?? LIMITS.secretOverlapMs;
      const issued = await withStore(context, command, (store) =>
        rotateSecret(store, clientId, overlap, systemAmbient),
      );
      show(describeIssued(issued), options.json);
    });
}

export const SCOPE_HELP = `what it may do, separated by spaces: ${SCOPE_WORDS.join(', ')}`;
const REALM_HELP =
  'limit it to this realm; several: separated by spaces, or given again. All realms unless given';

function clientName(raw: string): string {
  const [issue] = CLIENT_NAME.safeParse(raw).error?.issues ?? [];
  if (issue) throw new InvalidArgumentError(`A name ${issue.message}.`);
  return raw;
}

export function scopes(raw: string): Scopes {
  const parsed = parseScopes(raw);
  if (!parsed) throw new InvalidArgumentError(`The scopes are: ${SCOPE_WORDS.join(', ')}.`);
  return parsed;
}

function hours(raw: string): number {
  const most = LIMITS.secretOverlapHoursMax;
  const value = /^\d{1,4}(\.\d+)?$/.test(raw) ? Number(raw) : Number.NaN;
  if (!(value <= most)) throw new InvalidArgumentError(`Hours are a number from 0 to ${most}.`);
  return value * 3_600_000;
}

function realmsOf({ realm, allRealms }: ClientOptions): Realms | undefined {
  if (realm && allRealms) {
    throw new Refusal('--realm and --all-realms exclude each other', { isUsage: true });
  }
  return allRealms ? '*' : realm && new Set(realm);
}

function describe(client: Client): Description {
  return {
    client_id: client.clientId,
    name: client.name,
    scope: [...client.scopes].join(' '),
    realms: client.realms === '*' ? '*' : [...client.realms],
    state: client.disabledAt === undefined ? 'enabled' : 'disabled',
    created_at: new Date(client.createdAt).toISOString(),
    updated_at: new Date(client.updatedAt).toISOString(),
  };
}

/** To the minute: processes tell what they saw once in one. */
function lastUse({ clientId }: Client, uses: ReadonlyMap<string, number>): Description {
  const at = uses.get(clientId);
  return { last_used_at: at === undefined ? 'never' : new Date(at).toISOString() };
}

function describeIssued({ client, secret }: Issued): Description {
  return { client_id: client.clientId, client_secret: secret, ...describe(client) };
}
