import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createClient, type IssuedClient } from '../auth/clients/clients.ts';
import { createConsoleLink } from '../auth/sessions/console_links.ts';
import { connect } from '../client/client.ts';
import { AuthrealmError } from '../client/error.ts';
import { readSettings, type Settings } from '../config/parse.ts';
import { Refusal } from '../domain/fault.ts';
import type { Uuid } from '../domain/id.ts';
import { parseScopes, SCOPES } from '../domain/principal.ts';
import { oidcProfileInfo, passwordProfileInfo } from '../domain/resources.ts';
import { selfLinks } from '../http/pipeline/links.ts';
import type { Route } from '../http/server/router.ts';
import { systemClock } from '../platform/clock.ts';
import { newFileErrorText } from '../platform/file_error.ts';
import { openLog } from '../platform/log.ts';
import { receiveStopSignal } from '../platform/signals.ts';
import { printLine } from '../platform/standard_streams.ts';
import { type OpenDatabase, withDatabase } from '../service/open_database.ts';
import { serve } from '../service/service.ts';
import type { AuthStore } from '../store/auth/access.ts';
import { createDemoRecords, type DemoRecords } from './demo_records.ts';

/** Serves two small realms from a new temporary database and performs two lookups; then exits, or serves until a signal. */
export async function runDemo(port: string, isOnce: boolean): Promise<void> {
  // First of all: a signal without a handler would end the process and leave the database behind.
  const stopped = receiveStopSignal();
  const folder = createTemporaryFolder();
  try {
    // The console shows metrics.
    const flags = { database: `sqlite:${join(folder, 'demo.db')}`, port, metrics: '127.0.0.1:0' };
    await serveUntil(isOnce ? undefined : stopped, readSettings(flags, {}));
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

function createTemporaryFolder(): string {
  const prefix = join(tmpdir(), 'authrealm-demo-');
  try {
    return mkdtempSync(prefix);
  } catch (error) {
    throw new Refusal(`the demo needs a temporary folder: ${newFileErrorText(prefix, error)} with TMPDIR`);
  }
}

function serveUntil(stopped: Promise<unknown> | undefined, settings: Settings): Promise<void> {
  return withDatabase(settings, systemClock, async (db) => {
    const extraRoute = demoSignIn(db.engine.access);
    const server = await serve(settings, { ...db, extraRoute }, openLog(), systemClock);
    try {
      await performLookups(db, server.url, stopped);
    } finally {
      await server.stop();
    }
  });
}

async function performLookups(
  db: OpenDatabase,
  baseUrl: string,
  stopped: Promise<unknown> | undefined,
): Promise<void> {
  const records = await createDemoRecords(db);
  const links = linksOf(records, baseUrl);
  const reader = await addClient(db, 'demo', 'profile-infos:read');
  const writer = await addClient(db, 'shop front', 'users:write profile-infos:write');
  const token = await fetchToken(reader, baseUrl);
  printLine(`serving a demo realm on ${baseUrl}\n`);
  for (const link of links) await printLookup(link, token);
  // The service of --once is gone when a reader could call it.
  if (!stopped) return;
  printLine('Try it yourself:\n');
  for (const link of links) printLine(`curl -H 'Authorization: Bearer ${token}' ${link}\n`);
  await changeRecords(records, baseUrl, writer);
  printLine(`Open the console, signed in:\n\n${baseUrl}${DEMO_SIGN_IN_PATH}\n`);
  printLine('Ctrl-C ends the demo and removes its database.');
  await stopped;
}

/** The URLs of one OIDC link and one password link. */
function linksOf(
  { realm, user: of, oidcLink, passwordLink }: DemoRecords,
  baseUrl: string,
): readonly [string, string] {
  return [
    selfLinks(oidcProfileInfo, baseUrl)([realm, of, oidcLink]),
    selfLinks(passwordProfileInfo, baseUrl)([realm, of, passwordLink]),
  ];
}

/** Changes some records over HTTP, so that the audit log and the change feed have entries. */
async function changeRecords(
  records: DemoRecords,
  url: string,
  { client, secret }: IssuedClient,
): Promise<void> {
  const { realm, people, user: jane, azure } = records;
  const [first, second] = people as [Uuid, Uuid];
  const { users, oidcProfileInfos } = connect({ url, clientId: client.clientId, clientSecret: secret });
  try {
    await users.update([realm, first], { name: 'Amélie Dubois' });
    await users.update([realm, first], { email: 'amelie@example.com' });
    await users.update([realm, second], { middle_name: 'Jan' });
    await users.update([realm, jane], { name: 'Jane Q. Doe' });
    await oidcProfileInfos.create([realm, second], {
      subject: 'lukasz.second',
      issuer: 'https://login.example.com/',
      oidc_profile_id: azure,
    });
    await users.delete([realm, people.at(-1) as Uuid]);
  } catch (cause) {
    if (!(cause instanceof AuthrealmError)) throw cause;
    throw new Refusal(`the demo failed: ${cause.message}`, { cause });
  }
}

function addClient({ engine }: OpenDatabase, name: string, scope: string): Promise<IssuedClient> {
  const scopes = parseScopes(scope) ?? new Set<string>();
  return createClient(engine.access, name, { scopes, realms: '*' }, systemClock);
}

async function fetchToken({ client, secret }: IssuedClient, baseUrl: string): Promise<string> {
  const answer = await fetch(`${baseUrl}/oauth/access_token`, {
    method: 'POST',
    // Without this the runtime sends requests to this machine through HTTP_PROXY.
    proxy: false,
    body: new URLSearchParams({
      grant_type: 'client_credentials',
      client_id: client.clientId,
      client_secret: secret,
    }),
  });
  const { access_token } = (await answer.json()) as { access_token?: string };
  if (access_token === undefined)
    throw new Refusal(`the demo failed: the token request was answered with status ${answer.status}`);
  return access_token;
}

/** Performs one lookup and prints the request and the response. */
async function printLookup(link: string, token: string): Promise<void> {
  const answer = await fetch(link, { headers: { Authorization: `Bearer ${token}` }, proxy: false });
  printLine(`GET ${new URL(link).pathname}\nAuthorization: Bearer ${token.slice(0, 12)}…\n`);
  printLine(`${answer.status} ${answer.statusText}\nETag: ${answer.headers.get('etag')}`);
  printLine(`${JSON.stringify(await answer.json(), null, 2)}\n`);
  if (answer.status !== 200)
    throw new Refusal(`the demo failed: a lookup was answered with status ${answer.status}`);
}

/** The path that signs in to the console of the demo. */
const DEMO_SIGN_IN_PATH = '/demo';

/**
 * Redirects to the console with a new sign-in code that grants every scope: the data belongs to this process and is deleted with
 * it. A page whose name resolves to this machine cannot sign in with a code: its origin is not that of the base URL.
 */
function demoSignIn(store: Pick<AuthStore, 'insertConsoleLink'>): Route {
  return {
    pattern: DEMO_SIGN_IN_PATH,
    isOwn: true,
    answers: {
      async GET() {
        const rights = { scopes: new Set(SCOPES), realms: '*' } as const;
        const { code } = await createConsoleLink(store, { label: 'demo', ...rights }, systemClock);
        const headers = {
          Location: `/console#code=${code}`,
          'Cache-Control': 'no-store',
          'Referrer-Policy': 'no-referrer',
        };
        return { status: 303, headers, body: null };
      },
    },
  };
}
