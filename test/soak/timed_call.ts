import type { OpenDatabase } from '../../src/app/open_database.ts';
import type { Uuid } from '../../src/model/id.ts';
import type { PasswordCost } from '../../src/model/password.ts';
import type { ServiceProcess } from '../support/service_process.ts';
import type { Comparisons } from './response_times.ts';

/** What a call has before its service starts. */
export interface Preparation {
  readonly db: OpenDatabase;
  /** The account realm. */
  readonly realm: Uuid;
  /** Of new hashes. */
  readonly cost: PasswordCost;
  /** Known names or people, of each kind if there are several. */
  readonly names: number;
  readonly comparisons: Comparisons;
  readonly chance: () => number;
}

/** The running service, and tokens of two clients. */
export interface ServedCall extends Pick<ServiceProcess, 'url' | 'put'> {
  readonly tokens: {
    /** With the scope `sign-in`. */
    readonly signIn: string;
    /** With `sign-up` as well, and with those that settings and realms need. */
    readonly signUp: string;
  };
}

/** A call whose responses are compared. */
export interface TimedCall {
  /** Of `serve`. */
  readonly flags: readonly string[];
  /** Prepares the running service. Resolves to the function that sends and compares, while the service has a load of this name. */
  open(served: ServedCall): Promise<(load: string) => Promise<void>>;
  stop?(): void;
}

/** Fills the database. */
export type PrepareCall = (preparation: Preparation) => Promise<TimedCall>;

/** Records that are created concurrently. */
const CREATED_AT_ONCE = 100;

/** Different usernames of one length, which are e-mail addresses. */
export function drawUsernames(count: number, chance: () => number): string[] {
  const numbers = new Set<number>();
  while (numbers.size < count) numbers.add(Math.floor(10_000_000 + chance() * 90_000_000));
  return [...numbers].map((number) => `jane-${number}@example.com`);
}

/** Calls a function with each element, for some of them concurrently. */
export async function forEachAtOnce<T>(of: readonly T[], run: (each: T) => Promise<unknown>): Promise<void> {
  for (let at = 0; at < of.length; at += CREATED_AT_ONCE)
    await Promise.all(of.slice(at, at + CREATED_AT_ONCE).map(run));
}
