import fc from 'fast-check';
import { LIMITS } from '../../../src/model/limits.ts';
import { createFixture, LOOKUPS, type Service } from '../../support/service.ts';
import { compact, encode, openForge } from '../../support/token_forge.ts';
import type { Property } from './parser_properties.ts';

const MEMBERS = ['alg', 'typ', 'kid', 'crit', 'jwk', 'jku', 'x5c', 'b64', 'cty', 'enc', 'zip'];
const CLAIMS = [
  'iss',
  'aud',
  'sub',
  'client_id',
  'jti',
  'iat',
  'nbf',
  'exp',
  'scope',
  'realms',
  'cnf',
  'act',
];

const unexpectedValue = fc.oneof(
  fc.jsonValue(),
  fc.string({ unit: 'binary' }),
  fc.constantFrom('__proto__', '*', '../../etc/passwd', "' or 1=1 --", -1, 1e308, 9_007_199_254_740_991),
  fc.nat(3_000).map((length) => 'x'.repeat(length)),
);
const changes = (names: readonly string[]) =>
  fc.dictionary(fc.oneof({ weight: 9, arbitrary: fc.constantFrom(...names) }, fc.string()), unexpectedValue, {
    maxKeys: 3,
  });

/** Repeats members, or makes the text invalid JSON or another type. */
const corruption = fc.constantFrom<(text: string) => string>(
  (text) => text,
  (text) => text,
  (text) => text.replace('{', '{"scope":"admin","alg":"none",'),
  (text) => text.replace(/}$/, ',"realms":["*"],"kid":"x"}'),
  (text) => `\ufeff${text}`,
  (text) => `${text} `,
  (text) => text.slice(0, -1),
  (text) => `[${text}]`,
  (text) => text.replace('{', `{"a":${'['.repeat(500)}${']'.repeat(500)},`),
);

/** Upper bound of the other header fields of these requests. */
const OTHER_HEADERS_BYTES_MAX = 1_024;

/** A token that exceeds the header size limit is rejected before it is verified. */
function expectedOf(token: string, allowed: readonly number[]): readonly number[] {
  if (token.length > LIMITS.headerBytesMax) return [431];
  return token.length > LIMITS.headerBytesMax - OTHER_HEADERS_BYTES_MAX ? [431, ...allowed] : allowed;
}

/** Tokens with any header and claims, signed with the service's own key or not, are accepted or rejected, never a 500. */
export async function tokenProperty(service: Service): Promise<Property> {
  const { sign, header, claims } = await openForge(service);
  const { clientId } = await service.client('oidc-profile-infos:read');
  const address = service.url + LOOKUPS[0].path(await createFixture(service.db));
  const status = async (token: string) => {
    const answer = await fetch(address, { headers: { Authorization: `Bearer ${token}` } });
    await answer.text();
    return answer.status;
  };
  const right = await compact(JSON.stringify(header()), JSON.stringify(claims(clientId)), sign);
  if ((await status(right)) !== 200) throw new Error('a correctly forged token was rejected');
  const all = fc.tuple(changes(MEMBERS), changes(CLAIMS), corruption, corruption, fc.boolean());
  return {
    name: 'a token with any header and claims is accepted or rejected',
    check: (numRuns, seed) =>
      fc.assert(
        fc.asyncProperty(all, async ([head, body, corruptHead, corruptBody, isOurs]) => {
          const texts = [
            corruptHead(JSON.stringify({ ...header(), ...head })),
            corruptBody(JSON.stringify({ ...claims(clientId), ...body })),
          ] as const;
          const token = isOurs
            ? await compact(...texts, sign)
            : `${texts.map(encode).join('.')}.${right.split('.')[2]}`;
          const answered = await status(token);
          const allowed = isOurs ? [200, 401, 403, 404] : [401];
          if (!expectedOf(token, allowed).includes(answered)) throw new Error(`returned ${answered}`);
        }),
        { numRuns, seed },
      ),
  };
}
