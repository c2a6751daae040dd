import { z } from 'zod';
import type { FieldError } from '../../../model/fault.ts';
import type { Realms } from '../../../model/principal.ts';
import { realm } from '../../../model/resources.ts';
import { identifier } from '../../../model/rule.ts';
import type { ManagedDeps } from './managed.ts';

const ALL_OR_SOME = '`*` for all realms, or the IDs of some.';

/** Without the format `uuid`: generators of Java make no class for a union with a list of UUIDs. */
const ids = z.array(identifier('a realm'));

/** Realms in a request body. */
export const REALMS_INPUT = z
  .union([z.literal('*'), ids.min(1)], { error: 'must be * or a list of realm identifiers' })
  .meta({ id: 'RealmsInput', description: ALL_OR_SOME });

type RealmsInput = z.output<typeof REALMS_INPUT>;

/** Realms in a response. */
export const REALMS_OUTPUT = z.union([z.literal('*'), ids]).meta({ id: 'Realms', description: ALL_OR_SOME });

export function showRealms(realms: Realms): '*' | readonly string[] {
  return realms === '*' ? realms : [...realms];
}

/** Realms of an input that a schema has accepted. */
export function readRealms(input: RealmsInput): Realms {
  return input === '*' ? input : new Set(input);
}

/** A field error for each realm of a member that does not exist. */
export async function absentRealmErrors(
  member: string,
  input: RealmsInput | undefined,
  { store }: Pick<ManagedDeps, 'store'>,
): Promise<readonly FieldError[]> {
  if (input === undefined || input === '*' || !store) return [];
  const found = await Promise.all(input.map((id) => store.get(realm, [id])));
  return found.flatMap((record, at): FieldError[] =>
    record ? [] : [{ field: `data.${member}.${at}`, rule: 'is no realm of this installation' }],
  );
}
