import type { Json, JsonObject } from '../../support/json_schema.ts';
import { type Operation, type OperationClient, openOperationClient } from '../../support/openapi_client.ts';
import { openValidRequests, type ValidRequests } from '../../support/openapi_requests.ts';
import { type AccessTokens, type Credentials, openAccessTokens } from './access_tokens.ts';
import { openCreatedRecords } from './created_records.ts';

/** The records and tokens that valid requests are made from. */
export interface FixturePool {
  readonly accessTokens: AccessTokens;
  current(): Promise<ValidRequests>;
  /** Creates records and tokens again at the next use; with `areClientsGone` also the clients of these tokens. */
  renew(areClientsGone: boolean): void;
  /** Registers a created record, and deletes the oldest ones above the bound. */
  created(location: string): Promise<void>;
}

interface FixturePoolDeps {
  readonly url: string;
  readonly document: JsonObject;
  readonly operations: readonly Operation[];
  readonly credentials: Credentials;
  /** A body that signs in an account member. */
  readonly signIn: Json;
}

const FIXTURES_MS_MAX = 30_000;
const FIXTURES_RETRY_MS = 300;

export function openFixturePool(deps: FixturePoolDeps): FixturePool {
  const { url, document, operations, credentials, signIn } = deps;
  const clients = new Map<string, ReturnType<Credentials>>();
  const created = openCreatedRecords();
  /** Addresses of the parents of other records. */
  let parentLocations: string[] = [];
  let fixtures: Promise<ValidRequests> | undefined;

  /** One client for each set of scopes and realms. */
  const cachedCredentials: Credentials = (scope, realms) => {
    const name = `${scope} ${realms?.join(' ')}`;
    const found = clients.get(name) ?? credentials(scope, realms);
    clients.set(name, found);
    return found;
  };
  const scopesNeeded = [...new Set(operations.map(({ scopes = [] }) => scopes.join(' ')))].filter(Boolean);
  const accessTokens = openAccessTokens(url, cachedCredentials, operations);

  function forgetClients(): void {
    for (const client of clients.values()) {
      client.then(
        ({ clientId }) => created.add(`${url}/admin/v1/clients/${clientId}`),
        () => undefined,
      );
    }
    clients.clear();
    accessTokens.renew();
  }

  function forgetRecords(): void {
    parentLocations.forEach(created.add);
    parentLocations = [];
  }

  const trim = () => created.trim(async () => `Bearer ${await accessTokens.valid()}`);

  /** Reports the address of every record that it creates. */
  function recordingCaller(add: (location: string) => void): OperationClient {
    const caller = openOperationClient(document);
    return {
      ...caller,
      async send(operation, sent) {
        const received = await caller.send(operation, sent);
        const location = received.headers.get('location');
        if (received.status === 201 && location !== null) add(location);
        return received;
      },
    };
  }

  /** An overloaded service rejects requests that hash a password: retry. */
  async function make(): Promise<ValidRequests> {
    const deadline = performance.now() + FIXTURES_MS_MAX;
    for (;;) {
      let isComplete = false;
      const caller = recordingCaller((location) =>
        isComplete ? created.add(location) : parentLocations.push(location),
      );
      try {
        // Concurrently, because a new client takes a while to be known to every process.
        await Promise.all(scopesNeeded.map((scope) => cachedCredentials(scope)));
        const opened = await openValidRequests({
          document,
          operations,
          caller,
          credentials: cachedCredentials,
          signIn,
        });
        isComplete = true;
        return opened;
      } catch (error) {
        forgetRecords();
        forgetClients();
        if (performance.now() > deadline) throw error;
        // It may have failed because a limit is reached, or because the client that deletes was deleted itself.
        await trim().catch(forgetClients);
        await Bun.sleep(FIXTURES_RETRY_MS);
      }
    }
  }

  return {
    accessTokens,
    current() {
      fixtures ??= make();
      return fixtures;
    },
    renew(areClientsGone) {
      fixtures = undefined;
      forgetRecords();
      if (areClientsGone) forgetClients();
      accessTokens.renew();
    },
    async created(location) {
      created.add(location);
      await trim();
    },
  };
}
