import { z } from 'zod';
import { type Complaint, Fault } from '../../../domain/fault.ts';
import { parseUuid, type Uuid } from '../../../domain/id.ts';
import type { Realms } from '../../../domain/principal.ts';
import { realm } from '../../../domain/resources.ts';
import { idSchema } from '../../openapi/schemas.ts';
import type { ManagedDeps } from './managed.ts';

type RealmDeps = Pick<ManagedDeps, 'store'>;

/** Which realms are meant, as a body says it. */
export const REALMS_INPUT = z.union(
  [
    z.literal('*'),
    z
      .array(
        z
          .string()
          .refine((raw) => parseUuid(raw) !== undefined, { error: 'must be the identifier of a realm' })
          .meta({ format: 'uuid' }),
      )
      .min(1),
  ],
  { error: 'must be * or a list of realm identifiers' },
);

export type RealmsInput = z.output<typeof REALMS_INPUT>;

/** As it is answered. */
export const REALMS_OUTPUT = z.union([z.literal('*'), z.array(idSchema)]);

export function showRealms(realms: Realms): '*' | readonly string[] {
  return realms === '*' ? realms : [...realms];
}

/** Realms that are there. Throws Fault `conflict` that names every one that is not. */
export async function existingRealms(said: RealmsInput, deps: RealmDeps): Promise<Realms> {
  const complaints = await complaintsAboutRealms(said, deps);
  if (complaints.length > 0) throw new Fault('conflict', complaints);
  return readRealms(said);
}

/** Realms that a schema has accepted. */
export function readRealms(said: RealmsInput): Realms {
  return said === '*' ? said : new Set(idsOf(said));
}

/** Every realm that is not there. */
export async function complaintsAboutRealms(
  said: RealmsInput,
  { store }: RealmDeps,
): Promise<readonly Complaint[]> {
  if (said === '*' || !store) return [];
  const found = await Promise.all(idsOf(said).map((id) => store.get(realm, [id])));
  return found.flatMap((record, at): Complaint[] =>
    record ? [] : [{ field: `data.realms.${at}`, rule: 'is no realm of this installation' }],
  );
}

function idsOf(said: readonly string[]): readonly Uuid[] {
  return said.map((raw) => parseUuid(raw) as Uuid);
}
