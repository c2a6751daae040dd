import fc from 'fast-check';
import { LIMITS } from '../../../src/domain/limits.ts';
import { createFixture, LOOKUPS, type Service } from '../../support/service.ts';
import { compact, encode, openForge } from '../../support/token_forge.ts';
import type { Property } from './parsers.ts';

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

const odd = fc.oneof(
  fc.jsonValue(),
  fc.string({ unit: 'binary' }),
  fc.constantFrom('__proto__', '*', '../../etc/passwd', "' or 1=1 --", -1, 1e308, 9_007_199_254_740_991),
  fc.nat(3_000).map((length) => 'x'.repeat(length)),
);
const changes = (names: readonly string[]) =>
  fc.dictionary(fc.oneof({ weight: 9, arbitrary: fc.constantFrom(...names) }, fc.string()), odd, {
    maxKeys: 3,
  });

/** Members that stand twice, and text that is no object at all. */
const spoiled = fc.constantFrom<(text: string) => string>(
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

/** What the other header fields of these requests may come to, in bytes. */
const REST_BYTES_MAX = 1_024;

/** A token that does not fit into the header fields of a request is not looked at. */
function expectedOf(token: string, allowed: readonly number[]): readonly number[] {
  if (token.length > LIMITS.headerBytesMax) return [431];
  return token.length > LIMITS.headerBytesMax - REST_BYTES_MAX ? [431, ...allowed] : allowed;
}

/** Whoever holds our own key may sign what nobody should: it is answered as a token or as none, and never as a bug. */
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
  if ((await status(right)) !== 200) throw new Error('what is forged well is no token');
  const all = fc.tuple(changes(MEMBERS), changes(CLAIMS), spoiled, spoiled, fc.boolean());
  return {
    name: 'a token says anything, signed with our own key or not',
    check: (numRuns, seed) =>
      fc.assert(
        fc.asyncProperty(all, async ([head, body, spoilHead, spoilBody, isOurs]) => {
          const texts = [
            spoilHead(JSON.stringify({ ...header(), ...head })),
            spoilBody(JSON.stringify({ ...claims(clientId), ...body })),
          ] as const;
          const token = isOurs
            ? await compact(...texts, sign)
            : `${texts.map(encode).join('.')}.${right.split('.')[2]}`;
          const answered = await status(token);
          const allowed = isOurs ? [200, 401, 403, 404] : [401];
          if (!expectedOf(token, allowed).includes(answered)) throw new Error(`answered ${answered}`);
        }),
        { numRuns, seed },
      ),
  };
}
