import { LIMITS } from '../../model/limits.ts';
import type { ExpectedResult } from '../transaction_work.ts';
import type { QueryResult } from './connection.ts';

/** A result was not the expected one. */
export class UnexpectedResult extends Error {
  constructor() {
    super('a statement did not return the expected result');
    this.name = 'UnexpectedResult';
  }
}

export type Expectations = ReturnType<typeof openExpectations>;

/** Statements of a transaction whose results were not awaited: their work continued as if each had returned the expected one. */
export function openExpectations() {
  /** Requests with the rows that they write at most. The first may have settled. None rejects. */
  const unanswered: { readonly checked: Promise<void>; readonly rows: number }[] = [];
  let rowsUnanswered = 0;
  const withExpectedResult: Promise<void>[] = [];
  /** The error of the first statement that failed, or UnexpectedResult. */
  let failure: unknown;

  function assertNoFailure(): void {
    if (failure !== undefined) throw failure;
  }

  return {
    /** How many statements wrote rows, or are expected to. */
    writes: 0,
    /** Adds a request that was sent, and writes at most so many rows. Without an expected result it only has to succeed. */
    add(sent: Promise<QueryResult>, expected: ExpectedResult | undefined, rows = 1): void {
      const checked = sent
        .then((result) => {
          if (expected && !isExpected(expected, result)) throw new UnexpectedResult();
        })
        .catch((error) => {
          failure ??= error;
        });
      unanswered.push({ checked, rows });
      rowsUnanswered += rows;
      if (expected) withExpectedResult.push(checked);
    },
    /**
     * Waits while too many statements, or the rows of more than a batch, have no response yet. Rejects with the first failure that is
     * known.
     */
    async makeRoom(): Promise<void> {
      assertNoFailure();
      while (
        unanswered.length >= LIMITS.statementsUnansweredMax ||
        rowsUnanswered > LIMITS.insertsPerBatchMax
      ) {
        const first = unanswered.shift();
        await first?.checked;
        rowsUnanswered -= first?.rows ?? 0;
        assertNoFailure();
      }
    },
    /** Waits for the statements that have an expected result. Rejects with the first failure. */
    async checkExpected(): Promise<void> {
      await Promise.all(withExpectedResult);
      assertNoFailure();
    },
    /** Waits for all of them. Rejects with the first failure. */
    async check(): Promise<void> {
      await Promise.all(unanswered.map(({ checked }) => checked));
      assertNoFailure();
    },
  };
}

function isExpected(expected: ExpectedResult, { rows, count }: QueryResult): boolean {
  return expected === 'one_row' ? count === 1 : rows.length === 0;
}
