import type { Load, MaybePromise, Store } from '../directory/store.ts';
import type { AnyRecord, Key, ReferenceCondition, Resource } from '../domain/resource.ts';
import { CONDITION_TARGETS, type EmailCondition } from './import_line.ts';

/** Checks the e-mail conditions of imported lines against the stored records and those of the current batch. */
export interface EmailConditions {
  /** Adds a record to the batch. */
  add(load: Load): void;
  /** Called after each commit: the batch is empty again. */
  clear(): void;
  /** Whether neither the stored record, as last read, nor one in the batch requires an e-mail address. */
  isKnownNotToApply(condition: EmailCondition): boolean;
  /**
   * Whether the line breaks a condition of the record it references. If that record may be in the batch, the batch is
   * committed first. A profile's condition holds for later records (docs/wire.md#password-profiles): neither for a value
   * that is stored already, nor for a record older than the profile's last change.
   */
  isBroken(load: Load, condition: EmailCondition): Promise<boolean>;
}

interface ConditionDeps {
  readonly get: Store['get'];
  /** Commits the batch. */
  readonly commitBatch: () => Promise<void>;
  readonly retry: <T>(work: () => MaybePromise<T>) => Promise<T>;
}

export function openEmailConditions({ get, commitBatch, retry }: ConditionDeps): EmailConditions {
  /** The writes of the batch to each record that a condition can refer to. */
  const targets = new Map<string, Load[]>();
  /** Whether conditions apply to the stored records, as read since the last commit. */
  const results = new Map<string, boolean>();

  function stored(resource: Resource, key: Key): Promise<AnyRecord | undefined> {
    return retry(() => get(resource, key));
  }

  function isKnownNotToApply(emailCondition: EmailCondition): boolean {
    const { resource, key, condition } = emailCondition;
    if (results.get(conditionName(emailCondition)) !== false) return false;
    const loads = targets.get(recordName(resource, key)) ?? [];
    return !loads.some(({ write }) => applies(write.record, condition));
  }

  return {
    add(load) {
      const { resource, key } = load.write;
      if (!CONDITION_TARGETS.has(resource)) return;
      const name = recordName(resource, key);
      const loads = targets.get(name);
      if (loads) loads.push(load);
      else targets.set(name, [load]);
    },
    clear() {
      targets.clear();
      results.clear();
    },
    isKnownNotToApply,
    async isBroken({ write }, emailCondition) {
      const { name, condition, resource, key } = emailCondition;
      results.set(conditionName(emailCondition), applies(await stored(resource, key), condition));
      if (isKnownNotToApply(emailCondition)) return false;
      if (targets.has(recordName(resource, key))) await commitBatch();
      const target = await stored(resource, key);
      if (!applies(target, condition) || write.record.updated_at < (target?.updated_at ?? 0)) return false;
      return (await stored(write.resource, write.key))?.[name] !== write.record[name];
    },
  };
}

function conditionName({ resource, key, condition }: EmailCondition): string {
  return `${recordName(resource, key)} ${condition.member}`;
}

function recordName({ table }: Resource, key: Key): string {
  return `${table} ${key.join(' ')}`;
}

function applies(record: AnyRecord | undefined, { member, equals }: ReferenceCondition): boolean {
  return record?.[member] === equals;
}
