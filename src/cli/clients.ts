import { type Command, InvalidArgumentError } from 'commander';
import { CLIENT_NAME } from '../auth/clients/clients.ts';
import type { Uuid } from '../domain/id.ts';
import { parseScopes, SCOPE_WORDS, type Scopes } from '../domain/principal.ts';
import type { CliContext } from './context.ts';
import { realmIds } from './identifiers.ts';
import { changesIn, openManaged, realmsIn } from './managed.ts';

interface ClientOptions {
  readonly name?: string;
  readonly scope?: Scopes;
  readonly realm?: readonly Uuid[];
  readonly allRealms?: true;
  readonly json?: true;
}

/** `client`: who may ask for tokens, and what they may do. */
export function addClientCommands(program: Command, context: CliContext): void {
  const client = openManaged(program, context, {
    type: 'client',
    noun: 'client',
    description: 'who may ask for tokens',
    texts: {
      list: 'list the clients, without secrets',
      disable: 'refuse the client and its tokens, within a second',
      enable: 'accept a disabled client again',
      delete: 'remove the client for good; its tokens are refused within a second',
      rotate: 'give a client a new secret and show it, once',
      overlap: 'how long the old secret is still accepted',
    },
  });
  client.addCreate<ClientOptions>(
    client
      .command('create', 'make a client and show its secret, once')
      .requiredOption('--name <NAME>', 'what people call it', clientName)
      .requiredOption('--scope <SCOPES>', SCOPE_HELP, scopes)
      .option('--realm <ID>', REALM_HELP, realmIds),
    ({ name, scope, realm = '*' }) => ({ name, scopes: [...(scope ?? [])], realms: realm }),
  );
  client.addList();
  client
    .named('update', 'change name, scopes or realms; felt within a second')
    .option('--json', 'write JSON')
    .option('--name <NAME>', 'what people call it', clientName)
    .option('--scope <SCOPES>', SCOPE_HELP, scopes)
    .option('--realm <ID>', REALM_HELP, realmIds)
    .option('--all-realms', 'lift the limit to some realms')
    .action(
      client.showing('update', ({ name, scope, ...options }: ClientOptions) =>
        changesIn({ name, scopes: scope && [...scope], realms: realmsIn(options) }),
      ),
    );
  client.addChanges();
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
