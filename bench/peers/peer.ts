import type { UserOf } from '../../test/support/population.ts';
import type { LinkRequest } from '../load.ts';

/** The servers that a peer may use, and the folder of its own files. */
export interface PeerContext {
  readonly folder: string;
  readonly port: number;
  /** Of an empty database. On SQLite the path of a file that does not exist yet. */
  readonly database: string;
  readonly users: number;
  readonly userOf: UserOf;
}

/** A program, and how it is run: a process that listens on the port of the context. */
export interface PeerProcess {
  readonly command: readonly string[];
  readonly environment: Readonly<Record<string, string>>;
  /** How long its start may take. */
  readonly startSecondsMax?: number;
}

/** Creates a user with its links; `{n}` is unique. With `links` each of them needs a request of its own. */
export interface CreateRequest {
  readonly path: string;
  readonly body: string;
  readonly links?: readonly LinkRequest[];
}

/** Requests of one kind, all with the same bearer token. */
export interface PeerWorkload {
  readonly token: string;
  /** A user with all links, by ID; absent where no request answers that. */
  readonly reads?: readonly string[];
  /** The user of a subject at an issuer. */
  readonly reverse?: readonly string[];
  readonly create?: CreateRequest;
}

/** A directory of users that is measured next to authrealm. */
export interface Peer {
  readonly name: string;
  readonly engine: 'sqlite' | 'postgres';
  /** Load before the first round. */
  readonly warmUpSeconds: number;
  /** What one read answers, for the reader of the table; absent where no request answers a user with all links. */
  readonly answers?: string;
  /** What a create makes, if that is not a user with a link. */
  readonly creates?: string;
  /** How many links a create of authrealm makes for comparison; 1 by default. */
  readonly ownLinks?: 1 | 2;
  /** Creates the schema. */
  prepare(context: PeerContext): Promise<PeerProcess>;
  /** Creates the users, each with one link and one password. The process runs. */
  fill(context: PeerContext): Promise<void>;
  workload(context: PeerContext): Promise<PeerWorkload>;
}

/** A peer that cannot be had on this machine. Its message is a sentence. */
export class Unavailable extends Error {}

/** The bcrypt hash of an unknown password: no peer hashes one while it is filled. */
export const BCRYPT_HASH = '$2a$10$N9qo8uLOickgx2ZMRZoMyeIjZAgcfl7p92ldGxad68LJZdL17lhWy';

/** Runs a command to its end and returns its output. Throws with it if it fails. */
export async function runToEnd(
  command: readonly string[],
  { cwd, environment = {} }: { cwd?: string; environment?: Readonly<Record<string, string>> } = {},
): Promise<string> {
  const child = Bun.spawn([...command], {
    stdio: ['ignore', 'pipe', 'pipe'],
    env: { ...process.env, ...environment },
    ...(cwd !== undefined && { cwd }),
  });
  const texts = await Promise.all([new Response(child.stdout).text(), new Response(child.stderr).text()]);
  if ((await child.exited) === 0) return texts[0];
  throw new Error(
    `${command.slice(0, 2).join(' ')} failed:\n${texts.join('').trim().split('\n').slice(-12).join('\n')}`,
  );
}

/** Sends JSON; throws if the response is not a 2xx. */
export async function sendJson(
  url: string,
  body: object,
  { method = 'POST', headers = {} }: { method?: string; headers?: Record<string, string> } = {},
): Promise<Response> {
  const response = await fetch(url, {
    method,
    headers: { 'Content-Type': 'application/json', ...headers },
    body: JSON.stringify(body),
  });
  if (!response.ok) throw new Error(`${method} ${url} returned ${response.status}: ${await response.text()}`);
  return response;
}

/** The numbers of all users, in batches. */
export function* batches(users: number, size: number): Generator<readonly number[]> {
  for (let first = 0; first < users; first += size)
    yield Array.from({ length: Math.min(size, users - first) }, (_, index) => first + index);
}

/** Numbers of users, spread evenly, in an order that no cache likes. */
export function spreadNumbers(users: number): readonly number[] {
  const count = Math.min(PATHS, users);
  // A prime far above the number of paths visits each of them once.
  return Array.from({ length: count }, (_, index) => Math.floor((((index * 7_919) % count) * users) / count));
}

const PATHS = 10_000;
