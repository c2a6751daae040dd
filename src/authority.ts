import { openClientCredentials } from './access/client_credentials.ts';
import { type ConsoleProvider, openConsoleProviders } from './access/console_providers.ts';
import { type KnownIssuer, openExternalTokens, openIssuers } from './access/external_tokens.ts';
import type { FetchDocument } from './access/issuer_keys.ts';
import { type ConsoleClient, type ExternalIssuer, parseIssuers } from './access/issuers_file.ts';
import type { LiveKeyring } from './access/live_keyring.ts';
import { LINKED, openSessions } from './access/sessions.ts';
import { openAccessCache } from './access/table.ts';
import { openTokens } from './access/token.ts';
import { openTokenDesk } from './access/token_desk.ts';
import type { LogKeys } from './audit/keys.ts';
import { sealPerson } from './audit/person_in_act.ts';
import { readSettingFile, type Settings } from './config.ts';
import { Refusal } from './domain/fault.ts';
import type { Ambient } from './domain/id.ts';
import type { Log } from './observe/log.ts';
import { openGuardedFetch } from './outbound/guarded_fetch.ts';
import { openGuardedForm } from './outbound/guarded_form.ts';
import type { Engine } from './store/open.ts';

/** The issuers of the file that the settings name; none without one. Throws Refusal that names every mistake in it. */
export function readIssuers({ issuersFile: path, baseUrl }: Settings): readonly ExternalIssuer[] {
  if (path === undefined) return [];
  const issuers = parseIssuers(path, readSettingFile('--issuers-file', path));
  const own = issuers.find(({ issuer }) => issuer === baseUrl);
  if (own) throw new Refusal(`${path}: ${own.name} is this service itself, whose tokens need no entry`);
  return issuers.map((issuer) => ({
    ...issuer,
    console: issuer.console && withSecret(issuer.console, path),
  }));
}

/** With the secret that its file holds, where one is named. Editors end a file with a line break that nobody means. */
function withSecret(client: ConsoleClient, path: string): ConsoleClient {
  const { clientSecretFile: file } = client;
  if (file === undefined) return client;
  const clientSecret = readSettingFile(`${path}: client_secret_file`, file).replace(/\r?\n$/, '');
  if (clientSecret === '') throw new Refusal(`${path}: client_secret_file ${file} is empty`);
  return { ...client, clientSecret };
}

interface Issuing {
  readonly engine: Engine;
  readonly keyring: LiveKeyring;
  readonly logKeys: LogKeys;
  readonly settings: Settings;
  readonly issuers: readonly ExternalIssuer[];
}

/** Who is asking: by tokens of this service, and of issuers that the operator named. */
export function openAuthority(issuing: Issuing, baseUrl: string, log: Log, ambient: Ambient) {
  const { settings, issuers, engine, keyring } = issuing;
  const fetchDocument = openGuardedFetch({ allowLoopback: settings.allowLoopbackDiscovery });
  const note = (name: string, outcome: string) => log.write({ event: 'issuer_keys', issuer: name, outcome });
  const known = openIssuers({ issuers, fetchDocument, ambient, note });
  const external = openExternalTokens(known, { keyring, ambient });
  const access = openAccessCache(engine.access, ambient, ({ keyIds, signingKeys }) => {
    keyring.follow(keyIds);
    tokens.prepare(signingKeys);
  });
  const providers = settings.noConsole
    ? new Map()
    : openProviders(issuing, known.values(), { fetchDocument, baseUrl, log, ambient });
  const sessions = new Set(settings.noConsole ? [] : [LINKED, ...providers.keys()]);
  const signing = { issuer: baseUrl, lifetimeSeconds: settings.tokenLifetime, external, sessions };
  const tokens = openTokens(access, keyring, signing, ambient);
  const asking = { tokens, store: engine.access, ambient };
  return {
    ...{
      access,
      tokens,
      desk: openTokenDesk(asking),
      authenticateClient: openClientCredentials(access, ambient),
    },
    console: settings.noConsole
      ? undefined
      : {
          clientCredentials: settings.consoleClientCredentials,
          sessions: openSessions({
            ...{ ...asking, providers },
            note: (act) => engine.log.note([act]),
            sealPerson: (told) => sealPerson(issuing.logKeys, told),
          }),
        },
  };
}

interface Outside {
  readonly fetchDocument: FetchDocument;
  readonly baseUrl: string;
  readonly log: Log;
  readonly ambient: Ambient;
}

function openProviders(
  { settings, keyring }: Issuing,
  known: Iterable<KnownIssuer>,
  { fetchDocument, baseUrl, log, ambient }: Outside,
): ReadonlyMap<string, ConsoleProvider> {
  return openConsoleProviders(known, {
    ...{ fetchDocument, keyring, ambient },
    postForm: openGuardedForm({ allowLoopback: settings.allowLoopbackDiscovery }),
    redirectUri: `${baseUrl}/console`,
    note: (provider, outcome) => log.write({ event: 'console_provider', provider, outcome }),
  });
}
