import { type Command, InvalidArgumentError, Option } from 'commander';
import { CLIENT_NAME } from '../auth/clients/clients.ts';
import type { Uuid } from '../domain/id.ts';
import {
  END_USER_ADDRESSES,
  type EndUserAddress,
  IMPLICIT_SCOPES,
  parseScopes,
  SCOPE_WORDS,
  type Scopes,
} from '../domain/principal.ts';
import { openAdminCommands, realmsOption } from './admin_commands.ts';
import type { CliContext } from './context.ts';
import { realmIds } from './identifiers.ts';
import { words } from './option_values.ts';

interface ClientOptions {
  readonly name?: string;
  readonly scope?: Scopes;
  readonly realm?: readonly Uuid[];
  readonly allRealms?: true;
  readonly implicit?: Scopes;
  readonly implicitRealm?: readonly Uuid[];
  readonly ratePerAddress?: string;
  readonly storefront?: readonly string[];
  readonly endUserAddress?: EndUserAddress;
  readonly json?: true;
}

/** `client`: OAuth 2.0 clients and their rights. */
export function addClientCommands(program: Command, context: CliContext): void {
  const client = openAdminCommands(program, context, {
    type: 'client',
    noun: 'client',
    description: 'manage OAuth clients',
    texts: {
      list: 'list clients, without their secrets',
      delete: 'delete a client permanently; its tokens are rejected within a second',
      rotate: 'issue a new client secret and show it once',
      overlap: 'how long the previous secret is still accepted (default: 24)',
    },
  });
  client.addCreate<ClientOptions>(
    addRights(
      client
        .command('create', 'create a client and show its secret once')
        .requiredOption('--name <NAME>', 'display name', clientName)
        .requiredOption('--scope <SCOPES>', SCOPE_HELP, scopes)
        .option('--realm <ID>', `${REALM_HELP} (default: all realms)`, realmIds),
    ),
    (options) => ({ ...membersOf(options), realms: options.realm ?? '*' }),
  );
  client.addList();
  client.addUpdate<ClientOptions>(
    addRights(
      client
        .named('update', 'change the state, or the name and rights; takes effect within a second')
        .option('--name <NAME>', 'display name', clientName)
        .option('--scope <SCOPES>', SCOPE_HELP, scopes)
        .option('--realm <ID>', REALM_HELP, realmIds)
        .option('--all-realms', 'allow all realms'),
    ),
    'a disabled client and its tokens are rejected',
    membersOf,
  );
  client.addChanges();
}

/** The options about the ID alone, and about end users. */
function addRights(command: Command): Command {
  return command
    .option('--implicit <SCOPES>', IMPLICIT_HELP, scopes)
    .option('--implicit-realm <ID>', IMPLICIT_REALM_HELP, realmIds)
    .option('--rate-per-address <N/SECONDS>', RATE_HELP)
    .option('--storefront <CIDR>', STOREFRONT_HELP, words)
    .addOption(new Option('--end-user-address <WHERE>', END_USER_ADDRESS_HELP).choices(END_USER_ADDRESSES));
}

function membersOf({ name, scope, implicit, ...options }: ClientOptions) {
  return {
    name,
    scopes: scope && [...scope],
    realms: realmsOption(options),
    implicit_scopes: implicit && [...implicit],
    implicit_realms: options.implicitRealm,
    rate_per_address: options.ratePerAddress,
    storefronts: options.storefront,
    end_user_address: options.endUserAddress,
  };
}

export const SCOPE_HELP = `scopes, separated by spaces: ${SCOPE_WORDS.join(', ')}`;
const REALM_HELP = 'limit the client to this realm; separate several by spaces or repeat the option';

const IMPLICIT_HELP = `scopes that the client ID alone gives (grant_type=implicit), at most ${[...IMPLICIT_SCOPES].join(', ')}; "" for none`;
const IMPLICIT_REALM_HELP =
  'limit --implicit to this realm; separate several by spaces or repeat the option (default: the realms of the client, if named)';
const RATE_HELP = 'required with --implicit: N requests in SECONDS from each address';
const STOREFRONT_HELP =
  'network of the servers of a storefront, which have no rate per address; separate several by spaces or repeat the option';
const END_USER_ADDRESS_HELP =
  'for the scope sign-in: where requests by the secret report the address of the end user';

function clientName(raw: string): string {
  const [issue] = CLIENT_NAME.safeParse(raw).error?.issues ?? [];
  if (issue) throw new InvalidArgumentError(`The name ${issue.message}.`);
  return raw;
}

export function scopes(raw: string): Scopes {
  const parsed = parseScopes(raw);
  if (!parsed)
    throw new InvalidArgumentError(`Expected scopes separated by spaces: ${SCOPE_WORDS.join(', ')}.`);
  return parsed;
}
