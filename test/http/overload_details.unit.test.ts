import { expect, test } from 'bun:test';
import { OVERLOADED, replyOf } from '../../src/http/server/reply.ts';
import { FAULTS, Fault, OVERLOAD_CAUSES, type OverloadCause, overloaded } from '../../src/model/fault.ts';

const detailOf = (fault: Fault): string => JSON.parse(String(replyOf(fault).body)).errors[0].detail;

test('the detail of a 503 names the cause, for every cause of overload', () => {
  const causes = Object.keys(OVERLOAD_CAUSES) as OverloadCause[];
  const details = causes.map((cause) => detailOf(overloaded(cause)));
  expect(details).toEqual(Object.values(OVERLOAD_CAUSES));
  expect(new Set(details).size).toBe(causes.length);
  for (const cause of causes) expect(replyOf(overloaded(cause)).headers['Retry-After']).toBe('1');
});

test('a 503 without a known cause of overload has the general detail', () => {
  expect(replyOf(new Fault('overloaded'))).toBe(OVERLOADED);
  expect(detailOf(new Fault('overloaded', [], new TypeError('a bug')))).toBe(FAULTS.overloaded.detail);
});
