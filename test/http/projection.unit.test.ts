import { expect, test } from 'bun:test';
import { z } from 'zod';
import { projector } from '../../src/http/operations/projection.ts';

/** Answers made from descriptions of their members: src/http/operations/projection.ts. */

test('a member described by its schema alone is read by its name in camel case, and null where it is absent', () => {
  const answerOf = projector<object>({ name: z.string(), last_used: z.int().nullable() });
  expect(answerOf({ name: 'a', lastUsed: 3 })).toEqual({ name: 'a', last_used: 3 });
  expect(answerOf({ name: 'a' })).toEqual({ name: 'a', last_used: null });
});
