import { heapStats } from 'bun:jsc';
import { describe, expect, test } from 'bun:test';
import { createHmac } from 'node:crypto';
import { LIMITS } from '../../src/model/limits.ts';
import { createFixture, LOOKUPS, startService } from '../support/service.ts';
import {
  compact,
  encode,
  generateForeignKey,
  type Json,
  openForge,
  respell,
  type Sign,
} from '../support/token_forge.ts';

const { path } = LOOKUPS[0];

const service = await startService();
const fixture = await createFixture(service.db);
const { clientId } = await service.client('profile-infos:read');
const forge = await openForge(service);
const foreign = await generateForeignKey();

/** A valid token with these claims and header members changed. */
function forged(claims: Json = {}, header: Json = {}, sign: Sign = forge.sign): Promise<string> {
  return compact(
    JSON.stringify({ ...forge.header(), ...header }),
    JSON.stringify({ ...forge.claims(clientId), ...claims }),
    sign,
  );
}

async function statusOf(token: string): Promise<number> {
  return (await service.get(path(fixture), token)).status;
}

const now = () => Math.floor(service.clock.now() / 1000);

test('an unchanged forged token is accepted', async () => {
  expect(await statusOf(await forged())).toBe(200);
});

test('cached tokens of one client share their rights', async () => {
  const sets = () => {
    Bun.gc(true);
    return heapStats().objectTypeCounts.Set ?? 0;
  };
  await statusOf(await forged({ jti: 'first' }));
  const before = sets();
  for (let jti = 0; jti < 500; jti += 1) {
    expect(await statusOf(await forged({ jti: `many-${jti}`, realms: ['*'] }))).toBe(200);
  }
  expect(sets() - before).toBeLessThan(100);
});

const RIGHT: [string, () => Promise<string>][] = [
  ['expired within the leeway', () => forged({ exp: now() - 5 })],
  ['not yet valid within the leeway', () => forged({ nbf: now() + 20, iat: now() + 20 })],
  ['without nbf', () => forged({ nbf: undefined })],
  ['without realms: the client table decides', () => forged({ realms: undefined })],
  ['realms with its realm in upper case', () => forged({ realms: [fixture.realm.toUpperCase()] })],
  ['two audiences, one of them ours', () => forged({ aud: ['https://other.example', service.url] })],
  ['an unknown claim', () => forged({ nonsense: { deep: [1] } })],
  [
    'a duplicate claim with a valid last value (RFC 7519, 4)',
    () => withPayload(`{"exp":1,"client_id":"x",${claimsText().slice(1)}`),
  ],
  ['just under 8 KiB', () => forged({ padding: 'x'.repeat(5_500) })],
];
test('a token of the maximum length is 200, a longer one 401', async () => {
  const lengths = new Map<number, string>();
  for (const header of [{}, { more: 'x' }, { more: 'xx' }])
    for (let padding = 5_600; padding < 5_800; padding += 1) {
      const token = await forged({ padding: 'x'.repeat(padding) }, header);
      lengths.set(token.length, token);
    }
  const [longest, tooLong] = [LIMITS.tokenBytesMax, LIMITS.tokenBytesMax + 1].map((each) =>
    lengths.get(each),
  );
  expect(await statusOf(longest as string)).toBe(200);
  expect(await statusOf(tooLong as string)).toBe(401);
});

test.each(RIGHT)('a valid token is 200: %s', async (_name, make) => {
  expect(await statusOf(await make())).toBe(200);
});

function claimsText(): string {
  return JSON.stringify(forge.claims(clientId));
}

function withPayload(payload: string, header = JSON.stringify(forge.header())): Promise<string> {
  return compact(header, payload, forge.sign);
}

const hs256 = (secret: string | Buffer): Sign => {
  return async (input) => createHmac('sha256', secret).update(input).digest();
};
const rawPublic = () => Buffer.from(String(forge.publicJwk.x), 'base64url');

const WRONG: Record<string, [string, () => string | Promise<string>][]> = {
  form: [
    ['text', () => 'token'],
    ['one segment', () => encode('{}')],
    ['two segments', async () => (await forged()).split('.').slice(0, 2).join('.')],
    ['four segments', async () => `${await forged()}.AAAA`],
    ['five segments, like a JWE', async () => `${await forged()}.AAAA.AAAA`],
    ['an empty signature', async () => `${(await forged()).split('.').slice(0, 2).join('.')}.`],
    ['an empty header', async () => `.${(await forged()).split('.').slice(1).join('.')}`],
    ['a space within', async () => (await forged()).replace('.', '. ')],
    ['padding', async () => `${await forged()}=`],
    ['two tokens', async () => `${await forged()} ${await forged()}`],
    ['quotes', async () => `"${await forged()}"`],
    ['segments that are not JSON', () => compact('header', 'payload', forge.sign)],
    ['a payload that is an array', () => withPayload('[]')],
    ['a payload that is null', () => withPayload('null')],
    ['a payload that is a string', () => withPayload('"x"')],
    ['a header that is null', () => withPayload(claimsText(), 'null')],
    ['a header that is an array', () => withPayload(claimsText(), '[]')],
    ['over 8 KiB', () => forged({ padding: 'x'.repeat(6_000) })],
  ],
  algorithm: [
    ['none, unsigned', async () => (await forged({}, { alg: 'none' })).replace(/[^.]*$/, '')],
    ['none, signed', () => forged({}, { alg: 'none' })],
    ['None', () => forged({}, { alg: 'None' })],
    ['HS256 with the raw public key', () => forged({}, { alg: 'HS256' }, hs256(rawPublic()))],
    [
      'HS256 with the public key as JWK',
      () => forged({}, { alg: 'HS256' }, hs256(JSON.stringify(forge.publicJwk))),
    ],
    ['HS256 with an empty key', () => forged({}, { alg: 'HS256' }, hs256(''))],
    ['EdDSA, the old name', () => forged({}, { alg: 'EdDSA' })],
    ['missing', () => forged({}, { alg: undefined })],
    ['a list', () => forged({}, { alg: ['Ed25519'] })],
    ['duplicate, none last', () => withPayload(claimsText(), doubleHeader('alg', 'none'))],
  ],
  header: [
    ['typ JWT', () => forged({}, { typ: 'JWT' })],
    ['typ of an ID token', () => forged({}, { typ: 'id+jwt' })],
    ['typ missing', () => forged({}, { typ: undefined })],
    ['typ duplicate, JWT last', () => withPayload(claimsText(), doubleHeader('typ', 'JWT'))],
    ['crit with an unknown member', () => forged({}, { crit: ['exp'] })],
    ['crit with a known member', () => forged({}, { crit: ['b64'], b64: true })],
    ['crit empty', () => forged({}, { crit: [] })],
    ['jwk of the real key', () => forged({}, { jwk: forge.publicJwk })],
    ['jwk of the foreign key that signed', () => forged({}, { jwk: foreign.publicJwk }, foreign.sign)],
    ['jku', () => forged({}, { jku: 'http://127.0.0.1:9/keys' })],
    ['x5u', () => forged({}, { x5u: 'http://127.0.0.1:9/chain' })],
    ['x5c', () => forged({}, { x5c: [] })],
    ['kid missing', () => forged({}, { kid: undefined })],
    ['kid unknown', () => forged({}, { kid: '01900000-0000-7000-8000-000000000000' })],
    ['kid of a path', () => forged({}, { kid: '../../../../dev/null' })],
    ['kid of SQL', () => forged({}, { kid: "x' or '1'='1" })],
    ['kid __proto__', () => forged({}, { kid: '__proto__' })],
    ['kid a list', () => forged({}, { kid: [forge.kid] })],
    ['kid in upper case', () => forged({}, { kid: forge.kid.toUpperCase() })],
  ],
  signature: [
    ['of a foreign key', () => forged({}, {}, foreign.sign)],
    [
      'of other claims',
      async () => `${(await forged({ jti: 'x' })).replace(/[^.]*$/, '')}${tail(await forged())}`,
    ],
    ['of zeros', () => forged({}, {}, async () => new Uint8Array(64))],
    ['too short', () => forged({}, {}, async (input) => (await forge.sign(input)).slice(1))],
    [
      'too long',
      () => forged({}, {}, async (input) => Buffer.concat([await forge.sign(input), Buffer.of(0)])),
    ],
    ['in another base64url spelling', async () => respell(await forged())],
  ],
  claims: [
    ['aud of another service', () => forged({ aud: 'https://other.example' })],
    ['aud with a slash', () => forged({ aud: `${service.url}/` })],
    ['aud missing', () => forged({ aud: undefined })],
    ['iss of another service', () => forged({ iss: 'https://other.example' })],
    ['iss missing', () => forged({ iss: undefined })],
    ['iss a list', () => forged({ iss: [service.url] })],
    [
      'iss duplicate, another issuer last',
      () => withPayload(`${claimsText().slice(0, -1)},"iss":"https://other.example"}`),
    ],
    ['expired', () => forged({ exp: now() - 31 })],
    ['exp missing', () => forged({ exp: undefined })],
    ['exp a text', () => forged({ exp: '9999999999' })],
    ['exp an object', () => forged({ exp: { valueOf: 1, toString: 1 } })],
    ['exp null', () => forged({ exp: null })],
    ['exp duplicate, expired last', () => withPayload(`${claimsText().slice(0, -1)},"exp":1}`)],
    ['not yet valid', () => forged({ nbf: now() + 60 })],
    ['nbf a text', () => forged({ nbf: '0' })],
    ['iat missing', () => forged({ iat: undefined })],
    ['jti missing', () => forged({ jti: undefined })],
    ['sub missing', () => forged({ sub: undefined })],
    ['sub of another client', () => forged({ sub: 'someone' })],
    ['client_id missing', () => forged({ client_id: undefined })],
    ['client_id a number', () => forged({ client_id: 1, sub: 1 })],
    ['an unknown client', () => forged({ client_id: 'nobody', sub: 'nobody' })],
    ['the client __proto__', () => forged({ client_id: '__proto__', sub: '__proto__' })],
    ['scope missing', () => forged({ scope: undefined })],
    ['scope a list', () => forged({ scope: ['oidc-profile-infos:read'] })],
    ['realms a text', () => forged({ realms: '*' })],
    ['realms null', () => forged({ realms: null })],
    ['realms of all and one', () => forged({ realms: ['*', fixture.realm] })],
    ['realms in a nested list', () => forged({ realms: [[fixture.realm]] })],
    ['realms with an invalid ID', () => forged({ realms: [fixture.realm, '*'] })],
  ],
};

function doubleHeader(name: string, last: string): string {
  return `${JSON.stringify(forge.header()).slice(0, -1)},"${name}":"${last}"}`;
}

function tail(token: string): string {
  return token.slice(token.lastIndexOf('.') + 1);
}

describe.each(Object.entries(WRONG))('invalid %s', (kind, rows) => {
  test.each(rows)(`a token with invalid ${kind} is 401: %s`, async (_name, make) => {
    const answer = await service.get(path(fixture), await make());
    expect(answer.status).toBe(401);
    expect(answer.headers.get('www-authenticate')).toBe('Bearer realm="authrealm", error="invalid_token"');
    expect(answer.headers.get('cache-control')).toBe('no-store');
  });
});

describe('the Authorization header', () => {
  const NO_TOKEN: [string, string][] = [
    ['empty', ''],
    ['a scheme alone', 'Bearer'],
    ['another scheme', 'Basic dXNlcjpwYXNz'],
    ['a scheme that begins with Bearer', 'BearerX abc'],
  ];
  test.each(NO_TOKEN)(
    'the challenge for an Authorization header without a token names no error: %s',
    async (_name, header) => {
      const answer = await service.get(path(fixture), undefined, { Authorization: header });
      expect([answer.status, answer.headers.get('www-authenticate')]).toEqual([
        401,
        'Bearer realm="authrealm"',
      ]);
    },
  );

  test.each(['bearer', 'BEARER', 'Bearer '])('the Bearer scheme is case-insensitive: %s', async (scheme) => {
    const headers = { Authorization: `${scheme} ${await forged()}` };
    expect((await service.get(path(fixture), undefined, headers)).status).toBe(200);
  });

  test('two Authorization headers are 401', async () => {
    const headers = new Headers({ Authorization: `Bearer ${await forged()}` });
    headers.append('Authorization', `Bearer ${await forged()}`);
    expect((await fetch(service.url + path(fixture), { headers })).status).toBe(401);
  });

  test('a header of 64 KiB is 431, a token of 9 KiB 401', async () => {
    expect((await fetch(service.url + path(fixture), { headers: bearer('x'.repeat(65_536)) })).status).toBe(
      431,
    );
    expect((await service.get(path(fixture), 'x'.repeat(9 * 1024))).status).toBe(401);
    expect((await service.get(path(fixture), 'x'.repeat(LIMITS.tokenBytesMax))).status).toBe(401);
  });

  test('a valid token in query, body or cookie is ignored', async () => {
    const token = await forged();
    for (const address of [
      `${path(fixture)}?access_token=${token}`,
      `${path(fixture)}/?access_token=${token}`,
    ]) {
      const answer = await service.get(address, undefined, { Cookie: `access_token=${token}` });
      expect([answer.status, answer.headers.get('www-authenticate')]).toEqual([
        401,
        'Bearer realm="authrealm"',
      ]);
    }
    const body = new URLSearchParams({ access_token: token });
    const answer = await fetch(`${service.url}/oauth/token`, { method: 'POST', body });
    expect(answer.status).toBe(400);
  });
});

function bearer(token: string) {
  return { Authorization: `Bearer ${token}` };
}
