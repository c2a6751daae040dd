import { openClientCredentials } from './access/client_credentials.ts';
import { openExternalTokens } from './access/external_tokens.ts';
import { type ExternalIssuer, parseIssuers } from './access/issuers_file.ts';
import type { LiveKeyring } from './access/live_keyring.ts';
import { LINKED, openSessions } from './access/sessions.ts';
import { openAccessCache } from './access/table.ts';
import { openTokens } from './access/token.ts';
import { openTokenDesk } from './access/token_desk.ts';
import { readSettingFile, type Settings } from './config.ts';
import { Refusal } from './domain/fault.ts';
import type { Ambient } from './domain/id.ts';
import type { Log } from './observe/log.ts';
import { openGuardedFetch } from './outbound/guarded_fetch.ts';
import type { Engine } from './store/open.ts';

/** The issuers of the file that the settings name; none without one. Throws Refusal that names every mistake in it. */
export function readIssuers({ issuersFile: path, baseUrl }: Settings): readonly ExternalIssuer[] {
  if (path === undefined) return [];
  const issuers = parseIssuers(path, readSettingFile('--issuers-file', path));
  const own = issuers.find(({ issuer }) => issuer === baseUrl);
  if (own) throw new Refusal(`${path}: ${own.name} is this service itself, whose tokens need no entry`);
  return issuers;
}

interface Issuing {
  readonly engine: Engine;
  readonly keyring: LiveKeyring;
  readonly settings: Settings;
  readonly issuers: readonly ExternalIssuer[];
}

/** Who is asking: by tokens of this service, and of issuers that the operator named. `issuer` is the base URL. */
export function openAuthority(
  { settings, issuers, engine, keyring }: Issuing,
  issuer: string,
  log: Log,
  ambient: Ambient,
) {
  const fetchDocument = openGuardedFetch({ allowLoopback: settings.allowLoopbackDiscovery });
  const note = (name: string, outcome: string) => log.write({ event: 'issuer_keys', issuer: name, outcome });
  const external = openExternalTokens({ issuers, fetchDocument, keyring, ambient, note });
  const access = openAccessCache(engine.access, ambient, ({ keyIds, signingKeys }) => {
    keyring.follow(keyIds);
    tokens.prepare(signingKeys);
  });
  const sessions = new Set(settings.noConsole ? [] : [LINKED]);
  const issuing = { issuer, lifetimeSeconds: settings.tokenLifetime, external, sessions };
  const tokens = openTokens(access, keyring, issuing, ambient);
  const desk = openTokenDesk({ tokens, store: engine.access, ambient });
  const ways = { clientCredentials: settings.consoleClientCredentials };
  const signing = { sessions: openSessions({ tokens, store: engine.access, ambient }), ways };
  return {
    ...{ access, tokens, desk, authenticateClient: openClientCredentials(access, ambient) },
    console: settings.noConsole ? undefined : signing,
  };
}
