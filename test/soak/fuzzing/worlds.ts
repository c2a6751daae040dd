import type { JsonObject } from '../../support/json_schema.ts';
import { type Operation, type OperationClient, openOperationClient } from '../../support/openapi_client.ts';
import { openValidRequests, type ValidRequests } from '../../support/openapi_requests.ts';
import { openMade } from './made.ts';
import { type Credentials, openRights, type Rights } from './rights.ts';

/** What requests are made of: records, and the rights to ask for them. */
export interface Worlds {
  readonly rights: Rights;
  current(): Promise<ValidRequests>;
  /** Makes records and rights anew, for the next one who asks. `areClientsGone`: also the clients whose rights they are. */
  renew(areClientsGone: boolean): void;
  /** Takes note of what was made, and removes the oldest of it, so that there is always as much of it. */
  made(location: string): Promise<void>;
}

interface Ground {
  readonly url: string;
  readonly document: JsonObject;
  readonly operations: readonly Operation[];
  readonly credentials: Credentials;
}

const WORLD_MS_MAX = 30_000;
const WORLD_PAUSE_MS = 300;

export function openWorlds({ url, document, operations, credentials }: Ground): Worlds {
  const known = new Map<string, ReturnType<Credentials>>();
  const made = openMade();
  /** Addresses of the records that others hang on. */
  let kept: string[] = [];
  let world: Promise<ValidRequests> | undefined;

  /** One client is enough for each set of rights. */
  const remembered: Credentials = (scope, realms) => {
    const name = `${scope} ${realms?.join(' ')}`;
    const found = known.get(name) ?? credentials(scope, realms);
    known.set(name, found);
    return found;
  };
  const rightsNeeded = [...new Set(operations.map(({ scopes = [] }) => scopes.join(' ')))].filter(Boolean);
  const rights = openRights(url, remembered, operations);

  function forgetClients(): void {
    for (const client of known.values()) {
      client.then(
        ({ clientId }) => made.note(`${url}/admin/v1/clients/${clientId}`),
        () => undefined,
      );
    }
    known.clear();
    rights.renew();
  }

  function forgetRecords(): void {
    kept.forEach(made.note);
    kept = [];
  }

  const trim = () => made.trim(async () => `Bearer ${await rights.ofAll()}`);

  /** Notes what is made with it in a list that may be another one later. */
  function noting(note: (location: string) => void): OperationClient {
    const caller = openOperationClient(document);
    return {
      ...caller,
      async send(operation, sent) {
        const received = await caller.send(operation, sent);
        const location = received.headers.get('location');
        if (received.status === 201 && location !== null) note(location);
        return received;
      },
    };
  }

  /** A service that has too much to do refuses what hashes a password: then it is asked again. */
  async function make(): Promise<ValidRequests> {
    const deadline = performance.now() + WORLD_MS_MAX;
    for (;;) {
      let isMade = false;
      const caller = noting((location) => (isMade ? made.note(location) : kept.push(location)));
      try {
        // At once, because each takes a while until it is known.
        await Promise.all(rightsNeeded.map((scope) => remembered(scope)));
        const opened = await openValidRequests({ document, operations, caller, credentials: remembered });
        isMade = true;
        return opened;
      } catch (error) {
        forgetRecords();
        forgetClients();
        if (performance.now() > deadline) throw error;
        // It may have failed because there is too much already, or because nobody may remove anything either.
        await trim().catch(forgetClients);
        await Bun.sleep(WORLD_PAUSE_MS);
      }
    }
  }

  return {
    rights,
    current() {
      world ??= make();
      return world;
    },
    renew(areClientsGone) {
      world = undefined;
      forgetRecords();
      if (areClientsGone) forgetClients();
      rights.renew();
    },
    async made(location) {
      made.note(location);
      await trim();
    },
  };
}
