import type { TestDatabase } from './database.ts';
import { AUTHREALM, clientCreate, type Environment, type Running, start } from './processes.ts';
import { type Asking, askingOf, patient } from './service.ts';

/** The service as an operator runs it: `authrealm serve`, in processes of its own. */
export interface Served extends Asking {
  readonly url: string;
  readonly running: Running;
  /** Sends each request once. */
  readonly once: Asking;
  /** A token of the client that was made with it. */
  token(): Promise<string>;
}

export interface Serving {
  readonly database: TestDatabase;
  readonly scope: string;
  /** More of the command line. */
  readonly flags?: readonly string[];
  readonly environment?: Environment;
}

export async function startServed({ database, scope, flags = [], environment }: Serving): Promise<Served> {
  const made = await clientCreate(database, scope, '--json');
  if (made.code !== 0) throw new Error(made.stderr);
  return serveFor(database, JSON.parse(made.stdout), flags, environment);
}

/** Serves a database in which this client is. */
export async function serveFor(
  { words }: TestDatabase,
  client: { readonly client_id: string; readonly client_secret: string },
  flags: readonly string[] = [],
  environment: Environment = {},
): Promise<Served> {
  const running = start([AUTHREALM, 'serve', '--port', '0', ...flags, ...words], environment);
  const url = (await running.line(/^listening on /)).slice('listening on '.length);
  const once = askingOf(url, { Connection: 'close' });
  return {
    url,
    running,
    // A connection of its own for every request, so that every process gets some of them.
    ...patient(once),
    once,
    async token() {
      const { client_id, client_secret } = client;
      const body = new URLSearchParams({ grant_type: 'client_credentials', client_id, client_secret });
      const answer = await fetch(`${url}/oauth/access_token`, { method: 'POST', body });
      return ((await answer.json()) as { access_token: string }).access_token;
    },
  };
}
