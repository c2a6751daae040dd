import { LIMITS } from '../../domain/limits.ts';
import type { ExpectedResult } from '../transaction_work.ts';
import type { QueryResult } from './connection.ts';

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

export type Expectations = ReturnType<typeof openExpectations>;

/** Statements of a transaction whose results were not awaited: their work continued as if each had returned the expected one. */
export function openExpectations() {
  let pending: SentStatement[] = [];
  let hasWritten = false;
  let hasFailed = false;

  /** Waits for all results. Rejects with the error of the first statement that failed, or with UnexpectedResult. */
  async function check(): Promise<void> {
    const sent = pending;
    pending = [];
    for (const { checked } of sent) await checked;
  }

  return {
    /** Adds a statement that was sent. Without an expected result it only has to succeed. */
    add(sent: Promise<QueryResult>, expected: ExpectedResult | undefined): void {
      const checked = sent.then((result) => {
        if (expected && !isExpected(expected, result)) throw new UnexpectedResult();
      });
      checked.catch(() => {
        hasFailed = true;
      });
      pending.push({ checked, hasExpectedResult: expected !== undefined });
      if (expected !== 'no_row') hasWritten = true;
    },
    /** Notes that the work wrote a row. */
    noteWrite(): void {
      hasWritten = true;
    },
    /** Whether a row was written, or is expected to be, since the last call. */
    takeHasWritten(): boolean {
      const had = hasWritten;
      hasWritten = false;
      return had;
    },
    /**
     * Waits while too many statements have no response yet. Rejects as `check` does, at once if a result that has arrived is not the
     * expected one.
     */
    async makeRoom(): Promise<void> {
      if (hasFailed) await check();
      while (pending.length >= LIMITS.statementsUnansweredMax) {
        // One that fails stays: `check` reports the first failure.
        await pending[0]?.checked;
        pending.shift();
      }
    },
    /** Waits for the statements that have an expected result. Rejects as `check` does. */
    async checkExpected(): Promise<void> {
      for (const { checked, hasExpectedResult } of pending) if (hasExpectedResult) await checked;
    },
    check,
  };
}

function isExpected(expected: ExpectedResult, { rows, count }: QueryResult): boolean {
  return expected === 'one_row' ? count === 1 : rows.length === 0;
}
