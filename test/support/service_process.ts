import type { TestDatabase } from './database.ts';
import { atEnd } from './ending.ts';
import {
  AUTHREALM,
  type Environment,
  type RunningCommand,
  runClientCreate,
  startCommand,
} from './processes.ts';
import { type HttpClient, openHttpClient, retryWhenOverloaded } from './service.ts';
import { type ClientSecret, requestToken } from './token_request.ts';

/** The service as an operator runs it: `authrealm serve`, in separate processes. */
export interface ServiceProcess extends HttpClient {
  readonly url: string;
  readonly running: RunningCommand;
  /** Sends each request once. */
  readonly withoutRetry: HttpClient;
  /** A token of the client that was created with it. */
  token(): Promise<string>;
}

export interface ServiceProcessOptions {
  readonly database: Pick<TestDatabase, 'args'>;
  readonly scope: string;
  /** Further command-line arguments. */
  readonly flags?: readonly string[];
  readonly environment?: Environment;
}

export async function startServiceProcess({
  database,
  scope,
  flags = [],
  environment,
}: ServiceProcessOptions): Promise<ServiceProcess> {
  const made = await runClientCreate(database, scope, '--json');
  if (made.code !== 0) throw new Error(made.stderr);
  return serveWithClient(database, JSON.parse(made.stdout), flags, environment);
}

/** Serves a database that has this client. */
export async function serveWithClient(
  { args }: Pick<TestDatabase, 'args'>,
  client: ClientSecret,
  flags: readonly string[] = [],
  environment: Environment = {},
): Promise<ServiceProcess> {
  const running = startCommand([AUTHREALM, 'serve', '--port', '0', ...flags, ...args], environment);
  const url = (await running.line(/^listening on /)).slice('listening on '.length);
  atEnd(() => {
    // A test may have stopped it.
    running.process.kill('SIGCONT');
    return running.stop();
  });
  const withoutRetry = openHttpClient(url, { Connection: 'close' });
  return {
    url,
    running,
    // Each request opens a connection, so that every process gets some of them.
    ...retryWhenOverloaded(withoutRetry),
    withoutRetry: withoutRetry,
    token: () => requestToken(url, client),
  };
}
