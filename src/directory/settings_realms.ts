import { Fault } from '../domain/fault.ts';
import type { Clock, Uuid } from '../domain/id.ts';
import { LIMITS } from '../domain/limits.ts';
import type { AnyRecord, RecordOf } from '../domain/resource.ts';
import { realm } from '../domain/resources.ts';
import type { Directory } from './directory.ts';
import { draftPatch, stampOf } from './plan.ts';
import { type PresetOrigin, presetId } from './presets.ts';
import type { PagePosition, Sort, Store } from './store.ts';
import type { WriteContext } from './write_request.ts';

/** The realms that settings name (docs/wire.md#settings). */
export interface SettingsRealms {
  /** Undefined if there is none. */
  find(origin: PresetOrigin): Promise<AnyRecord | undefined>;
  /**
   * Changes members of a realm that settings show; returns the realm. `edit` makes them from the realm as it is, again after each
   * concurrent change. Rejects with Fault `not_found`.
   */
  change(found: AnyRecord, edit: (found: AnyRecord) => object, by: WriteContext): Promise<AnyRecord>;
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
  /** Every realm that names no origin is one of account members, so the first page mostly decides. */
  async function onlyAccountRealm(): Promise<AnyRecord | undefined> {
    const found: AnyRecord[] = [];
    let after: PagePosition | undefined;
    for (let pages = 0; pages < REALM_PAGES_MAX; pages += 1) {
      const page = { kind: 'after', after, limit: LIMITS.pageRecordsMax } as const;
      const listed = await store.list(realm, [], { filter: [], sort: OLDEST_FIRST, page });
      const records = listed?.items.map(({ record }) => record as RecordOf<typeof realm>) ?? [];
      found.push(...records.filter(({ origin }) => origin?.data.type === ACCOUNTS));
      if (found.length > 1) return undefined;
      const last = records.at(-1);
      if (!listed?.hasMore || !last) return found[0];
      after = { at: last.created_at, id: last.id };
    }
    return undefined;
  }

  /** Without the condition, the later of two concurrent changes could undo the earlier one. */
  async function change(
    found: AnyRecord,
    edit: (found: AnyRecord) => object,
    by: WriteContext,
  ): Promise<AnyRecord> {
    const { id, revision } = found;
    const patch = draftPatch(realm, [id], { ...edit(found) }, stampOf(by, clock));
    const planned = { write: { ...patch, expectedRevision: revision }, item: undefined, at: 'data' };
    try {
      const [changed] = (await directory.commit([planned])) ?? [];
      if (!changed) throw new Error('a patch returned no record');
      return changed;
    } catch (error) {
      if (!(error instanceof Fault && error.code === 'precondition_failed')) throw error;
      const now = await store.get(realm, [id]);
      if (!now) throw new Fault('not_found');
      return change(now, edit, by);
    }
  }

  return {
    async find(origin) {
      if (origin !== ACCOUNTS) return store.get(realm, [presetId(installation, origin)]);
      if (accountRealm !== undefined) return store.get(realm, [accountRealm]);
      return (await store.get(realm, [presetId(installation, origin)])) ?? onlyAccountRealm();
    },
    change,
  };
}
