import type { Command } from 'commander';
import { createClient } from '../access/clients/clients.ts';
import { DATABASE_SETTINGS, type Flags, type Settings } from '../app/config/parse.ts';
import { type OpenDatabase, withDatabase } from '../app/open_database.ts';
import { selfLinks } from '../http/pipeline/links.ts';
import { urlOf } from '../http/server/url.ts';
import { Refusal } from '../model/fault.ts';
import type { Uuid } from '../model/id.ts';
import { parseScopes } from '../model/principal.ts';
import { passwordProfile, passwordProfileInfo, realm, user } from '../model/resources.ts';
import { systemClock } from '../ops/process/clock.ts';
import { printLine } from '../ops/process/standard_streams.ts';
import { commitWrites } from '../records/directory.ts';
import { draftDescribed } from '../records/plan.ts';
import { makePresetRealms } from '../records/presets.ts';
import { addDatabaseSettings, addSettings, type CliContext, toArguments } from './context.ts';
import { absoluteFlags, commandLine, PROGRAM_PATH } from './invocation.ts';
import { printNewKeyFile } from './key_file.ts';

/** `init`: creates what the first lookup needs, and prints the commands for it. */
export function addInit(program: Command, context: CliContext): void {
  addSettings(addDatabaseSettings(program.command('init')), [
    'host',
    'port',
    'baseUrl',
    'trustedProxies',
    'tlsCert',
    'tlsKey',
  ])
    .description(
      'create the database, its master key, a realm, a password profile and a client; fail if there are clients',
    )
    .option(
      '--preset-realms',
      'create the three realms that existing clients expect, and use the last one; on a database with clients, create only these realms',
    )
    .action(async (options: { presetRealms?: true }, command: Command) => {
      const settings = context.settingsOf(command);
      const create = async (db: OpenDatabase) => {
        const account = options.presetRealms && (await createPresetRealms(db));
        const isInUse = (await db.engine.access.clientsAfter('', 1)).length > 0;
        if (isInUse && options.presetRealms) return;
        if (isInUse) {
          throw new Refusal(
            'this database already has clients: create another client with "authrealm client create"',
          );
        }
        const result = await createFirstRecords(db, account);
        printNewKeyFile(db);
        printNextSteps(settings, result, context.flagsOf(command));
      };
      await withDatabase(settings, systemClock, create, true);
    });
}

/** Creates the preset realms, and returns the one for password profiles (docs/wire.md#realms). */
async function createPresetRealms({ engine }: OpenDatabase): Promise<Uuid | undefined> {
  const from = { clock: systemClock, actor: 'init' };
  const realms = await makePresetRealms(engine.records, await engine.access.storeId(), from);
  for (const { id, name, isNew } of realms) printLine(`${id}  ${name}${isNew ? '' : ' (exists)'}`);
  return realms.at(-1)?.id;
}

/** Creates a password profile in the given realm, or in a new one, and a client that may read there. */
async function createFirstRecords({ engine }: OpenDatabase, given: Uuid | undefined) {
  const from = { clock: systemClock, actor: 'init' };
  const realmId = given ?? systemClock.mintId();
  const profileId = systemClock.mintId();
  const origin = { data: { type: 'account_authentication_settings', id: await engine.access.storeId() } };
  const members = { name: 'Default realm', origin };
  await commitWrites(engine.records, [
    ...(given ? [] : [draftDescribed(realm, [realmId], members, from)]),
    draftDescribed(passwordProfile, [realmId, profileId], { name: 'Passwords' }, from),
  ]);
  const scopes = parseScopes('profile-infos:read') ?? new Set<string>();
  const grant = { scopes, realms: new Set([realmId]) };
  return { realmId, profileId, issued: await createClient(engine.access, 'first', grant, systemClock) };
}

function printNextSteps(
  settings: Settings,
  { realmId, profileId, issued }: Awaited<ReturnType<typeof createFirstRecords>>,
  flags: Flags,
): void {
  const { client, secret } = issued;
  const base = settings.baseUrl ?? urlOf(settings.host, settings.port, settings.tlsCert !== undefined);
  const userId = systemClock.mintId();
  const linkId = systemClock.mintId();
  const lines = [
    { type: user.type, realm_id: realmId, id: userId, name: 'Jane Doe', email: 'jane@example.com' },
    {
      type: passwordProfileInfo.type,
      realm_id: realmId,
      user_authentication_info_id: userId,
      id: linkId,
      username: 'jane@example.com',
      password_profile_id: profileId,
    },
  ];
  const link = selfLinks(passwordProfileInfo, base)([realmId, userId, linkId]);
  const serve = commandLine(PROGRAM_PATH, 'serve', ...toArguments(absoluteFlags(flags, settings)));
  const forDatabase = toArguments(absoluteFlags(flags, settings, DATABASE_SETTINGS));
  const importLines = commandLine(PROGRAM_PATH, 'import', '-', ...forDatabase);
  printLine(`
realm             ${realmId}
password profile  ${profileId}
client            ${client.clientId} (may read links and usernames in this realm)
secret            ${secret} (shown once)

1. Serve:
${serve}

2. Add a user with a username:
${importLines} <<'END'
${lines.map((line) => JSON.stringify(line)).join('\n')}
END

3. Get a token:
TOKEN=$(curl -s ${base}/oauth/access_token -d @- <<'END' | sed 's/.*"access_token":"\\([^"]*\\).*/\\1/'
grant_type=client_credentials&client_id=${client.clientId}&client_secret=${secret}
END
)

4. Look up the username:
curl -H "Authorization: Bearer $TOKEN" ${link}`);
}
