import type { Clock, Uuid } from '../domain/id.ts';
import { LIMITS } from '../domain/limits.ts';
import type { AnyRecord, RecordOf } from '../domain/resource.ts';
import { realm } from '../domain/resources.ts';
import type { Directory } from './directory.ts';
import { draftPatch, stampOf } from './draft.ts';
import { type PresetOrigin, presetId } from './presets.ts';
import type { PagePosition, Sort, Store } from './store.ts';
import type { WriteContext } from './write_request.ts';

/** The realms that settings name (docs/wire.md#settings). */
export interface SettingsRealms {
  /** Undefined if there is none. */
  find(origin: PresetOrigin): Promise<AnyRecord | undefined>;
  /** The ID of the realm of merchants, whether it exists or not. */
  readonly merchants: Uuid;
  /** Changes the prefix of the realm of merchants; returns the realm. Rejects with Fault `not_found`. */
  setPrefix(prefix: string, by: WriteContext): Promise<AnyRecord>;
}

interface SettingsRealmRules {
  readonly installation: string;
  /** The configured realm of the account members. */
  readonly accountRealm: Uuid | undefined;
}

interface SettingsRealmDeps {
  readonly store: Pick<Store, 'get' | 'list'>;
  readonly directory: Pick<Directory, 'commit'>;
  readonly clock: Clock;
}

const ACCOUNTS: PresetOrigin = 'account_authentication_settings';
const OLDEST_FIRST: Sort = { by: 'created_at', isDescending: false };

export function openSettingsRealms(
  { store, directory, clock }: SettingsRealmDeps,
  { installation, accountRealm }: SettingsRealmRules,
): SettingsRealms {
  const merchants = presetId(installation, 'merchant-realm-mappings');

  async function* accountRealms(): AsyncGenerator<AnyRecord> {
    for (let after: PagePosition | undefined; ; ) {
      const page = { kind: 'after', after, limit: LIMITS.pageRecordsMax } as const;
      const listed = await store.list(realm, [], { filter: [], sort: OLDEST_FIRST, page });
      const records = listed?.items.map(({ record }) => record) ?? [];
      yield* records.filter((record) => (record as RecordOf<typeof realm>).origin?.data.type === ACCOUNTS);
      const last = records.at(-1);
      if (!listed?.hasMore || !last) return;
      after = { at: last.created_at, id: last.id };
    }
  }

  /** Every realm that names no origin is one of account members, so the first page mostly decides. */
  async function onlyAccountRealm(): Promise<AnyRecord | undefined> {
    const realms = accountRealms();
    const [first, second] = [await realms.next(), await realms.next()];
    return second.done ? first.value : undefined;
  }

  return {
    merchants,
    async find(origin) {
      if (origin !== ACCOUNTS) return store.get(realm, [presetId(installation, origin)]);
      if (accountRealm !== undefined) return store.get(realm, [accountRealm]);
      return (await store.get(realm, [presetId(installation, origin)])) ?? onlyAccountRealm();
    },
    async setPrefix(prefix, by) {
      const write = draftPatch(realm, [merchants], { prefix }, stampOf(by, clock));
      const placed = { write, item: undefined, at: 'data' };
      const request = { resource: realm, key: [merchants] as const, writes: [placed] };
      const [changed] = (await directory.commit([request])) ?? [];
      if (!changed) throw new Error('a patch returned no record');
      return changed;
    },
  };
}
