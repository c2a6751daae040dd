import { z } from 'zod';
import { membersOf, type Resource } from '../../domain/resource.ts';
import { RESOURCES } from '../../domain/resources.ts';
import { IMPOSSIBLE } from '../../domain/text/text.ts';

/** Whether a well-formed record can be rejected with 422: because of other records, or of its own values. */
export function canRefuseWrite(resource: Resource): boolean {
  return (
    resource.unique.length > 0 ||
    membersOf(resource).some(({ schema, placement }) => {
      const { references, emailWhere, sameAs, settled, learnedFrom } = placement;
      return [references, emailWhere, sameAs, settled, learnedFrom].some(Boolean) || canRefuseValue(schema);
    })
  );
}

/** Whether a well-formed value can be rejected with 422 (docs/wire.md#errors). */
function canRefuseValue(schema: z.core.$ZodType): boolean {
  if (schema instanceof z.ZodDefault || schema instanceof z.ZodOptional)
    return canRefuseValue(schema.unwrap());
  if (schema instanceof z.ZodArray) return canRefuseValue(schema.element);
  const checks = schema._zod.def.checks ?? [];
  return checks.some(({ _zod: { def } }) => 'params' in def && def.params === IMPOSSIBLE);
}

/** Whether a delete can be rejected with 422: the record is preset, or too many records depend on it. */
export function canRefuseDelete(resource: Resource): boolean {
  const dependents = RESOURCES.filter(
    (other) =>
      other.parent === resource ||
      membersOf(other).some(({ placement }) => placement.references === resource.name),
  );
  return resource.keptBy !== undefined || dependents.length > 0;
}
