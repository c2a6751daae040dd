import { type AccountSettings, accountSettingsOf } from '../domain/account_settings.ts';
import { Fault } from '../domain/fault.ts';
import type { Clock, Revision, Uuid } from '../domain/id.ts';
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
  /** Changes settings of account members, which are stored with their realm; returns the realm. Rejects with Fault `not_found`. */
  setAccountSettings(
    accountRealm: AnyRecord,
    changes: Partial<AccountSettings>,
    by: WriteContext,
  ): Promise<AnyRecord>;
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
/** With more realms than on these pages, the account realm must be configured. */
const REALM_PAGES_MAX = 10;
const OLDEST_FIRST: Sort = { by: 'created_at', isDescending: false };

export function openSettingsRealms(
  { store, directory, clock }: SettingsRealmDeps,
  { installation, accountRealm }: SettingsRealmRules,
): SettingsRealms {
  const merchants = presetId(installation, 'merchant-realm-mappings');

  /** The realms of account members on the first pages; undefined where there are more pages. */
  async function accountRealms(): Promise<readonly AnyRecord[] | undefined> {
    const found: AnyRecord[] = [];
    let after: PagePosition | undefined;
    for (let pages = 0; pages < REALM_PAGES_MAX && found.length < 2; pages += 1) {
      const page = { kind: 'after', after, limit: LIMITS.pageRecordsMax } as const;
      const listed = await store.list(realm, [], { filter: [], sort: OLDEST_FIRST, page });
      const records = listed?.items.map(({ record }) => record) ?? [];
      found.push(
        ...records.filter((record) => (record as RecordOf<typeof realm>).origin?.data.type === ACCOUNTS),
      );
      const last = records.at(-1);
      if (!listed?.hasMore || !last) return found;
      after = { at: last.created_at, id: last.id };
    }
    return undefined;
  }

  /** Every realm that names no origin is one of account members, so the first page mostly decides. */
  async function onlyAccountRealm(): Promise<AnyRecord | undefined> {
    const found = await accountRealms();
    return found?.length === 1 ? found[0] : undefined;
  }

  async function patchRealm(
    { id, revision }: { readonly id: Uuid; readonly revision?: Revision },
    members: object,
    by: WriteContext,
  ): Promise<AnyRecord> {
    const drafted = draftPatch(realm, [id], { ...members }, stampOf(by, clock));
    const write = revision === undefined ? drafted : { ...drafted, expectedRevision: revision };
    const placed = { write, item: undefined, at: 'data' };
    const request = { resource: realm, key: [id] as const, writes: [placed] };
    const [changed] = (await directory.commit([request])) ?? [];
    if (!changed) throw new Error('a patch returned no record');
    return changed;
  }

  /** The settings are one value: without the condition, the later of two concurrent changes would undo the earlier one. */
  async function setAccountSettings(
    accountRealm: AnyRecord,
    changes: Partial<AccountSettings>,
    by: WriteContext,
  ): Promise<AnyRecord> {
    const settings = { ...accountSettingsOf(accountRealm), ...changes };
    try {
      return await patchRealm(accountRealm, { account_settings: settings }, by);
    } catch (error) {
      if (!(error instanceof Fault && error.code === 'precondition_failed')) throw error;
      const changed = await store.get(realm, [accountRealm.id]);
      if (!changed) throw new Fault('not_found');
      return setAccountSettings(changed, changes, by);
    }
  }

  return {
    merchants,
    async find(origin) {
      if (origin !== ACCOUNTS) return store.get(realm, [presetId(installation, origin)]);
      if (accountRealm !== undefined) return store.get(realm, [accountRealm]);
      return (await store.get(realm, [presetId(installation, origin)])) ?? onlyAccountRealm();
    },
    setPrefix: (prefix, by) => patchRealm({ id: merchants }, { prefix }, by),
    setAccountSettings,
  };
}
