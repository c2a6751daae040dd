import { z } from 'zod';
import { membersOf, type Resource } from '../../domain/resource.ts';
import { RESOURCES } from '../../domain/resources.ts';
import { IMPOSSIBLE } from '../../domain/text/text.ts';

/** What of a resource can be refused though it is well-formed: which statuses an operation answers follows from it. */

/** Whether a well-formed record can be refused for what it says: by what else is stored, or by itself. */
export function canRefuseWrite(resource: Resource): boolean {
  return (
    resource.unique.length > 0 ||
    membersOf(resource).some(({ schema, placement }) => {
      const { references, emailWhere, sameAs, settled, learnedFrom } = placement;
      return [references, emailWhere, sameAs, settled, learnedFrom].some(Boolean) || canRefuseValue(schema);
    })
  );
}

/** Whether a value of the right form can be refused for what it is (contract 8, row 14). */
function canRefuseValue(schema: z.core.$ZodType): boolean {
  if (schema instanceof z.ZodDefault || schema instanceof z.ZodOptional)
    return canRefuseValue(schema.unwrap());
  if (schema instanceof z.ZodArray) return canRefuseValue(schema.element);
  const checks = schema._zod.def.checks ?? [];
  return checks.some(({ _zod: { def } }) => 'params' in def && def.params === IMPOSSIBLE);
}

/** Whether a removal can be refused: for the record itself, or for how much would go with it. */
export function canRefuseDelete(resource: Resource): boolean {
  const dependents = RESOURCES.filter(
    (other) =>
      other.parent === resource ||
      membersOf(other).some(({ placement }) => placement.references === resource.name),
  );
  return resource.keptBy !== undefined || dependents.length > 0;
}
