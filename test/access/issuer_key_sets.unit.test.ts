import { expect, test } from 'bun:test';
import { type KeySetOutcome, openIssuerKeys } from '../../src/access/issuers/issuer_keys.ts';
import { readKeySet } from '../../src/access/issuers/jwk_set.ts';
import type { FetchResult, GuardedFetch } from '../../src/access/outbound/guarded_fetch.ts';
import { LIMITS } from '../../src/model/limits.ts';
import { createKeyPair } from '../support/issuers.ts';

/** The keys of an issuer, while its key set can be read and while it cannot. */

const { publicJwk } = await createKeyPair('one');
const set = async (): Promise<FetchResult> => ({ kind: 'document', document: { keys: [publicJwk] } });
const unreachable = async (): Promise<FetchResult> => ({ kind: 'unreachable' });

function opened() {
  let now = 0;
  let answer: () => Promise<FetchResult> = set;
  const outcomes: KeySetOutcome[] = [];
  const keys = openIssuerKeys(
    { name: 'staff', issuer: 'https://issuer.example', jwksUri: 'https://issuer.example/keys' },
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
    answersBy(next: () => Promise<FetchResult>) {
      answer = next;
    },
  };
}

test('an unknown key is undefined, and `unread` while the issuer is unreachable', async () => {
  const { keys, advance, answersBy, outcomes } = opened();
  expect(await keys.find('one')).toMatchObject({ kid: 'one' });
  expect(await keys.find('two')).toBeUndefined();
  answersBy(unreachable);
  for (let count = 0; count < 2; count += 1) {
    advance(LIMITS.issuerKeysPauseMs);
    expect([await keys.find('two'), await keys.find('one')]).toMatchObject(['unread', { kid: 'one' }]);
  }
  answersBy(set);
  advance(LIMITS.issuerKeysPauseMs);
  expect(await keys.find('two')).toBeUndefined();
  // A repeated outcome is reported once.
  expect(outcomes).toEqual(['read', 'unreachable', 'read']);
});

test('at most issuerWaitersMax lookups wait for a key set, and further ones are `unread`', async () => {
  const { keys, advance, answersBy } = opened();
  expect(await keys.find('one')).toMatchObject({ kid: 'one' });
  const { promise, resolve } = Promise.withResolvers<FetchResult>();
  answersBy(() => promise);
  advance(LIMITS.issuerKeysPauseMs);
  const waiting = Array.from({ length: LIMITS.issuerWaitersMax }, () => keys.find('two'));
  expect(waiting.every((each) => each instanceof Promise)).toBe(true);
  expect(await keys.find('two')).toBe('unread');
  resolve(await set());
  expect(new Set(await Promise.all(waiting))).toEqual(new Set([undefined]));
  // The pause prevents another request, so nothing waits.
  expect(keys.find('two')).toBeUndefined();
});

test('a key set whose URL is in a discovery document is fetched as named by the issuer, a configured one is not', async () => {
  const requests: (readonly [string, string | undefined])[] = [];
  const issuer = 'https://issuer.example';
  const fetch: GuardedFetch = async (url, { namedBy } = {}) => {
    requests.push([url, namedBy]);
    return { kind: 'document', document: { issuer, jwks_uri: 'https://keys.example/', keys: [publicJwk] } };
  };
  await readKeySet({ issuer, jwksUri: undefined }, fetch);
  await readKeySet({ issuer, jwksUri: 'https://keys.internal/' }, fetch);
  expect(requests).toEqual([
    [`${issuer}/.well-known/openid-configuration`, undefined],
    ['https://keys.example/', issuer],
    ['https://keys.internal/', undefined],
  ]);
});

test.each<[string, object]>([
  ['symmetric', { kty: 'oct', k: 'AAAA' }],
  ['of an unknown type', { ...publicJwk, kty: 'AKP' }],
  ['for encryption', { ...publicJwk, use: 'enc' }],
  ['without the operation verify', { ...publicJwk, key_ops: ['encrypt'] }],
  ['with operations outside a list', { ...publicJwk, key_ops: 'verify' }],
  ['with null operations', { ...publicJwk, key_ops: null }],
])('a key that is %s does not hide the next key with the same kid', async (_, first) => {
  const answers = async (): Promise<FetchResult> => ({
    kind: 'document',
    document: { keys: [{ ...first, kid: 'one', alg: 'first' }, publicJwk] },
  });
  const found = await readKeySet({ issuer: 'https://issuer.example', jwksUri: 'https://x.example' }, answers);
  if (typeof found === 'string') throw new Error(found);
  // It is the only key, too.
  expect([...found].map(([kid, { jwk }]) => [kid, jwk.alg])).toEqual([
    ['one', 'RS256'],
    [undefined, 'RS256'],
  ]);
});

const { kid: _, ...unnamed } = publicJwk;
test.each<[string, readonly object[], readonly (string | undefined)[]]>([
  ['the only key', [publicJwk], ['one', undefined]],
  ['the only key, which has no kid', [unnamed], [undefined]],
  ['the only key that signs', [{ ...publicJwk, kid: 'two', use: 'enc' }, unnamed], [undefined]],
  ['none of two keys', [publicJwk, unnamed], ['one']],
  ['none of two keys with the same kid', [publicJwk, publicJwk], ['one']],
  ['none of two keys without kid', [unnamed, unnamed], []],
  ['none where a kid is not a text', [{ ...publicJwk, kid: 1 }], []],
])('a token without kid is verified by %s', async (_name, keys, named) => {
  const answers = async (): Promise<FetchResult> => ({ kind: 'document', document: { keys } });
  const found = await readKeySet({ issuer: 'https://issuer.example', jwksUri: 'https://x.example' }, answers);
  if (typeof found === 'string') throw new Error(found);
  expect([...found.keys()]).toEqual([...named]);
});
