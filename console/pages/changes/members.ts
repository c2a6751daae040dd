import { RESOURCES } from '../../api/records.ts';

/** A write below a user moves the time of the user on. */
const LABELS = new Map([
  ['updated_at', 'Changed'] as const,
  ...Object.values(RESOURCES).flatMap(({ fields }) =>
    fields.map(({ name, label }) => [name, label] as const),
  ),
]);

/** What a member of a record is called before readers. */
export function memberLabel(member: string): string {
  return LABELS.get(member) ?? member;
}
