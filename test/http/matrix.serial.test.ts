import { describe, expect, test } from 'bun:test';
import { IMPLICIT_SCOPES, SCOPES } from '../../src/model/principal.ts';
import { type Operation, successOf } from '../support/openapi_client.ts';
import { computeMatrix, isOfInstallation, RIGHTS, TOKENS } from './matrix/matrix.ts';
import { differences, readTable } from './matrix/table.ts';

/**
 * The access matrix: every operation of the OpenAPI document, requested with every scope, every state of a token, and a realm
 * inside and outside of the client's list. `bun scripts/write_matrix.ts` writes the tables in test/http/matrix/; review its
 * changes before committing them.
 */

const { operations, rights, tokens } = await computeMatrix();

test('every operation responds to every scope and realm as in the table of rights', () => {
  expect(differences(readTable(RIGHTS.path, RIGHTS.names.length), rights)).toEqual([]);
});

test('every operation responds to every state of a token as in the table of tokens', () => {
  expect(differences(readTable(TOKENS.path, TOKENS.names.length), tokens)).toEqual([]);
});

describe('the table of rights', () => {
  type Allowed = Readonly<Record<string, readonly string[]>>;
  const DENIED: Allowed = { inside: ['403', '-'], outside: ['403', '-'], all: ['403'] };

  function open(success: string): Allowed {
    return { inside: [success], outside: [success], all: [success] };
  }

  /** A response never reveals anything about a realm outside of the list. */
  function granted(success: string, isOnlyScope: boolean): Allowed {
    // A batch takes any of several scopes, and each of its requests needs one of them. A member reads its own record with `sign-in`
    // and an account token.
    const all = isOnlyScope ? [success] : [success, '401', '403'];
    // The token call answers 400, as to a wrong password.
    return { inside: [...all, '403', '-'], outside: ['400', '403', '404', '200 hidden', '-'], all };
  }

  /** A profile outside of the list is answered as a wrong password is, and a member's own record needs its token as well. */
  const EXCEPTIONS: Readonly<Record<string, Allowed>> = {
    'create-account-management-authentication-token\tsign-in': { outside: ['400'] },
    'get-account-member\tsign-in': { inside: ['401'], all: ['401'] },
    // Only the lines of a file name realms: the suite of transfers has them.
    'import-records\ttransfer': { outside: ['200'] },
    'export-records\ttransfer': { outside: ['200'] },
  };

  function expectCells(row: string, allowed: Allowed): void {
    for (const [column, cells] of Object.entries({ ...allowed, ...EXCEPTIONS[row] })) {
      expect(cells).toContain(rights.get(row)?.get(column) ?? '');
    }
  }

  test.each(operations.map((each) => [each.id, each] as const))(
    'the table of rights matches the document for %s',
    (id, operation) => {
      const success = String(successOf(operation));
      const { scopes } = operation;
      if (!scopes) expectCells(`${id}\t-`, open(success));
      for (const scope of scopes ? SCOPES : []) {
        const allowed = isOfInstallation(operation) ? open(success) : granted(success, scopes?.length === 1);
        expectCells(`${id}\t${scope}`, scopes?.includes(scope) ? allowed : DENIED);
      }
      const granting = SCOPES.filter((scope) => rights.get(`${id}\t${scope}`)?.get('all') === success);
      if (scopes?.length) expect(granting.length).toBeGreaterThan(0);
    },
  );
});

describe('the table of tokens', () => {
  /** The answer to the scope of `right`, which has the secret. A member reads its own record with an account token as well. */
  function byIdAlone({ id, scopes }: Operation, success: string): string {
    if (!scopes?.length) return success;
    const given = scopes.filter((scope) => IMPLICIT_SCOPES.has(scope));
    if (given.length === 0 || id.startsWith('check-')) return '403';
    return given.length === scopes.length ? success : '401';
  }

  test.each(operations.map((each) => [each.id, each] as const))(
    'the table of tokens matches the document for %s',
    (id, operation) => {
      const cells = Object.fromEntries(tokens.get(id) ?? []);
      const { right, 'scope unknown': without, 'by the ID alone': alone, ...wrong } = cells;
      const success = String(successOf(operation));
      expect([right, without]).toEqual([success, operation.scopes?.length ? '403' : success]);
      expect(alone).toBe(byIdAlone(operation, success));
      expect(new Set(Object.values(wrong))).toEqual(new Set([operation.scopes ? '401' : success]));
    },
  );
});
