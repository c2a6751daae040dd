import type { Command } from 'commander';
import { createClient, type Issued, listClients } from '../access/clients.ts';
import { systemAmbient } from '../ambient.ts';
import { openVault, type Vault } from '../app.ts';
import { DATABASE_SETTINGS, type Flags, type SettingName, type Settings } from '../config.ts';
import { commitDrafts, draftRecord } from '../directory/directory.ts';
import { Refusal } from '../domain/fault.ts';
import type { Uuid } from '../domain/id.ts';
import { parseScopes } from '../domain/principal.ts';
import { passwordProfile, passwordProfileInfo, realm, user } from '../domain/resources.ts';
import { selfLinks } from '../http/links.ts';
import { urlOf } from '../http/server.ts';
import { addDatabaseSettings, addSettings, type Desk, written } from './cli.ts';
import { tellKeyFile } from './serve.ts';

/** What `init` made. */
interface Beginning {
  readonly realmId: Uuid;
  readonly profileId: Uuid;
  readonly issued: Issued;
}

/** `init`: from nothing to a first lookup, with commands to paste. */
export function addInit(program: Command, desk: Desk): void {
  addSettings(addDatabaseSettings(program.command('init')), [
    'host',
    'port',
    'baseUrl',
    'behindProxy',
    'tlsCert',
    'tlsKey',
  ])
    .description('make the database, its key, a realm, a password profile and a client; say how to go on')
    .action(async (_options, command: Command) => {
      const settings = desk.settingsOf(command);
      const vault = await openVault(settings, systemAmbient);
      try {
        const beginning = await begin(vault);
        tellKeyFile(vault);
        const calls = { program: desk.programName, flags: desk.flagsOf(command) };
        tellNext(settings, beginning, calls);
      } finally {
        vault.engine.close();
      }
    });
}

async function begin({ engine }: Vault): Promise<Beginning> {
  if ((await listClients(engine.access)).length > 0) {
    throw new Refusal('this database has clients already: authrealm client create makes another one');
  }
  const from = { ambient: systemAmbient, actor: 'init' };
  const realmId = systemAmbient.mintId();
  const profileId = systemAmbient.mintId();
  const origin = { data: { type: 'account_authentication_settings', id: await engine.access.storeId() } };
  await commitDrafts(engine.records, [
    draftRecord(realm, [realmId], { name: 'Default realm', origin }, from),
    draftRecord(passwordProfile, [realmId, profileId], { name: 'Passwords' }, from),
  ]);
  const scopes = parseScopes('profile-infos:read') ?? new Set<string>();
  const grant = { scopes, realms: new Set([realmId]) };
  return { realmId, profileId, issued: await createClient(engine.access, 'first', grant, systemAmbient) };
}

/** How to call this program again about the same database. */
interface Calls {
  readonly program: string;
  readonly flags: Flags;
}

function tellNext(settings: Settings, { realmId, profileId, issued }: Beginning, calls: Calls): void {
  const { client, secret } = issued;
  const base = settings.baseUrl ?? urlOf(settings.host, settings.port, settings.tlsCert !== undefined);
  const userId = systemAmbient.mintId();
  const linkId = systemAmbient.mintId();
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
  const { program, flags } = calls;
  const forServe = ['', ...written(flags)].join(' ');
  const forImport = ['', ...written(pick(flags, DATABASE_SETTINGS))].join(' ');
  console.log(`
realm             ${realmId}
password profile  ${profileId}
client            ${client.clientId} (may read both kinds of profile info in this realm)
secret            ${secret} (shown once)

1. Serve:
${program} serve${forServe}

2. Add a user with a username:
${program} import -${forImport} <<'END'
${lines.map((line) => JSON.stringify(line)).join('\n')}
END

3. Get a token:
TOKEN=$(curl -s ${base}/oauth/access_token -d @- <<'END' | sed 's/.*"access_token":"\\([^"]*\\).*/\\1/'
grant_type=client_credentials&client_id=${client.clientId}&client_secret=${secret}
END
)

4. Look the username up:
curl -H "Authorization: Bearer $TOKEN" ${link}`);
}

function pick(flags: Flags, names: readonly SettingName[]): Flags {
  return Object.fromEntries(Object.entries(flags).filter(([name]) => names.includes(name as SettingName)));
}
