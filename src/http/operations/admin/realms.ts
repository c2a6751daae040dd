import { z } from 'zod';
import type { FieldError } from '../../../domain/fault.ts';
import { parseUuid, type Uuid } from '../../../domain/id.ts';
import type { Realms } from '../../../domain/principal.ts';
import { realm } from '../../../domain/resources.ts';
import type { ManagedDeps } from './managed.ts';

/** Instead of the format `uuid`: generators of Java make no class for a union with a list of UUIDs. */
const ID_PATTERN = '^[0-9A-Fa-f]{8}(-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}$';
const ALL_OR_SOME = '`*` for all realms, or the IDs of some.';

/** Realms in a request body. */
export const REALMS_INPUT = z
  .union(
    [
      z.literal('*'),
      z
        .array(
          z
            .string()
            .refine((raw) => parseUuid(raw) !== undefined, { error: 'must be the identifier of a realm' })
            .meta({ pattern: ID_PATTERN }),
        )
        .min(1),
    ],
    { error: 'must be * or a list of realm identifiers' },
  )
  .meta({ id: 'RealmsInput', description: ALL_OR_SOME });

type RealmsInput = z.output<typeof REALMS_INPUT>;

/** Realms in a response. */
export const REALMS_OUTPUT = z
  .union([z.literal('*'), z.array(z.string().meta({ pattern: ID_PATTERN }))])
  .meta({ id: 'Realms', description: ALL_OR_SOME });

export function showRealms(realms: Realms): '*' | readonly string[] {
  return realms === '*' ? realms : [...realms];
}

/** Realms of an input that a schema has accepted. */
export function readRealms(input: RealmsInput): Realms {
  return input === '*' ? input : new Set(idsOf(input));
}

/** A field error for each realm of a member that does not exist. */
export async function absentRealmErrors(
  member: string,
  input: RealmsInput | undefined,
  { store }: Pick<ManagedDeps, 'store'>,
): Promise<readonly FieldError[]> {
  if (input === undefined || input === '*' || !store) return [];
  const found = await Promise.all(idsOf(input).map((id) => store.get(realm, [id])));
  return found.flatMap((record, at): FieldError[] =>
    record ? [] : [{ field: `data.${member}.${at}`, rule: 'is no realm of this installation' }],
  );
}

function idsOf(ids: readonly string[]): readonly Uuid[] {
  return ids.map((raw) => parseUuid(raw) as Uuid);
}
