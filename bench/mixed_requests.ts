import { OPERATIONS } from '../src/app/api/operations.ts';
import type { JsonObject } from '../test/support/json_schema.ts';
import {
  type Operation,
  type OperationRequest,
  openOperationClient,
  operationsOf,
} from '../test/support/openapi_client.ts';
import { openValidRequests, type ValidRequests } from '../test/support/openapi_requests.ts';
import {
  OIDC_PROFILE,
  PASSWORD_PROFILE,
  populationLines,
  REALM,
  realmAt,
  realmLines,
  userAt,
} from '../test/support/population.ts';

/** The requests that callers repeat while lookups are measured, and the directory that they refer to. */

export interface RepeatedRequest {
  readonly name: string;
  readonly url: string;
  /** The paths of a round. Those of a DELETE name records that no other round deletes. */
  readonly paths: (round: number) => readonly string[];
  readonly environment: Readonly<Record<string, string>>;
}

/** How many records of one type a round deletes at most, and how many paths of other requests it repeats. */
const PATHS = 2_000;

const LINKS = ['oidcLink', 'passwordLink'] as const;
type Link = (typeof LINKS)[number];

export interface MixedDirectory {
  readonly users: number;
  readonly realms: number;
  lines(): Generator<string>;
  /** The IDs in a path to existing records. */
  ids(index: number): Readonly<Record<string, string>>;
  /** The same for record `index` of those that a row deletes. */
  deletedIds(collection: string, index: number): Readonly<Record<string, string>> | undefined;
}

/** One large realm and many small ones, and records to delete in each of `rounds`. */
export function mixedDirectory(users: number, realms: number, rounds: number): MixedDirectory {
  const deletes = PATHS * rounds;
  const oidcProfiles = Array.from({ length: deletes }, () => Bun.randomUUIDv7());
  const passwordProfiles = Array.from({ length: deletes }, () => Bun.randomUUIDv7());
  // The profiles belong to a small realm: a search in the large realm by a subject reads every issuer of it.
  const realmOfProfiles = realmAt(1);
  /** Users are deleted as such, and without each of their links: by three rows, and by one with the path of a self link. */
  const ofUser = (number: number) => ({ ...idsOf(userAt(number)), 'authentication-realms': REALM });
  const deletedUser = (collection: number, index: number) => ofUser(users + collection * deletes + index);
  return {
    users,
    realms: realms + deletes,
    *lines() {
      yield* populationLines(users + DELETED_USERS.length * deletes);
      for (let number = 1; number < realms + deletes; number += 1) yield realmLines(number);
      const meta = { created_at: '2026-01-01T00:00:00.000Z', updated_at: '2026-01-01T00:00:00.000Z' };
      for (const [index, id] of oidcProfiles.entries()) {
        const issuer = `https://login${index}.example.com/`;
        const discovery_url = `${issuer}.well-known/openid-configuration`;
        const profile = {
          name: `Login ${index}`,
          discovery_url,
          client_id: 'shop',
          meta: { issuer, ...meta },
        };
        yield JSON.stringify({ type: 'oidc-profile', realm_id: realmOfProfiles, id, ...profile });
      }
      for (const [index, id] of passwordProfiles.entries())
        yield JSON.stringify({
          type: 'password_profile',
          ...{ realm_id: realmOfProfiles, id, name: `Passwords ${index}`, meta },
        });
    },
    ids: (index) => ofUser(Math.floor((index * users) / PATHS)),
    deletedIds(collection, index) {
      if (collection === 'authentication-realms') return { [collection]: realmAt(realms + index) };
      if (collection === 'oidc-profiles')
        return { 'authentication-realms': realmOfProfiles, [collection]: oidcProfiles[index] as string };
      if (collection === 'password-profiles')
        return { 'authentication-realms': realmOfProfiles, [collection]: passwordProfiles[index] as string };
      const row = DELETED_USERS.indexOf(collection);
      return row < 0 ? undefined : deletedUser(row, index);
    },
  };
}

/** What DELETE rows delete of users; the last is the path of a self link. */
const DELETED_USERS = [
  'user-authentication-info',
  'user-authentication-oidc-profile-info',
  'user-authentication-password-profile-info',
  'self link',
];

function idsOf({ user, ...links }: Readonly<Record<Link | 'user', string>>): Record<string, string> {
  return {
    'oidc-profiles': OIDC_PROFILE,
    'password-profiles': PASSWORD_PROFILE,
    'user-authentication-info': user,
    'user-authentication-oidc-profile-info': links.oidcLink,
    'user-authentication-password-profile-info': links.passwordLink,
  };
}

interface RequestsOptions {
  readonly url: string;
  readonly metricsUrl: string;
  readonly directory: MixedDirectory;
  readonly credentials: (scope: string) => Promise<{ readonly clientId: string; readonly secret: string }>;
}

/** A valid request of every operation but lookups and health checks, of a stream, and of the metrics listener. */
export async function repeatedRequests(options: RequestsOptions): Promise<readonly RepeatedRequest[]> {
  const { url, metricsUrl, credentials } = options;
  const document = (await (await fetch(`${url}/openapi.json`)).json()) as JsonObject;
  const lookups = new Set(OPERATIONS.filter(({ loopUse }) => loopUse === 'lookup').map(({ name }) => name));
  // Health checks take no turn, so that a service under load is not taken for a dead one.
  const names = new Set(OPERATIONS.flatMap(({ name, isUncounted }) => (isUncounted ? [] : [name])));
  const operations = operationsOf(document).filter(({ id }) => names.has(id));
  const caller = openOperationClient(document);
  const valid = await openValidRequests({ document, operations, caller, credentials });
  const replaced = await replacedIds(operations, valid);
  const repeated: RepeatedRequest[] = [];
  for (const operation of operations.filter(({ id }) => !lookups.has(id)))
    repeated.push(repeat(options, operation, await valid.validRequest(operation), replaced));
  const search = repeated.find(
    ({ name }) => name === 'search-every-user-authentication-password-profile-info',
  );
  const feed = repeated.find(({ name }) => name === 'list-changes');
  if (!search || !feed) throw new Error('an operation is missing');
  return [
    ...repeated,
    variant(search, 'search-every username nobody', { BENCH_BODY: '{"filter":"eq(username,nobody)"}' }),
    variant(feed, 'stream-changes', { BENCH_ACCEPT: 'text/event-stream' }),
    { name: 'scrape-metrics', url: metricsUrl, paths: () => ['/metrics'], environment: {} },
  ];
}

function variant(
  of: RepeatedRequest,
  name: string,
  environment: RepeatedRequest['environment'],
): RepeatedRequest {
  return { ...of, name, environment: { ...of.environment, ...environment } };
}

/** The IDs in the bodies of valid requests, each with that of the directory. */
async function replacedIds(operations: readonly Operation[], { validRequest }: ValidRequests) {
  const replaced = new Map<string, string>();
  const ids = { ...idsOf(userAt(0)), 'authentication-realms': REALM };
  for (const operation of operations.filter(({ id, path }) => id.startsWith('get-') && path.endsWith('}'))) {
    const { path: parameters = {} } = await validRequest(operation);
    for (const [, collection = '', name = ''] of operation.path.matchAll(COLLECTION_AND_ID)) {
      const to = (ids as Record<string, string>)[collection];
      if (to !== undefined && parameters[name] !== undefined) replaced.set(parameters[name], to);
    }
  }
  return replaced;
}

const COLLECTION_AND_ID = /([\w-]+)\/\{(\w+)\}/g;

function repeat(
  { url, directory }: RequestsOptions,
  { id, method, path, body }: Operation,
  { path: parameters = {}, query = '', token, body: sent, headers = {} }: OperationRequest,
  replaced: ReadonlyMap<string, string>,
): RepeatedRequest {
  const withIds = (ids: Readonly<Record<string, string>>) => {
    const filled = path.replace(
      COLLECTION_AND_ID,
      (_, collection: string, name: string) => `${collection}/${ids[collection] ?? parameters[name]}`,
    );
    return query === '' ? filled : `${filled}?${query}`;
  };
  const last = [...path.matchAll(COLLECTION_AND_ID)].at(-1)?.[1] ?? '';
  const deleted = id.endsWith('-by-self-link') ? 'self link' : last;
  const idsAt = (round: number, index: number) =>
    (method === 'delete' ? directory.deletedIds(deleted, round * PATHS + index) : undefined) ??
    directory.ids(index);
  let text = typeof sent === 'string' ? sent : JSON.stringify(sent);
  for (const [from, to] of replaced) text = text?.replaceAll(from, to);
  return {
    name: id,
    url,
    paths: (round) => Array.from({ length: PATHS }, (_, index) => withIds(idsAt(round, index))),
    environment: {
      BENCH_METHOD: method.toUpperCase(),
      BENCH_TOKEN: token ?? 'none',
      ...(headers.accept ? { BENCH_ACCEPT: headers.accept } : {}),
      // The valid requests end their unique texts with a number.
      ...(body && text ? { BENCH_BODY: text.replaceAll(/ \d+"/g, ' {n}"'), BENCH_TYPE: body.type } : {}),
    },
  };
}
