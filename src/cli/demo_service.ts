import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createClient } from '../access/clients/clients.ts';
import { createConsoleLink } from '../access/sessions/console_links.ts';
import type { AuthStore } from '../access/store/access.ts';
import { readSettings } from '../app/config/parse.ts';
import { type OpenDatabase, withDatabase } from '../app/open_database.ts';
import { serve } from '../app/service.ts';
import { AuthrealmError, connect } from '../client/client.ts';
import type { Route } from '../http/server/router.ts';
import { Refusal } from '../model/fault.ts';
import { newFileErrorText } from '../model/file_error.ts';
import { parseScopes, SCOPES } from '../model/principal.ts';
import { systemClock } from '../ops/process/clock.ts';
import { openLog } from '../ops/process/log.ts';
import { receiveStopSignal } from '../ops/process/signals.ts';
import { printLine } from '../ops/process/standard_streams.ts';
import { createDemoRecords } from './demo_records.ts';

/** Serves two small realms from a new temporary database and performs two lookups; then exits, or serves until a signal. */
export async function runDemo(port: string, isOnce: boolean): Promise<void> {
  // First of all: a signal without a handler would end the process and leave the database behind.
  const stopped = receiveStopSignal();
  const folder = createTemporaryFolder();
  try {
    const database = `sqlite:${join(folder, 'demo.db')}`;
    // The console shows metrics. The profiles of the demo name providers that it must not call.
    const flags = { database, port, metrics: '127.0.0.1:0', offline: 'true' };
    const settings = readSettings(flags, {});
    await withDatabase(settings, systemClock, async (db) => {
      const extraRoute = demoSignIn(db.engine.access);
      const server = await serve(settings, { ...db, extraRoute }, openLog(), systemClock);
      try {
        await performLookups(db, server.url, isOnce ? undefined : stopped);
      } finally {
        await server.stop();
      }
    });
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

async function performLookups(
  { engine }: OpenDatabase,
  url: string,
  stopped: Promise<unknown> | undefined,
): Promise<void> {
  const grant = { scopes: parseScopes(SCOPE) ?? new Set<string>(), realms: '*' } as const;
  const { client, secret } = await createClient(engine.access, 'demo', grant, systemClock);
  let authorization = '';
  const directory = connect({
    url,
    clientId: client.clientId,
    clientSecret: secret,
    fetch(target, init) {
      authorization = new Headers(init.headers).get('Authorization') ?? '';
      return fetch(target, init);
    },
  });
  const links = await createDemoRecords(directory).catch((cause: unknown) => {
    if (!(cause instanceof AuthrealmError)) throw cause;
    throw new Refusal(`the demo failed: ${cause.message}`, { cause });
  });
  printLine(`serving a demo realm on ${url}\n`);
  for (const link of links) await printLookup(link, authorization);
  // The service of --once is gone when a reader could call it.
  if (!stopped) return;
  printLine('Try it yourself:\n');
  for (const link of links) printLine(`curl -H 'Authorization: ${authorization}' ${link}\n`);
  printLine(`Open the console, signed in:\n\n${url}${DEMO_SIGN_IN_PATH}\n`);
  printLine('Ctrl-C ends the demo and removes its database.');
  await stopped;
}

/** Of the client that creates the records. A reader may try its token, also to write: the database is deleted with the demo. */
const SCOPE = 'realms:write profiles:write users:write profile-infos:write profile-infos:read';

async function printLookup(link: string, authorization: string): Promise<void> {
  // Without `proxy` the runtime sends requests to this machine through HTTP_PROXY.
  const answer = await fetch(link, { headers: { Authorization: authorization }, proxy: false });
  printLine(`GET ${new URL(link).pathname}\nAuthorization: ${authorization.slice(0, 19)}…\n`);
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
