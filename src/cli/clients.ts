import { type Command, InvalidArgumentError, Option } from 'commander';
import { CLIENT_NAME } from '../auth/clients/clients.ts';
import type { Uuid } from '../domain/id.ts';
import {
  END_USER_ADDRESSES,
  type EndUserAddress,
  PUBLIC_SCOPES,
  parseScopes,
  SCOPE_WORDS,
  type Scopes,
} from '../domain/principal.ts';
import { parseRate } from '../domain/token_buckets.ts';
import { givenMembers, openAdminCommands, realmsOption } from './admin_commands.ts';
import type { CliContext } from './context.ts';
import { realmIds } from './identifiers.ts';

interface ClientOptions {
  readonly name?: string;
  readonly scope?: Scopes;
  readonly realm?: readonly Uuid[];
  readonly allRealms?: true;
  readonly public?: true;
  readonly ratePerAddress?: string;
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
      disable: 'disable a client: it and its tokens are rejected within a second',
      enable: 'enable a disabled client',
      delete: 'delete a client permanently; its tokens are rejected within a second',
      rotate: 'issue a new client secret and show it once',
      overlap: 'how long the previous secret is still accepted (default: 24)',
    },
  });
  client.addCreate<ClientOptions>(
    client
      .command('create', 'create a client and show its secret once; a public client has none')
      .requiredOption('--name <NAME>', 'display name', clientName)
      .requiredOption('--scope <SCOPES>', SCOPE_HELP, scopes)
      .option('--realm <ID>', `${REALM_HELP} (default: all realms)`, realmIds)
      .option('--public', PUBLIC_HELP)
      .option('--rate-per-address <N/SECONDS>', RATE_HELP, rate)
      .addOption(endUserAddressOption()),
    ({ name, scope, realm = '*', public: isPublic, ratePerAddress, endUserAddress }) => ({
      ...{ name, scopes: [...(scope ?? [])], realms: realm },
      ...(isPublic ? { is_public: true } : {}),
      ...(ratePerAddress === undefined ? {} : { rate_per_address: ratePerAddress }),
      ...(endUserAddress === undefined ? {} : { end_user_address: endUserAddress }),
    }),
  );
  client.addList();
  client
    .named('update', 'change name, scopes or realms; takes effect within a second')
    .option('--json', 'write JSON')
    .option('--name <NAME>', 'display name', clientName)
    .option('--scope <SCOPES>', SCOPE_HELP, scopes)
    .option('--realm <ID>', REALM_HELP, realmIds)
    .option('--all-realms', 'allow all realms')
    .option('--rate-per-address <N/SECONDS>', RATE_HELP, rate)
    .addOption(endUserAddressOption())
    .action(
      client.showing('update', ({ name, scope, ratePerAddress, endUserAddress, ...options }: ClientOptions) =>
        givenMembers({
          ...{ name, scopes: scope && [...scope], realms: realmsOption(options) },
          ...{ rate_per_address: ratePerAddress, end_user_address: endUserAddress },
        }),
      ),
    );
  client.addChanges();
}

export const SCOPE_HELP = `scopes, separated by spaces: ${SCOPE_WORDS.join(', ')}`;
const REALM_HELP = 'limit the client to this realm; separate several by spaces or repeat the option';

const PUBLIC_HELP = `without a secret, for grant_type=implicit: at most ${[...PUBLIC_SCOPES].join(', ')}, with --realm and --rate-per-address`;
const RATE_HELP = 'limit of a public client for each client address: N requests in SECONDS';

const endUserAddressOption = () =>
  new Option(
    '--end-user-address <WHAT>',
    'for the scope sign-in: whether the client reports the address of the end user with each request',
  ).choices(END_USER_ADDRESSES);

function rate(raw: string): string {
  if (!parseRate(raw))
    throw new InvalidArgumentError('Expected a number of requests and a number of seconds, such as 60/60.');
  return raw;
}

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
