import { Fault } from '../model/fault.ts';
import type { Clock, Uuid } from '../model/id.ts';
import type { AnyRecord, RecordOf } from '../model/resource.ts';
import { realm } from '../model/resources.ts';
import type { Sort, Store } from '../model/store.ts';
import { draftPatch, stampOf } from './plan.ts';
import { type PresetOrigin, presetId } from './presets.ts';
import type { WriteContext } from './write_request.ts';

export type SettingsRealms = ReturnType<typeof openSettingsRealms>;

const ACCOUNTS: PresetOrigin = 'account_authentication_settings';
/** With more realms, the account realm must be configured. */
const REALMS_MAX = 1_000;
const OLDEST_FIRST: Sort = { by: 'created_at', isDescending: false };

/** The realms that settings name (docs/wire.md#settings). `accountRealm`: the configured one of the account members. */
export function openSettingsRealms(
  store: Store,
  clock: Clock,
  { installation, accountRealm }: { readonly installation: string; readonly accountRealm: Uuid | undefined },
) {
  async function onlyAccountRealm(): Promise<AnyRecord | undefined> {
    const page = { kind: 'after', after: undefined, limit: REALMS_MAX } as const;
    const listed = await store.list(realm, [], { filter: [], sort: OLDEST_FIRST, page });
    const records = listed?.items.map(({ record }) => record as RecordOf<typeof realm>) ?? [];
    const [found, other] = records.filter(({ origin }) => origin?.data.type === ACCOUNTS);
    return other || listed?.hasMore ? undefined : found;
  }

  /**
   * Changes members of a realm that settings show; returns the realm. `edit` makes them from the realm as it is, again after each
   * concurrent change: otherwise the later of two could undo the earlier one. Rejects with Fault `not_found`.
   */
  async function change(
    found: AnyRecord,
    edit: (found: AnyRecord) => object,
    by: WriteContext,
  ): Promise<AnyRecord> {
    const { id, revision } = found;
    const patch = draftPatch(realm, [id], { ...edit(found) }, stampOf(by, clock));
    const result = await store.commit([{ ...patch, expectedRevision: revision }]);
    if (result.kind === 'written' && result.patched?.[0]) return result.patched[0];
    // A realm has no unique members, and this write no guards: no other outcome exists.
    if (result.kind !== 'revision_mismatch' && result.kind !== 'not_found')
      throw new Error(`the settings of a realm were not written: ${result.kind}`);
    const now = await store.get(realm, [id]);
    if (!now) throw new Fault('not_found');
    return change(now, edit, by);
  }

  return {
    /** Undefined if there is none. */
    async find(origin: PresetOrigin): Promise<AnyRecord | undefined> {
      if (origin !== ACCOUNTS) return store.get(realm, [presetId(installation, origin)]);
      if (accountRealm !== undefined) return store.get(realm, [accountRealm]);
      return (await store.get(realm, [presetId(installation, origin)])) ?? onlyAccountRealm();
    },
    change,
  };
}
