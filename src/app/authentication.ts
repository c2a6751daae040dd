import { openClientCredentials, openImplicitClients } from '../access/clients/client_credentials.ts';
import { openIssuers } from '../access/issuers/issuer_keys.ts';
import { type ConsoleClient, type ExternalIssuer, parseIssuers } from '../access/issuers/issuers_file.ts';
import { openGuardedFetch } from '../access/outbound/guarded_fetch.ts';
import { openGuardedForm } from '../access/outbound/guarded_post.ts';
import { openConsoleProviders } from '../access/sessions/console_providers.ts';
import { CONSOLE_LINK_ISSUER, openConsoleSessions } from '../access/sessions/sessions.ts';
import { openAuthCache } from '../access/tokens/auth_cache.ts';
import { openExternalTokens } from '../access/tokens/external_tokens.ts';
import { openIntrospectionAndRevocation } from '../access/tokens/introspection.ts';
import { openOwnJwts } from '../access/tokens/own_jwts.ts';
import { openTokens } from '../access/tokens/token.ts';
import { sealPerson } from '../log/keys.ts';
import { Refusal } from '../model/fault.ts';
import { readSettingFile, type Settings, urlRule } from './config/parse.ts';
import { openForgedRowLog } from './forged_row_log.ts';
import { outboundRules } from './outbound.ts';
import type { ServiceContext } from './service_context.ts';

/** Reads the issuers file of the settings; returns none without one. Throws Refusal that names every mistake in it. */
export function readIssuers(settings: Settings): readonly ExternalIssuer[] {
  const { issuersFile: path, baseUrl } = settings;
  if (path === undefined) return [];
  const issuers = parseIssuers(path, readSettingFile('--issuers-file', path));
  const own = issuers.find(({ issuer }) => issuer === baseUrl);
  if (own)
    throw new Refusal(
      `${path}: ${own.name} is this service itself: remove the entry, its tokens are accepted without one`,
    );
  const ruleOf = urlRule(settings);
  const mistakes = issuers.flatMap(({ name, issuer, jwksUri = issuer, console }) =>
    [...new Set(console ? [issuer, jwksUri] : [jwksUri])].flatMap((url) => {
      const rule = ruleOf(url);
      return rule === undefined ? [] : [`${path}: ${url} of ${name} ${rule}`];
    }),
  );
  if (mistakes.length > 0) throw new Refusal(mistakes.join('\n'), { isUsage: true });
  return issuers.map((issuer) => ({
    ...issuer,
    console: issuer.console && withSecret(issuer.console, path),
  }));
}

/** Adds the secret from the client secret file, if there is one, without the line break that editors add at the end. */
function withSecret(client: ConsoleClient, path: string): ConsoleClient {
  const { clientSecretFile: file } = client;
  if (file === undefined) return client;
  const clientSecret = readSettingFile(`${path}: client_secret_file`, file).replace(/\r?\n$/, '');
  if (clientSecret === '') throw new Refusal(`${path}: client_secret_file ${file} is empty`);
  return { ...client, clientSecret };
}

export type Authentication = ReturnType<typeof openAuthentication>;

/** Authentication by tokens of this service and of external issuers, client credentials, and console sessions. */
export function openAuthentication(
  { settings, engine, keyring, logKeys, log, clock }: ServiceContext,
  issuers: readonly ExternalIssuer[],
  baseUrl: string,
) {
  const rules = outboundRules({ settings, log });
  const fetchDocument = openGuardedFetch(rules);
  const note = (outcome: string, issuer: string) => log.write({ event: 'issuer_keys', issuer, outcome });
  const configured = openIssuers(issuers, { fetchDocument, clock, note });
  const external = openExternalTokens(configured, keyring, clock);
  const jwts = openOwnJwts(keyring, clock);
  const logForged = openForgedRowLog(log);
  const access = openAuthCache(engine.access, clock, ({ clients, keyIds, signingKeys }) => {
    for (const { clientId, isForged, hasForgedRealms } of clients) {
      if (isForged) logForged('client', clientId);
      if (hasForgedRealms) logForged('client_realm', clientId);
    }
    for (const { kid, isForged } of signingKeys) if (isForged) logForged('signing_key', kid);
    keyring.activateNewest(keyIds);
    jwts.loadSigningKeys(signingKeys);
  });
  const providers = settings.noConsole
    ? new Map()
    : openConsoleProviders(configured.values(), {
        fetchDocument,
        keyring,
        clock,
        postForm: openGuardedForm(rules),
        redirectUri: `${baseUrl}/console`,
        note: (provider, outcome) => log.write({ event: 'console_provider', provider, outcome }),
      });
  const sessions = new Set(settings.noConsole ? [] : [CONSOLE_LINK_ISSUER, ...providers.keys()]);
  const signing = { issuer: baseUrl, lifetimeSeconds: settings.tokenLifetime, external, sessions };
  const tokens = openTokens(access, jwts, signing, clock);
  const tokenDeps = { tokens, store: engine.access, clock };
  return {
    access,
    jwts,
    tokens,
    desk: openIntrospectionAndRevocation(tokens, engine.access, clock),
    authenticateClient: openClientCredentials(access, clock),
    identifyClient: openImplicitClients(access),
    console: settings.noConsole
      ? undefined
      : {
          linkCommand: `${settings.linkCommand ?? 'authrealm console link --role support'} --base-url ${baseUrl}`,
          sessions: openConsoleSessions({
            ...tokenDeps,
            providers,
            sealPerson: (person) => sealPerson(logKeys, person),
            onForgedRow: logForged,
          }),
        },
  };
}
