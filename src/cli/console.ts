import { type Command, InvalidArgumentError } from 'commander';
import { createConsoleLink, LINK_LABEL } from '../auth/sessions/console_links.ts';
import type { Settings } from '../config/parse.ts';
import { COMMAND_LINE } from '../domain/audit_entry.ts';
import type { Uuid } from '../domain/id.ts';
import { LIMITS } from '../domain/limits.ts';
import type { Scopes } from '../domain/principal.ts';
import { urlOf } from '../http/server/url.ts';
import { systemClock } from '../platform/clock.ts';
import { openDatabase } from '../service/open_database.ts';
import { SCOPE_HELP, scopes } from './clients.ts';
import { addDatabaseSettings, addSettings, type CliContext } from './context.ts';
import { realmIds } from './identifiers.ts';

interface LinkOptions {
  readonly scope: Scopes;
  readonly realm?: readonly Uuid[];
  readonly label: string;
  readonly json?: true;
}

/** `console`: signs people in to the console of a running service. */
export function addConsoleCommands(program: Command, context: CliContext): void {
  const console_ = program.command('console').description('sign in to the console of a service');
  addSettings(addDatabaseSettings(console_.command('link')), ['host', 'port', 'baseUrl', 'tlsCert', 'tlsKey'])
    .description('print a link that signs in to the console; valid once, within a minute')
    .requiredOption('--scope <SCOPES>', SCOPE_HELP, scopes)
    .option(
      '--realm <ID>',
      'limit the session to this realm; separate several by spaces or repeat the option (default: all realms)',
      realmIds,
    )
    .option('--label <TEXT>', 'name of this session in the audit log', label, COMMAND_LINE.actor)
    .option('--json', 'write JSON')
    .action(async (options: LinkOptions, command: Command) => {
      const settings = context.settingsOf(command);
      const { url, expiresAt } = await link(settings, options);
      if (options.json) console.log(JSON.stringify({ url, expires_at: new Date(expiresAt).toISOString() }));
      else
        console.log(
          `${url}\n\nOpen this link within ${LIMITS.consoleLinkMsMax / 1_000} seconds; it works once.`,
        );
    });
}

async function link(settings: Settings, { scope, realm, label: name }: LinkOptions) {
  const { engine } = await openDatabase(settings, systemClock);
  try {
    const realms = realm ? new Set(realm) : ('*' as const);
    const made = await createConsoleLink(engine.access, { label: name, scopes: scope, realms }, systemClock);
    const base = settings.baseUrl ?? urlOf(settings.host, settings.port, settings.tlsCert !== undefined);
    return { url: consoleLink(base, made.code), expiresAt: made.expiresAt };
  } finally {
    await engine.close();
  }
}

/** The page that exchanges a code. The code is in the fragment, which browsers do not send, so no server logs it. */
export function consoleLink(baseUrl: string, code: string): string {
  return `${baseUrl}/console#code=${code}`;
}

function label(raw: string): string {
  const [issue] = LINK_LABEL.safeParse(raw).error?.issues ?? [];
  if (issue) throw new InvalidArgumentError(`The label ${issue.message}.`);
  return raw;
}
