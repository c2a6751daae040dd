import { expect, test } from 'bun:test';
import { type KeySetOutcome, openIssuerKeys } from '../../src/auth/issuers/issuer_keys.ts';
import { type FetchedDocument, readKeySet } from '../../src/auth/issuers/jwk_set.ts';
import { LIMITS } from '../../src/domain/limits.ts';
import { createKeyPair } from '../support/issuers.ts';

/** Which keys an issuer has: what a set holds, and what nobody can say while none is read. */

const { publicJwk } = await createKeyPair('one');
const set = async (): Promise<FetchedDocument> => ({ kind: 'document', document: { keys: [publicJwk] } });
const unreachable = async (): Promise<FetchedDocument> => ({ kind: 'unreachable' });

function opened() {
  let now = 0;
  let answer: () => Promise<FetchedDocument> = set;
  const outcomes: KeySetOutcome[] = [];
  const keys = openIssuerKeys(
    { issuer: 'https://issuer.example', jwksUri: 'https://issuer.example/keys' },
    {
      fetchDocument: () => answer(),
      clock: { monotonic: () => now },
      note: (outcome) => outcomes.push(outcome),
    },
  );
  return {
    keys,
    outcomes,
    advance(ms: number) {
      now += ms;
    },
    answersBy(next: () => Promise<FetchedDocument>) {
      answer = next;
    },
  };
}

test('a key that a set does not hold is none, and while the issuer is out of reach nobody can say', async () => {
  const { keys, advance, answersBy, outcomes } = opened();
  expect(await keys.find('one')).toMatchObject({ kid: 'one' });
  expect(await keys.find('two')).toBeUndefined();
  answersBy(unreachable);
  for (let asked = 0; asked < 2; asked += 1) {
    advance(LIMITS.issuerKeysPauseMs);
    expect([await keys.find('two'), await keys.find('one')]).toMatchObject(['unread', { kid: 'one' }]);
  }
  answersBy(set);
  advance(LIMITS.issuerKeysPauseMs);
  expect(await keys.find('two')).toBeUndefined();
  // Each outcome is told once, as long as it stays.
  expect(outcomes).toEqual(['read', 'unreachable', 'read']);
});

test('while they are read so many wait, and of one more nobody can say', async () => {
  const { keys, advance, answersBy } = opened();
  expect(await keys.find('one')).toMatchObject({ kid: 'one' });
  const { promise, resolve } = Promise.withResolvers<FetchedDocument>();
  answersBy(() => promise);
  advance(LIMITS.issuerKeysPauseMs);
  const waiting = Array.from({ length: LIMITS.issuerWaitersMax }, () => keys.find('two'));
  expect(waiting.every((each) => each instanceof Promise)).toBe(true);
  expect(keys.find('two')).toBe('unread');
  resolve(await set());
  expect(new Set(await Promise.all(waiting))).toEqual(new Set([undefined]));
  // Nothing is asked again so soon, and nothing waits.
  expect(keys.find('two')).toBeUndefined();
});

test.each<[string, object]>([
  ['a secret', { kty: 'oct', k: 'AAAA' }],
  ['of a type nobody knows', { ...publicJwk, kty: 'AKP' }],
  ['for something else', { ...publicJwk, use: 'enc' }],
  ['not to verify by', { ...publicJwk, key_ops: ['encrypt'] }],
  ['with operations that are no list', { ...publicJwk, key_ops: 'verify' }],
  ['with operations that are nothing', { ...publicJwk, key_ops: null }],
])('a key that is %s hides none of the same name behind it', async (_, first) => {
  const answers = async (): Promise<FetchedDocument> => ({
    kind: 'document',
    document: { keys: [{ ...first, kid: 'one', alg: 'first' }, publicJwk] },
  });
  const found = await readKeySet({ issuer: 'https://issuer.example', jwksUri: 'https://x.example' }, answers);
  if (typeof found === 'string') throw new Error(found);
  expect([...found].map(([kid, { text }]) => [kid, JSON.parse(text).alg])).toEqual([['one', 'RS256']]);
});
