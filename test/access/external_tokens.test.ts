import { describe, expect, test } from 'bun:test';
import { createHmac } from 'node:crypto';
import { LIMITS } from '../../src/model/limits.ts';
import { sameOrigin } from '../support/console_sign_in.ts';
import {
  AUDIENCE,
  claimsOf,
  createKeyPair,
  issue,
  issuerEntry,
  startIssuer,
  startTrustingService,
} from '../support/issuers.ts';
import { createFixture, LOOKUPS } from '../support/service.ts';
import { compact, encode, type Json, openForge, respell, type Sign } from '../support/token_forge.ts';

/** Tokens of external issuers: the accepted ones, and every kind of invalid token. */

const { path } = LOOKUPS[0];

const acme = await startIssuer();
const other = await startIssuer();
const rsa = await createKeyPair('one');
const elliptic = await createKeyPair('two', 'ES256');
// The same kid as a key of the first issuer: keys are looked up by issuer.
const others = await createKeyPair('one');
/** A key without an algorithm. */
const bare = await createKeyPair('bare');
const { alg: _, use: __, ...unbound } = bare.publicJwk;
acme.publish(rsa.publicJwk, elliptic.publicJwk, unbound, {
  kty: 'oct',
  kid: 'shared',
  k: encode('a secret that is none'),
});
other.publish(others.publicJwk);
const service = await startTrustingService(
  issuerEntry(acme, { algorithms: ['RS256', 'RS512', 'ES256'] }),
  issuerEntry(other, { name: 'other', typ: 'JWT' }),
);
const fixture = await createFixture(service.db);

async function statusOf(token: string): Promise<number> {
  return (await service.get(path(fixture), token)).status;
}

const claims = (more: Json = {}): Json => ({ ...claimsOf(acme, service), ...more });
const now = () => Math.floor(service.clock.now() / 1000);
const claimsOfLifetime = (seconds: number, iat = now()) => ({ iat, exp: iat + seconds });
const by = (more: Json = {}, header: Json = {}, sign?: Sign) => issue(rsa, claims(more), header, sign);
const hs256 =
  (secret: string): Sign =>
  async (input) =>
    createHmac('sha256', secret).update(input).digest();

const RIGHT: [string, () => Promise<string>][] = [
  ['RS256', () => by()],
  ['ES256', () => issue(elliptic, claims())],
  [
    'RS512 with a key without an algorithm',
    () => issue(bare, claims(), { alg: 'RS512' }, bare.signWith('SHA-512')),
  ],
  ['RS256 with a key without an algorithm', () => issue(bare, claims())],
  ['typ in full', () => by({}, { typ: 'application/at+jwt' })],
  ['typ in another case', () => by({}, { typ: 'AT+JWT' })],
  ['an issuer whose typ is configured', () => issue(others, claimsOf(other, service), { typ: 'JWT' })],
  ['several audiences, one of them ours', () => by({ aud: ['https://other.example', AUDIENCE] })],
  ['expired within the leeway', () => by({ exp: now() - 5 })],
  ['a subject in another script', () => by({ sub: 'Жанна 🙂' })],
  ['the longest subject', () => by({ sub: 'x'.repeat(255) })],
  ['the longest lifetime', () => by(claimsOfLifetime(LIMITS.tokenLifetimeSecondsMax))],
  ['unknown claims', () => by({ deep: { er: [{ est: 1 }] } })],
];
test.each(RIGHT)('a valid external token is 200: %s', async (_name, make) => {
  const token = await make();
  expect([await statusOf(token), await statusOf(token)]).toEqual([200, 200]);
});

/** A token whose header and claims are these texts. */
const signedToken = (header: string, body: string) => compact(header, body, rsa.sign);
const headerText = () => JSON.stringify({ alg: 'RS256', typ: 'at+jwt', kid: 'one' });
const withMember = (text: string, member: string) => `${text.slice(0, -1)},${member}}`;

const WRONG: Record<string, [string, () => string | Promise<string>][]> = {
  algorithm: [
    ['alg none', async () => (await by({}, { alg: 'none' })).replace(/[^.]*$/, '')],
    ['alg none with a signature', () => by({}, { alg: 'none' })],
    ['HS256 by the public key', () => by({}, { alg: 'HS256' }, hs256(JSON.stringify(rsa.publicJwk)))],
    [
      'HS256 by the key that was published',
      () => by({}, { alg: 'HS256', kid: 'shared' }, hs256('a secret that is none')),
    ],
    ['RS256 by the shared key', () => by({}, { kid: 'shared' }, hs256('a secret that is none'))],
    ['an unlisted algorithm', () => by({}, { alg: 'PS256' })],
    [
      'an unlisted algorithm with a key without one',
      () => issue(bare, claims(), { alg: 'RS384' }, bare.signWith('SHA-384')),
    ],
    [
      'another algorithm than that of the key',
      () => issue(rsa, claims(), { alg: 'RS512' }, rsa.signWith('SHA-512')),
    ],
    ['an algorithm for another key type', () => by({}, { alg: 'ES256' })],
    ['a list', () => by({}, { alg: ['RS256'] })],
  ],
  header: [
    ['typ of an ID token', () => by({}, { typ: 'JWT' })],
    ['typ missing', () => by({}, { typ: undefined })],
    ['typ of an access token if another one is configured', () => issue(others, claimsOf(other, service))],
    ['jwk', () => by({}, { jwk: rsa.publicJwk })],
    ['jku', () => by({}, { jku: `${acme.issuer}/keys` })],
    ['x5u', () => by({}, { x5u: `${acme.issuer}/keys` })],
    ['x5c', () => by({}, { x5c: [] })],
    ['crit', () => by({}, { crit: ['exp'] })],
    ['kid missing', () => by({}, { kid: undefined })],
    [
      'kid missing though the set has one key',
      () => issue(others, claimsOf(other, service), { typ: 'JWT', kid: undefined }),
    ],
    ['kid a number', () => by({}, { kid: 1 })],
    ['kid of a path', () => by({}, { kid: '../../../../dev/null' })],
    ['kid of SQL', () => by({}, { kid: "one' or '1'='1" })],
    ['kid __proto__', () => by({}, { kid: '__proto__' })],
    ['alg twice', () => signedToken(withMember(headerText(), '"alg":"RS256"'), JSON.stringify(claims()))],
    [
      'alg twice, one spelled by escapes',
      () => signedToken(withMember(headerText(), '"\\u0061lg":"RS256"'), JSON.stringify(claims())),
    ],
    ['no object', () => signedToken('[]', JSON.stringify(claims()))],
  ],
  signature: [
    ['of another issuer with the same kid', () => issue(others, claims())],
    ['of this issuer, for another one', () => issue(rsa, claimsOf(other, service), { typ: 'JWT' })],
    ['of our own key', async () => by({}, {}, (await openForge(service)).sign)],
    ['invalid', async () => (await by()).replace(/[^.]*$/, 'AAAA')],
    ['truncated', async () => (await by()).slice(0, -4)],
    ['another base64url spelling', async () => respell(await issue(elliptic, claims()))],
  ],
  claims: [
    ['an unknown iss', () => by({ iss: 'https://nobody.example' })],
    [
      'iss of this service',
      () => by({ iss: service.url, client_id: 'auth0|jane', scope: 'oidc-profile-infos:read' }),
    ],
    ['iss a list', () => by({ iss: [acme.issuer] })],
    ['iss with a slash', () => by({ iss: `${acme.issuer}/` })],
    ['aud of another service', () => by({ aud: 'https://other.example' })],
    ['aud missing', () => by({ aud: undefined })],
    ['aud that begins like ours', () => by({ aud: `${AUDIENCE}.example` })],
    ['expired', () => by({ exp: now() - 31 })],
    ['exp missing', () => by({ exp: undefined })],
    ['exp a text', () => by({ exp: '9999999999' })],
    [
      'exp infinite',
      () => signedToken(headerText(), JSON.stringify(claims()).replace(/"exp":\d+/, '"exp":1e999')),
    ],
    ['a lifetime that is too long', () => by(claimsOfLifetime(LIMITS.tokenLifetimeSecondsMax + 1))],
    ['iat missing', () => by({ iat: undefined })],
    ['iat in the future', () => by({ iat: now() + 60 })],
    ['not yet valid', () => by({ nbf: now() + 60 })],
    ['nbf a text', () => by({ nbf: '0' })],
    ['sub missing', () => by({ sub: undefined })],
    ['sub empty', () => by({ sub: '' })],
    ['sub a number', () => by({ sub: 1 })],
    ['sub too long', () => by({ sub: 'x'.repeat(256) })],
    ['sub with a line break', () => by({ sub: 'jane\nadmin' })],
    [
      'sub with a lone surrogate',
      () => signedToken(headerText(), JSON.stringify(claims({ sub: 'S' })).replace('"S"', '"\\ud800"')),
    ],
    [
      'sub twice',
      () => signedToken(headerText(), withMember(JSON.stringify(claims()), '"sub":"auth0|jane"')),
    ],
    [
      'a nested member twice',
      () => signedToken(headerText(), withMember(JSON.stringify(claims()), '"a":[{"b":1,"b":1}]')),
    ],
    ['bytes that are not UTF-8', async () => latinToken(JSON.stringify(claims({ sub: 'j\u00e4ne' })))],
    ['no object', () => signedToken(headerText(), '"claims"')],
    ['nothing', () => signedToken(headerText(), '')],
    ['more than 8 KiB', () => by({ padding: 'x'.repeat(LIMITS.tokenBytesMax) })],
    [
      'deeply nested arrays',
      () => signedToken(headerText(), `${'['.repeat(5_000)}${']'.repeat(5_000)}`.slice(0, 5_900)),
    ],
  ],
};

describe.each(Object.entries(WRONG))('invalid %s', (kind, rows) => {
  test.each(rows)(`an external token with invalid ${kind} is 401: %s`, async (_name, make) => {
    const answer = await service.get(path(fixture), await make());
    expect([answer.status, answer.headers.get('www-authenticate')]).toEqual([
      401,
      'Bearer realm="authrealm", error="invalid_token"',
    ]);
  });
});

test('a token that is invalid without its key causes no request to the issuer', async () => {
  const issuer = await startIssuer();
  issuer.publish(rsa.publicJwk);
  const consumer = await startTrustingService(issuerEntry(issuer));
  const send = async (more: Json = {}, header: Json = {}) => {
    const token = await issue(rsa, { ...claimsOf(issuer, consumer), ...more }, { kid: 'unknown', ...header });
    expect((await consumer.get(path(fixture), token)).status).toBe(401);
    return issuer.requestCounts.get('/keys') ?? 0;
  };
  for (const header of [
    { alg: 'none' },
    { alg: 'ES256' },
    { kid: 1 },
    { typ: 'JWT' },
    { typ: 1 },
    { jku: 'x' },
  ])
    expect([header, await send({}, header)]).toEqual([header, 0]);
  for (const more of [
    ...[{ sub: '' }, { sub: 1 }, { iat: undefined }, { iat: String(now()) }, { iat: now() + 60 }],
    ...[{ exp: undefined }, { exp: '9999999999' }, { exp: now() + LIMITS.tokenLifetimeSecondsMax + 60 }],
  ])
    expect([more, await send(more)]).toEqual([more, 0]);
  expect(await send()).toBe(1);
});

test('external tokens are checked by the clock of the service', async () => {
  service.clock.advance(2 * 86_400_000);
  const token = await by({ nbf: now(), exp: now() + 60 });
  expect(await statusOf(token)).toBe(200);
  service.clock.advance(91_000);
  expect(await statusOf(token)).toBe(401);
  expect(await statusOf(await by({ exp: now() - 31, iat: now() - 600 }))).toBe(401);
});

/** A signed token whose payload is Latin-1, so not UTF-8. */
async function latinToken(body: string): Promise<string> {
  const input = `${encode(headerText())}.${Buffer.from(body, 'latin1').toString('base64url')}`;
  return `${input}.${encode(await rsa.sign(input))}`;
}

test('an external token cannot end a console session', async () => {
  const token = await by();
  expect((await service.del('/console/token', token, sameOrigin(service))).status).toBe(403);
  expect(await statusOf(token)).toBe(200);
});

describe('the actor of an external token', () => {
  const record = () => ({ name: 'Shop', type: 'authentication-realm' });

  test('the actor of an external token is the issuer name and a digest, and the subject is not logged', async () => {
    const writer = [{ claim: 'groups', value: 'writers', scopes: 'realms:write admin', realms: '*' }];
    const consumer = await startTrustingService(
      issuerEntry(acme, { rights: writer }),
      issuerEntry(other, { name: 'other', rights: writer }),
    );
    const actors: string[] = [];
    for (const [pair, issuer, sub] of [
      [rsa, acme, 'auth0|jane'],
      [rsa, acme, 'auth0|jane'],
      [rsa, acme, 'auth0|joan'],
      [others, other, 'auth0|jane'],
    ] as const) {
      const token = await issue(pair, { ...claimsOf(issuer, consumer), sub, groups: 'writers' });
      const made = await consumer.post('/v2/authentication-realms', token, { data: record() });
      expect(made.status).toBe(201);
      const [change] = await consumer.database.queryChanges<{ actor: string }>(
        'select actor from change order by at desc, seq desc limit 1',
      );
      actors.push(change?.actor ?? '');
    }
    const [first, second, joan, otherIssuer] = actors as [string, string, string, string];
    expect(first).toMatch(/^acme:[\w-]{22}$/);
    expect(otherIssuer).toMatch(/^other:[\w-]{22}$/);
    expect(second).toBe(first);
    expect(new Set([first, joan, otherIssuer, otherIssuer.replace('other', 'acme')]).size).toBe(4);
    expect(await consumer.database.findPlaintext(['auth0|jane'])).toEqual([]);
    expect(JSON.stringify(consumer.log)).not.toContain('auth0|jane');
  });
});
