import { createPublicClient } from '../../src/auth/clients/clients.ts';
import { makePresetRealms } from '../../src/directory/presets.ts';
import type { Uuid } from '../../src/domain/id.ts';
import { PUBLIC_SCOPES } from '../../src/domain/principal.ts';
import { user } from '../../src/domain/resources.ts';
import { systemClock } from '../../src/platform/clock.ts';
import type { OpenDatabase } from '../../src/service/open_database.ts';
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

/** Creates a public client of one realm with every scope that it can have. */
export async function createStorefront({ db, clock }: Service, realm: Uuid, ratePerAddress = SIXTY_A_MINUTE) {
  const rights = { scopes: PUBLIC_SCOPES, realms: new Set([realm]), ratePerAddress };
  const client = await createPublicClient(db.engine.access, 'storefront', rights, clock);
  // Then the service reads its clients again.
  clock.advance(1_000);
  return client;
}

const SIXTY_A_MINUTE = { requests: 60, seconds: 60 };
