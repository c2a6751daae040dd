import { type Command, Option } from 'commander';
import { END_USER_ADDRESSES, IMPLICIT_SCOPES, SCOPE_WORDS } from '../model/principal.ts';
import { addAdminCommands, type MemberOptions } from './admin_commands.ts';
import type { CliContext } from './context.ts';
import { allOption, listOption } from './option_values.ts';

/** `client`: OAuth 2.0 clients and their rights. */
export function addClientCommands(program: Command, context: CliContext): void {
  addAdminCommands(program, context, {
    type: 'client',
    noun: 'client',
    texts: {
      kind: 'manage OAuth clients',
      create: 'create a client and show its secret once',
      list: 'list clients, without their secrets',
      update: 'change the state, or the name and rights; takes effect within a second',
      state: 'a disabled client and its tokens are rejected',
      delete: 'delete a client permanently; its tokens are rejected within a second',
      rotate: 'issue a new client secret and show it once',
      overlap: 'how long the previous secret is still accepted (default: 24)',
    },
    settings: [],
    membersFor,
    defaults: { realms: '*' },
  });
}

function membersFor(verb: 'create' | 'update'): MemberOptions {
  const isNew = verb === 'create';
  return [
    ['name', new Option('--name <NAME>', 'display name').makeOptionMandatory(isNew)],
    ['scopes', listOption('--scope <SCOPES>', SCOPE_HELP).makeOptionMandatory(isNew)],
    ['realms', listOption('--realm <ID>', isNew ? `${REALM_HELP} (default: all realms)` : REALM_HELP)],
    ...(isNew ? [] : [['realms', allOption('realm', 'allow all realms')] as const]),
    ['implicit_scopes', listOption('--implicit <SCOPES>', IMPLICIT_HELP)],
    ['implicit_realms', listOption('--implicit-realm <ID>', IMPLICIT_REALM_HELP)],
    ['rate_per_address', new Option('--rate-per-address <N/SECONDS>', RATE_HELP)],
    ['storefronts', listOption('--storefront <CIDR>', STOREFRONT_HELP)],
    [
      'end_user_address',
      new Option('--end-user-address <WHERE>', END_USER_ADDRESS_HELP).choices(END_USER_ADDRESSES),
    ],
  ];
}

const SCOPE_HELP = `scopes, separated by spaces: ${SCOPE_WORDS.join(', ')}`;
const REALM_HELP = 'limit the client to this realm; separate several by spaces or repeat the option';

const IMPLICIT_HELP = `scopes that the client ID alone gives (grant_type=implicit), at most ${[...IMPLICIT_SCOPES].join(', ')}; "" for none`;
const IMPLICIT_REALM_HELP =
  'limit --implicit to this realm; separate several by spaces or repeat the option (default: the realms of the client, if named)';
const RATE_HELP = 'required with --implicit: N requests in SECONDS from each address';
const STOREFRONT_HELP =
  'network of the servers of a storefront, which have no rate per address; separate several by spaces or repeat the option';
const END_USER_ADDRESS_HELP =
  'for the scope sign-in: where requests by the secret report the address of the end user';
