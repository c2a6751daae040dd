import { type Command, Option } from 'commander';
import { createConsoleLink } from '../access/sessions/console_links.ts';
import { endSession } from '../access/sessions/sessions.ts';
import type { StoredSession } from '../access/store/sign_ins.ts';
import { withDatabase } from '../app/open_database.ts';
import { urlOf } from '../http/server/url.ts';
import { Refusal } from '../model/fault.ts';
import type { Uuid } from '../model/id.ts';
import { LIMITS } from '../model/limits.ts';
import { COMMAND_LINE } from '../model/log/audit_entry.ts';
import { parseScopes, ROLES, SCOPE_WORDS } from '../model/principal.ts';
import { systemClock } from '../ops/process/clock.ts';
import { printLine } from '../ops/process/standard_streams.ts';
import { addDatabaseSettings, addSettings, type CliContext } from './context.ts';
import { parseIds } from './identifiers.ts';
import { printResult } from './table.ts';

interface LinkOptions {
  readonly role?: keyof typeof ROLES;
  readonly scope?: string;
  readonly realm?: readonly Uuid[];
  readonly label: string;
  readonly json?: true;
}

/** `console`: signs people in to the console of a running service, and lists and ends their sessions. */
export function addConsoleCommands(program: Command, context: CliContext): void {
  const console_ = program
    .command('console')
    .description('sign in to the console of a service; list and end sessions');
  addSettings(addDatabaseSettings(console_.command('link')), ['host', 'port', 'baseUrl', 'tlsCert', 'tlsKey'])
    .description('print a link that signs in to the console; valid once, within a minute')
    .addOption(new Option('--role <ROLE>', ROLE_HELP).choices(Object.keys(ROLES)))
    .option('--scope <SCOPES>', 'scopes as of client create, without --role or in addition to it')
    .option(
      '--realm <ID>',
      'limit the session to this realm; separate several by spaces or repeat the option (default: all realms)',
      parseIds,
    )
    .option('--label <TEXT>', 'name of this session in the audit log', COMMAND_LINE.actor)
    .option('--json', 'write JSON')
    .action(async (options: LinkOptions, command: Command) => {
      const settings = context.settingsOf(command);
      const { label, role, scope = '', realm, json } = options;
      const scopes = parseScopes([...(role ? ROLES[role].scopes : []), scope].join(' '));
      if (!scopes?.size)
        throw new Refusal(`pass --role, or in --scope any of: ${SCOPE_WORDS.join(', ')}`, { isUsage: true });
      const rights = { scopes, realms: realm ? new Set(realm) : ('*' as const) };
      const { code, expiresAt } = await withDatabase(settings, systemClock, ({ engine }) =>
        createConsoleLink(engine.access, { label, ...rights }, systemClock),
      );
      const { baseUrl = urlOf(settings.host, settings.port, settings.tlsCert !== undefined) } = settings;
      // The code is in the fragment, which browsers do not send, so no server logs it.
      const url = `${baseUrl}/console#code=${code}`;
      const advice = `Open this link within ${LIMITS.consoleLinkMsMax / 1_000} seconds; it works once.`;
      if (json) printLine(JSON.stringify({ url, expires_at: new Date(expiresAt).toISOString() }));
      else printLine(`${url}\n\n${advice}`);
    });
  addSessionCommands(console_, context);
}

const ROLE_HELP = `rights of the session; ${Object.entries(ROLES)
  .map(([role, { summary }]) => `${role}: ${summary}`)
  .join('; ')}`;

function addSessionCommands(parent: Command, context: CliContext): void {
  const sessions = parent.command('sessions').description('list and end sessions of the console');
  addDatabaseSettings(sessions.command('list'))
    .description(
      'list the sessions that have not ended: who began them, with which rights, and when they end',
    )
    .option('--json', 'write JSON')
    .action(({ json }: Pick<LinkOptions, 'json'>, command: Command) =>
      withDatabase(context.settingsOf(command), systemClock, async ({ engine }) => {
        printResult((await engine.access.consoleSessions(systemClock.now())).map(describe), json);
      }),
    );
  addDatabaseSettings(sessions.command('end').argument('<session-id>', 'ID of the session to end'))
    .description('end a session: its tokens are rejected within a second, and cannot be renewed')
    .action((id: string, _options, command: Command) =>
      withDatabase(context.settingsOf(command), systemClock, async ({ engine: { access } }) => {
        const open = await access.consoleSessions(systemClock.now());
        const session = open.find(({ sessionId }) => sessionId === id);
        if (!session)
          throw new Refusal(
            `no console session ${id}, or it has ended: list them with "authrealm console sessions list"`,
          );
        await endSession(access, session, systemClock);
        printLine(session.isForged ? `${id} has ended` : `${id} of ${session.actor} has ended`);
      }),
    );
}

function describe(session: StoredSession): object {
  const { sessionId, actor, scopes, realms, begunAt, renewedAt, endsAt } = session;
  // The values of a forged row may be anything.
  if (session.isForged) return { session_id: sessionId, is_forged: true };
  const instant = (at: number) => new Date(at).toISOString();
  return {
    session_id: sessionId,
    actor,
    scope: [...scopes].join(' '),
    realms: realms === '*' ? '*' : [...realms],
    begun_at: instant(begunAt),
    renewed_at: instant(renewedAt),
    ends_at: instant(endsAt),
  };
}
