import { LIMITS } from '../../domain/limits.ts';
import type { ExpectedResult } from '../transaction_work.ts';
import type { QueryResult } from './connection.ts';

/** Statements of a transaction whose results were not awaited: their work continued as if each had returned the expected one. */
export interface Expectations {
  /** Adds a statement that was sent. Without an expected result it only has to succeed. */
  add(sent: Promise<QueryResult>, expected: ExpectedResult | undefined): void;
  /** Notes that the work wrote a row. */
  noteWrite(): void;
  /** Whether a row was written, or is expected to be, since the last call. */
  takeHasWritten(): boolean;
  /**
   * Waits if too many statements have no response yet. Rejects as `check` does, at once if a result that has arrived is not the
   * expected one.
   */
  makeRoom(): Promise<void>;
  /** Waits for the statements that have an expected result. Rejects as `check` does. */
  checkExpected(): Promise<void>;
  /** Waits for all results. Rejects with the error of the first statement that failed, or with UnexpectedResult. */
  check(): Promise<void>;
}

/** A result was not the expected one. */
export class UnexpectedResult extends Error {
  constructor() {
    super('a statement did not return the expected result');
    this.name = 'UnexpectedResult';
  }
}

interface SentStatement {
  readonly checked: Promise<void>;
  readonly hasExpectedResult: boolean;
}

export function openExpectations(): Expectations {
  let pending: SentStatement[] = [];
  let hasWritten = false;
  let hasFailed = false;

  async function check(): Promise<void> {
    const sent = pending;
    pending = [];
    for (const { checked } of sent) await checked;
  }

  return {
    add(sent, expected) {
      const checked = sent.then((result) => {
        if (expected && !isExpected(expected, result)) throw new UnexpectedResult();
      });
      checked.catch(() => {
        hasFailed = true;
      });
      pending.push({ checked, hasExpectedResult: expected !== undefined });
      if (expected !== 'no_row') hasWritten = true;
    },
    noteWrite() {
      hasWritten = true;
    },
    takeHasWritten() {
      const had = hasWritten;
      hasWritten = false;
      return had;
    },
    async makeRoom() {
      if (hasFailed) await check();
      while (pending.length >= LIMITS.statementsUnansweredMax) {
        // One that fails stays: `check` reports the first failure.
        await pending[0]?.checked;
        pending.shift();
      }
    },
    async checkExpected() {
      for (const { checked, hasExpectedResult } of pending) if (hasExpectedResult) await checked;
    },
    check,
  };
}

function isExpected(expected: ExpectedResult, { rows, count }: QueryResult): boolean {
  return expected === 'one_row' ? count === 1 : rows.length === 0;
}
