import { type ChildrenFigures, openChildren, serveParent } from '../children.ts';
import { LIMITS } from '../domain/limits.ts';
import { normalisedPassword, type PasswordCost } from '../domain/password.ts';

/** A hash that was made here. */
export interface MadeHash {
  /** In PHC form, as `passwordHash()` reads it. */
  readonly hash: string;
  /** Made from the text after NFKC. How an imported hash was made is not known. */
  readonly isNormalised: true;
}

export interface Hasher {
  /**
   * Hashes a password that `password()` let through. Rejects with Fault `overloaded` where `hashesWaitingMax` wait, or
   * after `hashMsMax`.
   */
  hash(password: string): Promise<MadeHash>;
  figures(): ChildrenFigures;
  close(): Promise<void>;
}

/** What the child is asked. The cost comes along, so that it is said in one place. */
interface Order extends PasswordCost {
  readonly password: string;
}

/** One child makes the hashes, one after the other. `command` must end in `serveHasher`. */
export function openHasher({ memoryKib, passes }: PasswordCost, command: readonly string[]): Hasher {
  const children = openChildren({
    command,
    atOnce: 1,
    waitingMax: LIMITS.hashesWaitingMax,
    waitMsMax: LIMITS.hashMsMax,
    // A late hash ends by itself; a child without words for this long is as good as idle.
    workMsMax: LIMITS.childIdleMsMax,
  });
  return {
    async hash(password) {
      const order: Order = { password, memoryKib, passes };
      return { hash: await children.ask<string>(order), isNormalised: true };
    },
    figures: children.figures,
    close: children.close,
  };
}

/** The child's side: hashes until the service goes away. */
export function serveHasher(): Promise<void> {
  return serveParent((order) => hashOf(order as Order));
}

/** On the thread whose priority was lowered; a pool of the runtime might have started before. */
function hashOf({ password, memoryKib, passes }: Order): string {
  return Bun.password.hashSync(normalisedPassword(password), {
    algorithm: 'argon2id',
    memoryCost: memoryKib,
    timeCost: passes,
  });
}
