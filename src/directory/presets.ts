import type { Clock, Uuid } from '../domain/id.ts';
import { realm } from '../domain/resources.ts';
import { draftDescribed } from './draft.ts';
import type { Store } from './store.ts';

/** The realms that clients of the family expect, in their documented order (contract 2.1). */
const PRESETS = [
  { name: 'Buyer Organization', origin: 'customer-authentication-settings' },
  { name: 'Merchant Organization', origin: 'merchant-realm-mappings' },
  { name: 'Account Management Realm', origin: 'account_authentication_settings' },
] as const;

export interface PresetRealm {
  readonly id: Uuid;
  readonly name: string;
  /** Whether it was made now. */
  readonly isNew: boolean;
}

/**
 * Makes the pre-set realms that are not there, a millisecond apart (contract 8, row 31). Each has an identifier of its
 * own that follows from the installation, and those that are missing come in one commit: however many do this at once,
 * each realm is there once, and in its place.
 */
export async function makePresetRealms(
  store: Pick<Store, 'get' | 'commit'>,
  installation: string,
  from: { readonly clock: Clock; readonly actor: string },
): Promise<readonly PresetRealm[]> {
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
    if (kind !== 'written') throw new Error(`a pre-set realm was ${kind}`);
    return presets.map((preset) => ({
      id: preset.write.key[0],
      name: preset.name,
      isNew: missing.includes(preset),
    }));
  }
}

/** Nobody makes them more than once, so that the second look finds them. */
const ATTEMPTS_MAX = 3;

const WRITTEN = { kind: 'written' } as const;

/** A UUID of version 8 (RFC 9562, 5.8): its bits are a digest of what it names. */
function presetId(installation: string, origin: string): Uuid {
  const digest = new Bun.CryptoHasher('sha256').update(`${installation}\n${origin}`).digest('hex');
  const [low, mid, high] = [digest.slice(0, 8), digest.slice(8, 12), digest.slice(13, 16)];
  return `${low}-${mid}-8${high}-9${digest.slice(17, 20)}-${digest.slice(20, 32)}` as Uuid;
}
