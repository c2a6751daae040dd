import { createClient } from '../../src/access/clients/clients.ts';
import type { OpenDatabase } from '../../src/app/open_database.ts';
import type { Uuid } from '../../src/model/id.ts';
import { type Network, parseNetwork } from '../../src/model/ip_address.ts';
import { IMPLICIT_SCOPES } from '../../src/model/principal.ts';
import { user } from '../../src/model/resources.ts';
import type { Rate } from '../../src/model/token_buckets.ts';
import { systemClock } from '../../src/ops/process/clock.ts';
import { makePresetRealms } from '../../src/records/presets.ts';
import { insertRecord, type Service, userMembers } from './service.ts';

/** The pre-set realms, by who signs in to them. */
export interface SettingsRealms {
  readonly buyers: Uuid;
  readonly merchants: Uuid;
  readonly accounts: Uuid;
  /** A user of `accounts`. */
  readonly member: Uuid;
}

/** Creates the realms that settings name, and an account member. */
export async function createSettingsRealms(db: OpenDatabase): Promise<SettingsRealms> {
  const { records, access } = db.engine;
  const by = { clock: systemClock, actor: 'test' };
  const made = await makePresetRealms(records, await access.storeId(), by);
  const [buyers, merchants, accounts] = made.map(({ id }) => id) as [Uuid, Uuid, Uuid];
  const member = systemClock.mintId();
  await insertRecord(db, user, [accounts, member], userMembers);
  return { buyers, merchants, accounts, member };
}

/** Creates a client whose ID alone gives every scope that it can, in one realm. By its secret it signs in no end users. */
export async function createStorefront(
  { db, clock }: Service,
  realm: Uuid,
  ratePerAddress: Rate = { requests: 60, seconds: 60 },
  storefronts: readonly string[] = [],
): Promise<{ readonly clientId: string; readonly secret: string }> {
  const rights = {
    ...{ scopes: new Set(['settings:read']), realms: '*' as const, ratePerAddress },
    ...{ implicitScopes: IMPLICIT_SCOPES, implicitRealms: new Set([realm]) },
    storefronts: storefronts.map((cidr) => parseNetwork(cidr) as Network),
  };
  const { client, secret } = await createClient(db.engine.access, 'storefront', rights, clock);
  // Then the service reads its clients again.
  clock.advance(1_000);
  return { clientId: client.clientId, secret };
}
