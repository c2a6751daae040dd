import type { AnyRecord } from '../../model/resource.ts';
import type { Load } from '../../model/store.ts';
import { recordName } from './deferred_lines.ts';
import { CONDITION_TARGETS, type EmailCondition } from './import_line.ts';

/** Checks the e-mail conditions of imported lines against the stored records, which `stored` reads. */
export function openEmailConditions(
  stored: (location: Pick<EmailCondition, 'resource' | 'key'>) => Promise<AnyRecord | undefined>,
) {
  /** The conditions that do not apply, as read since the last commit, and since a line wrote a record that they can refer to. */
  const inapplicable = new Set<string>();
  return {
    /** Called for each record that is added to the batch. */
    add({ write }: Load): void {
      if (CONDITION_TARGETS.has(write.resource)) inapplicable.clear();
    },
    /** Called after each commit. */
    clear: () => inapplicable.clear(),
    /**
     * Whether the line breaks a condition of the record it references. That record may be in the batch, so the batch is
     * committed first. A profile's condition holds for later records (docs/wire.md#password-profiles): neither for a value
     * that is stored already, nor for a record older than the profile's last change.
     */
    async isBroken(
      { write }: Load,
      emailCondition: EmailCondition,
      commitBatch: () => Promise<void>,
    ): Promise<boolean> {
      const { name, condition } = emailCondition;
      const key = `${recordName(emailCondition)} ${condition.member}`;
      if (inapplicable.has(key)) return false;
      await commitBatch();
      const target = await stored(emailCondition);
      const isApplicable = target?.[condition.member] === condition.equals;
      if (!isApplicable) inapplicable.add(key);
      if (!isApplicable || write.record.updated_at < (target?.updated_at ?? 0)) return false;
      return (await stored(write))?.[name] !== write.record[name];
    },
  };
}
