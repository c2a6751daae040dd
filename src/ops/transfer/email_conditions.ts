import type { AnyRecord, ReferenceCondition } from '../../model/resource.ts';
import type { Load } from '../../model/store.ts';
import { recordName } from './deferred_lines.ts';
import { CONDITION_TARGETS, type EmailCondition } from './import_line.ts';

export type EmailConditions = ReturnType<typeof openEmailConditions>;

/**
 * Checks the e-mail conditions of imported lines against the stored records, which `stored` reads, and those of the current batch,
 * which `commitBatch` commits.
 */
export function openEmailConditions(
  stored: (location: Pick<EmailCondition, 'resource' | 'key'>) => Promise<AnyRecord | undefined>,
  commitBatch: () => Promise<void>,
) {
  /** The writes of the batch to each record that a condition can refer to. */
  const targets = new Map<string, Load[]>();
  /** Whether conditions apply to the stored records, as read since the last commit. */
  const results = new Map<string, boolean>();

  /** Whether neither the stored record, as last read, nor one in the batch requires an e-mail address. */
  function isKnownNotToApply(emailCondition: EmailCondition): boolean {
    if (results.get(conditionName(emailCondition)) !== false) return false;
    const loads = targets.get(recordName(emailCondition)) ?? [];
    return !loads.some(({ write }) => applies(write.record, emailCondition.condition));
  }

  return {
    /** Adds a record to the batch. */
    add(load: Load): void {
      if (!CONDITION_TARGETS.has(load.write.resource)) return;
      targets.getOrInsert(recordName(load.write), []).push(load);
    },
    /** Called after each commit: the batch is empty again. */
    clear(): void {
      targets.clear();
      results.clear();
    },
    isKnownNotToApply,
    /**
     * Whether the line breaks a condition of the record it references. If that record may be in the batch, the batch is
     * committed first. A profile's condition holds for later records (docs/wire.md#password-profiles): neither for a value
     * that is stored already, nor for a record older than the profile's last change.
     */
    async isBroken({ write }: Load, emailCondition: EmailCondition): Promise<boolean> {
      const { name, condition } = emailCondition;
      results.set(conditionName(emailCondition), applies(await stored(emailCondition), condition));
      if (isKnownNotToApply(emailCondition)) return false;
      if (targets.has(recordName(emailCondition))) await commitBatch();
      const target = await stored(emailCondition);
      if (!applies(target, condition) || write.record.updated_at < (target?.updated_at ?? 0)) return false;
      return (await stored(write))?.[name] !== write.record[name];
    },
  };
}

function conditionName(emailCondition: EmailCondition): string {
  return `${recordName(emailCondition)} ${emailCondition.condition.member}`;
}

function applies(record: AnyRecord | undefined, { member, equals }: ReferenceCondition): boolean {
  return record?.[member] === equals;
}
