import type { Clock, Uuid } from '../model/id.ts';
import { realm } from '../model/resources.ts';
import type { Store } from '../model/store.ts';
import { draftDescribed } from './plan.ts';

/** The realms that clients expect, in their documented order (docs/wire.md#realms). */
const PRESETS = [
  { name: 'Buyer Organization', origin: 'customer-authentication-settings' },
  { name: 'Merchant Organization', origin: 'merchant-realm-mappings' },
  { name: 'Account Management Realm', origin: 'account_authentication_settings' },
] as const;

/** The origin of a pre-set realm: the settings that name it. */
export type PresetOrigin = (typeof PRESETS)[number]['origin'];

/**
 * Creates the missing pre-set realms, a millisecond apart (docs/wire.md#realms). Their IDs are derived from the
 * installation, and the missing ones are created in one commit, so that concurrent calls create each realm once and in its
 * order. `isNew`: whether this call created it.
 */
export async function makePresetRealms(
  store: Pick<Store, 'get' | 'commit'>,
  installation: string,
  from: { readonly clock: Clock; readonly actor: string },
) {
  const start = from.clock.now();
  const presets = PRESETS.map(({ name, origin }, index) => {
    const members = { name, origin: { data: { id: installation, type: origin } }, preset: true };
    const at = { ...from, clock: { ...from.clock, now: () => start + index } };
    return { name, write: draftDescribed(realm, [presetId(installation, origin)], members, at) };
  });
  for (let attempt = 1; ; attempt += 1) {
    const stored = await Promise.all(presets.map(({ write }) => store.get(realm, write.key)));
    const missing = presets.filter((_, index) => stored[index] === undefined);
    const { kind } = missing.length === 0 ? WRITTEN : await store.commit(missing.map(({ write }) => write));
    // Another process created them first: read again.
    if (kind === 'unique' && attempt < ATTEMPTS_MAX) continue;
    if (kind !== 'written') throw new Error(`creating a pre-set realm failed: ${kind}`);
    return presets.map((preset) => ({
      id: preset.write.key[0],
      name: preset.name,
      isNew: missing.includes(preset),
    }));
  }
}

/** Each realm is created only once, so that the second attempt finds it. */
const ATTEMPTS_MAX = 3;

const WRITTEN = { kind: 'written' } as const;

/** The ID of a pre-set realm: a UUIDv8 (RFC 9562, 5.8) made of a digest. */
export function presetId(installation: string, origin: PresetOrigin): Uuid {
  const digest = new Bun.CryptoHasher('sha256').update(`${installation}\n${origin}`).digest('hex');
  const [low, mid, high] = [digest.slice(0, 8), digest.slice(8, 12), digest.slice(13, 16)];
  return `${low}-${mid}-8${high}-9${digest.slice(17, 20)}-${digest.slice(20, 32)}` as Uuid;
}
