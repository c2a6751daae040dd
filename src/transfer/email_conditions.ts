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
  /** Records of the batch that a condition can refer to. */
  let targets: Load[] = [];
  /** Whether conditions apply to the stored records, as read since the last commit. */
  const results = new Map<string, boolean>();

  function stored(resource: Resource, key: Key): Promise<AnyRecord | undefined> {
    return retry(() => get(resource, key));
  }

  function isKnownNotToApply(emailCondition: EmailCondition): boolean {
    const { resource, key, condition } = emailCondition;
    if (results.get(conditionName(emailCondition)) !== false) return false;
    return !targets.some(({ write }) => isWriteOf(write, resource, key) && applies(write.record, condition));
  }

  return {
    add(load) {
      if (CONDITION_TARGETS.has(load.write.resource)) targets.push(load);
    },
    clear() {
      targets = [];
      results.clear();
    },
    isKnownNotToApply,
    async isBroken({ write }, emailCondition) {
      const { name, condition, resource, key } = emailCondition;
      results.set(conditionName(emailCondition), applies(await stored(resource, key), condition));
      if (isKnownNotToApply(emailCondition)) return false;
      if (targets.some((load) => isWriteOf(load.write, resource, key))) await commitBatch();
      const target = await stored(resource, key);
      if (!applies(target, condition) || write.record.updated_at < (target?.updated_at ?? 0)) return false;
      return (await stored(write.resource, write.key))?.[name] !== write.record[name];
    },
  };
}

function conditionName({ resource, key, condition }: EmailCondition): string {
  return `${resource.table} ${key.join(' ')} ${condition.member}`;
}

function applies(record: AnyRecord | undefined, { member, equals }: ReferenceCondition): boolean {
  return record?.[member] === equals;
}

function isWriteOf(write: Load['write'], resource: Resource, key: Key): boolean {
  return write.resource === resource && key.every((id, at) => write.key[at] === id);
}
