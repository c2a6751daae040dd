import { expect, test } from 'bun:test';
import { z } from 'zod';
import { filledText, violatedRule, wholeNumber } from '../../src/model/rule.ts';

const brokenRules = (schema: z.ZodType, value: unknown) =>
  schema.safeParse(value).error?.issues.map(violatedRule) ?? [];

test.each([
  ['an empty text', filledText(), '', 'must not be empty'],
  ['a text that is too short', z.string().min(2), 'a', 'must have at least 2 characters'],
  ['a text that is too long', z.string().max(2), 'abc', 'must have at most 2 characters'],
  ['an empty list', z.array(z.string()).min(1), [], 'must have at least 1 entries'],
  ['a long list', z.array(z.string()).max(1), ['a', 'b'], 'must have at most 1 entries'],
  ['a small number', wholeNumber(1, 9), 0, 'must be at least 1'],
  ['a large number', wholeNumber(1, 9), 10, 'must be at most 9'],
])('the broken rule of %s names its unit', (_, schema, value, rule) => {
  expect(brokenRules(schema, value)).toEqual([rule]);
});
