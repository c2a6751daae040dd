import type { Snapshot } from '../observe/family.ts';

/** What a process of a service says to another one. */
export type Utterance =
  | { readonly kind: 'question'; readonly id: number }
  | { readonly kind: 'answer'; readonly id: number; readonly snapshot: Snapshot };

export function isUtterance(message: unknown): message is Utterance {
  const { kind } = (message ?? {}) as { readonly kind?: unknown };
  return kind === 'question' || kind === 'answer';
}

/** One end of it: either may ask the other one for metrics. */
export interface Conversation {
  /** What the other one answers; undefined where it does not within this time, or is gone. */
  ask(waitMsMax: number): Promise<Snapshot | undefined>;
  /** Tells what nobody asked for: the last words. */
  tell(snapshot: Snapshot): void;
  hear(utterance: Utterance): void;
}

interface Sides {
  readonly send: (utterance: Utterance) => void;
  /** What is answered to the other one. */
  readonly answer: () => Promise<Snapshot>;
  /** Is told whatever the other one answers, also what comes too late. */
  readonly onAnswer?: (snapshot: Snapshot) => void;
}

/** No question has it. */
const UNASKED = 0;

export function openConversation({ send, answer, onAnswer }: Sides): Conversation {
  const open = new Map<number, (snapshot: Snapshot) => void>();
  let asked = UNASKED;

  /** A channel that is closed takes nothing; that its other end is gone is heard elsewhere. */
  function say(utterance: Utterance): void {
    try {
      send(utterance);
    } catch {}
  }

  return {
    async ask(waitMsMax) {
      asked += 1;
      const id = asked;
      const { promise, resolve } = Promise.withResolvers<Snapshot | undefined>();
      const timer = setTimeout(() => resolve(undefined), waitMsMax);
      open.set(id, resolve);
      say({ kind: 'question', id });
      try {
        return await promise;
      } finally {
        clearTimeout(timer);
        open.delete(id);
      }
    },
    tell: (snapshot) => say({ kind: 'answer', id: UNASKED, snapshot }),
    hear(utterance) {
      if (utterance.kind === 'question') {
        const { id } = utterance;
        // Where it fails nothing is said, and the other one waits no longer than it would.
        answer().then(
          (snapshot) => say({ kind: 'answer', id, snapshot }),
          () => undefined,
        );
        return;
      }
      onAnswer?.(utterance.snapshot);
      open.get(utterance.id)?.(utterance.snapshot);
    },
  };
}
