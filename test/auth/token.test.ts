import { heapStats } from 'bun:jsc';
import { afterAll, beforeAll, describe, expect, test } from 'bun:test';
import { createHmac } from 'node:crypto';
import { LIMITS } from '../../src/domain/limits.ts';
import { createFixture, type Fixture, LOOKUPS, type Service, startService } from '../support/service.ts';
import {
  compact,
  encode,
  generateForeignKey,
  type Json,
  openForge,
  type Sign,
  type TokenForge,
} from '../support/token_forge.ts';

const { path } = LOOKUPS[0];

let service: Service;
let planted: Fixture;
let forge: TokenForge;
let clientId: string;
let stranger: { sign: Sign; publicJwk: Json };

beforeAll(async () => {
  service = await startService();
  planted = await createFixture(service.db);
  ({ clientId } = await service.client('profile-infos:read'));
  forge = await openForge(service);
  stranger = await generateForeignKey();
});
afterAll(() => service.stop());

/** A token of our own making that differs from a right one in what is named, and nothing else. */
function forged(claims: Json = {}, header: Json = {}, sign: Sign = forge.sign): Promise<string> {
  return compact(
    JSON.stringify({ ...forge.header(), ...header }),
    JSON.stringify({ ...forge.claims(clientId), ...claims }),
    sign,
  );
}

async function statusOf(token: string): Promise<number> {
  return (await service.get(path(planted), token)).status;
}

const now = () => Math.floor(service.clock.now() / 1000);

test('the forge makes tokens that open, so that every refusal below has its one reason', async () => {
  expect(await statusOf(await forged())).toBe(200);
});

test('of tokens that are known, those of one client have their rights in common', async () => {
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
  ['its realm in the list, in upper case', () => forged({ realms: [planted.realm.toUpperCase()] })],
  ['two audiences, one of them us', () => forged({ aud: ['https://other.example', service.url] })],
  ['a claim nobody knows', () => forged({ nonsense: { deep: [1] } })],
  [
    'a duplicate claim whose last is right (RFC 7519, 4)',
    () => doubled(`{"exp":1,"client_id":"x",${claimsText().slice(1)}`),
  ],
  ['just under 8 KiB', () => forged({ padding: 'x'.repeat(5_500) })],
];
test('200 for exactly as many characters as the limit, 401 for the next token that is longer', async () => {
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

test.each(RIGHT)('200 %s', async (_name, make) => {
  expect(await statusOf(await make())).toBe(200);
});

function claimsText(): string {
  return JSON.stringify(forge.claims(clientId));
}

function doubled(payload: string, header = JSON.stringify(forge.header())): Promise<string> {
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
    ['five segments, as an encrypted one has', async () => `${await forged()}.AAAA.AAAA`],
    ['an empty signature', async () => `${(await forged()).split('.').slice(0, 2).join('.')}.`],
    ['an empty header', async () => `.${(await forged()).split('.').slice(1).join('.')}`],
    ['a space within', async () => (await forged()).replace('.', '. ')],
    ['padding', async () => `${await forged()}=`],
    ['two tokens', async () => `${await forged()} ${await forged()}`],
    ['quotes', async () => `"${await forged()}"`],
    ['no JSON', () => compact('header', 'payload', forge.sign)],
    ['a payload that is an array', () => doubled('[]')],
    ['a payload that is null', () => doubled('null')],
    ['a payload that is a text', () => doubled('"x"')],
    ['a header that is null', () => doubled(claimsText(), 'null')],
    ['a header that is an array', () => doubled(claimsText(), '[]')],
    ['over 8 KiB, everything else right', () => forged({ padding: 'x'.repeat(6_000) })],
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
    ['doubled, none last', () => doubled(claimsText(), doubleHeader('alg', 'none'))],
  ],
  header: [
    ['typ JWT', () => forged({}, { typ: 'JWT' })],
    ['typ of an ID token', () => forged({}, { typ: 'id+jwt' })],
    ['typ missing', () => forged({}, { typ: undefined })],
    ['typ doubled, JWT last', () => doubled(claimsText(), doubleHeader('typ', 'JWT'))],
    ['crit that is unknown', () => forged({}, { crit: ['exp'] })],
    ['crit that is known', () => forged({}, { crit: ['b64'], b64: true })],
    ['crit that is empty', () => forged({}, { crit: [] })],
    ['jwk of ours', () => forged({}, { jwk: forge.publicJwk })],
    ['jwk of a stranger who signed', () => forged({}, { jwk: stranger.publicJwk }, stranger.sign)],
    ['jku', () => forged({}, { jku: 'http://127.0.0.1:9/keys' })],
    ['x5u', () => forged({}, { x5u: 'http://127.0.0.1:9/chain' })],
    ['x5c', () => forged({}, { x5c: [] })],
    ['kid missing', () => forged({}, { kid: undefined })],
    ['kid unknown', () => forged({}, { kid: '01900000-0000-7000-8000-000000000000' })],
    ['kid of a path', () => forged({}, { kid: '../../../../dev/null' })],
    ['kid of SQL', () => forged({}, { kid: "x' or '1'='1" })],
    ['kid of every object', () => forged({}, { kid: '__proto__' })],
    ['kid a list', () => forged({}, { kid: [forge.kid] })],
    ['kid in upper case', () => forged({}, { kid: forge.kid.toUpperCase() })],
  ],
  signature: [
    ['of a stranger', () => forged({}, {}, stranger.sign)],
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
    ['in a second spelling of the same bits', async () => respelled(await forged())],
  ],
  claims: [
    ['aud of another service', () => forged({ aud: 'https://other.example' })],
    ['aud with a slash', () => forged({ aud: `${service.url}/` })],
    ['aud missing', () => forged({ aud: undefined })],
    ['iss of another service', () => forged({ iss: 'https://other.example' })],
    ['iss missing', () => forged({ iss: undefined })],
    ['iss a list', () => forged({ iss: [service.url] })],
    [
      'iss doubled, a stranger last',
      () => doubled(`${claimsText().slice(0, -1)},"iss":"https://other.example"}`),
    ],
    ['expired', () => forged({ exp: now() - 31 })],
    ['exp missing', () => forged({ exp: undefined })],
    ['exp a text', () => forged({ exp: '9999999999' })],
    ['exp null', () => forged({ exp: null })],
    ['exp doubled, expired last', () => doubled(`${claimsText().slice(0, -1)},"exp":1}`)],
    ['not yet valid', () => forged({ nbf: now() + 60 })],
    ['nbf a text', () => forged({ nbf: '0' })],
    ['iat missing', () => forged({ iat: undefined })],
    ['jti missing', () => forged({ jti: undefined })],
    ['sub missing', () => forged({ sub: undefined })],
    ['sub of another client', () => forged({ sub: 'someone' })],
    ['client_id missing', () => forged({ client_id: undefined })],
    ['client_id a number', () => forged({ client_id: 1, sub: 1 })],
    ['an unknown client', () => forged({ client_id: 'nobody', sub: 'nobody' })],
    ['a client of every object', () => forged({ client_id: '__proto__', sub: '__proto__' })],
    ['scope missing', () => forged({ scope: undefined })],
    ['scope a list', () => forged({ scope: ['oidc-profile-infos:read'] })],
    ['realms a text', () => forged({ realms: '*' })],
    ['realms null', () => forged({ realms: null })],
    ['realms of all and one', () => forged({ realms: ['*', planted.realm] })],
    ['realms in a list of their own', () => forged({ realms: [[planted.realm]] })],
    ['realms with a stranger to IDs', () => forged({ realms: [planted.realm, '*'] })],
  ],
};

function doubleHeader(name: string, last: string): string {
  return `${JSON.stringify(forge.header()).slice(0, -1)},"${name}":"${last}"}`;
}

function tail(token: string): string {
  return token.slice(token.lastIndexOf('.') + 1);
}

/** The last character of 86 says four bits that no decoder keeps. */
function respelled(token: string): string {
  const letters = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_';
  const other = token.slice(0, -1) + letters[letters.indexOf(token.at(-1) as string) + 1];
  expect(Buffer.from(tail(other), 'base64url')).toEqual(Buffer.from(tail(token), 'base64url'));
  return other;
}

describe.each(Object.entries(WRONG))('401 wrong %s:', (_kind, rows) => {
  test.each(rows)('%s', async (_name, make) => {
    const answer = await service.get(path(planted), await make());
    expect(answer.status).toBe(401);
    expect(answer.headers.get('www-authenticate')).toBe('Bearer realm="authrealm", error="invalid_token"');
    expect(answer.headers.get('cache-control')).toBe('no-store');
  });
});

describe('the Authorization header', () => {
  const TOKENLESS: [string, string][] = [
    ['empty', ''],
    ['a scheme alone', 'Bearer'],
    ['another scheme', 'Basic dXNlcjpwYXNz'],
    ['a scheme that begins like it', 'BearerX abc'],
  ];
  test.each(TOKENLESS)('without a token (%s), the challenge names no error', async (_name, header) => {
    const answer = await service.get(path(planted), undefined, { Authorization: header });
    expect([answer.status, answer.headers.get('www-authenticate')]).toEqual([
      401,
      'Bearer realm="authrealm"',
    ]);
  });

  test.each(['bearer', 'BEARER', 'Bearer '])('the scheme is read in any case: %s', async (scheme) => {
    const headers = { Authorization: `${scheme} ${await forged()}` };
    expect((await service.get(path(planted), undefined, headers)).status).toBe(200);
  });

  test('two Authorization headers are 401', async () => {
    const headers = new Headers({ Authorization: `Bearer ${await forged()}` });
    headers.append('Authorization', `Bearer ${await forged()}`);
    expect((await fetch(service.url + path(planted), { headers })).status).toBe(401);
  });

  test('64 KiB are refused by the runtime, 9 KiB by us', async () => {
    expect((await fetch(service.url + path(planted), { headers: bearer('x'.repeat(65_536)) })).status).toBe(
      431,
    );
    expect((await service.get(path(planted), 'x'.repeat(9 * 1024))).status).toBe(401);
    expect((await service.get(path(planted), 'x'.repeat(LIMITS.tokenBytesMax))).status).toBe(401);
  });

  test('a right token in query, body or cookie is no token', async () => {
    const token = await forged();
    for (const address of [
      `${path(planted)}?access_token=${token}`,
      `${path(planted)}/?access_token=${token}`,
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
