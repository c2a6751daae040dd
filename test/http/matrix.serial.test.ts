import { describe, expect, test } from 'bun:test';
import { SCOPES } from '../../src/domain/principal.ts';
import { successOf } from '../support/document_caller.ts';
import { computeMatrix, RIGHTS, TOKENS } from './matrix/matrix.ts';
import { differences, readTable } from './matrix/table.ts';

/**
 * Who may do what: every operation of the document, asked over HTTP with every scope, every state of a token, and a
 * realm inside and outside of the client's list. The tables are kept beside; `bun scripts/write_matrix.ts` writes them
 * anew, and what it changed is to be read before it is kept.
 */

const { operations, rights, tokens } = await computeMatrix();

test('every operation answers every scope and realm as the table says', () => {
  expect(differences(readTable(RIGHTS.path, RIGHTS.names.length), rights)).toEqual([]);
});

test('every operation answers every state of a token as the table says', () => {
  expect(differences(readTable(TOKENS.path, TOKENS.names.length), tokens)).toEqual([]);
});

describe('the table of rights is what the document promises:', () => {
  type Allowed = Readonly<Record<string, readonly string[]>>;
  const REFUSED: Allowed = { inside: ['403', '-'], outside: ['403', '-'], all: ['403'] };

  function open(success: string): Allowed {
    return { inside: [success], outside: [success], all: [success] };
  }

  /** Nobody is told anything of a realm outside of the list. */
  function granted(success: string): Allowed {
    return { inside: [success, '403', '-'], outside: ['403', '404', '200 hidden', '-'], all: [success] };
  }

  function hold(row: string, allowed: Allowed): void {
    for (const [column, cells] of Object.entries(allowed)) {
      expect(cells).toContain(rights.get(row)?.get(column) ?? '');
    }
  }

  test.each(operations.map((each) => [each.id, each] as const))('%s', (id, operation) => {
    const success = String(successOf(operation));
    const { scopes } = operation;
    if (!scopes) hold(`${id}\t-`, open(success));
    for (const scope of scopes ? SCOPES : []) {
      hold(`${id}\t${scope}`, scopes?.includes(scope) ? granted(success) : REFUSED);
    }
  });
});

describe('the table of tokens:', () => {
  test.each(operations.map((each) => [each.id, each] as const))('%s', (id, operation) => {
    const { right, 'scope unknown': without, ...wrong } = Object.fromEntries(tokens.get(id) ?? []);
    const success = String(successOf(operation));
    expect([right, without]).toEqual([success, operation.scopes?.length ? '403' : success]);
    expect(new Set(Object.values(wrong))).toEqual(new Set([operation.scopes ? '401' : success]));
  });
});
