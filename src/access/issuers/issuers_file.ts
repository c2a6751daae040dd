import { z } from 'zod';
import { Refusal } from '../../model/fault.ts';
import { parseUuid } from '../../model/id.ts';
import { LIMITS } from '../../model/limits.ts';
import { areGrantable, parseScopes, type Scopes } from '../../model/principal.ts';
import { httpUrl, isSafeUrl, issuerUrl, parsedBy, text } from '../../model/text/text.ts';
import { ANY_VALUE } from '../tokens/claim_rights.ts';
import { parseJsonWithUniqueKeys } from '../tokens/unique_key_json.ts';

/** An OpenID provider whose access tokens are accepted. */
export type ExternalIssuer = Readonly<z.output<typeof issuer>>;

/** The OAuth client of an issuer with which the console signs people in. */
export type ConsoleClient = Readonly<NonNullable<ExternalIssuer['console']>>;

/** Asymmetric algorithms, with which only the issuer can sign (RFC 7518, 3.1; RFC 8037; RFC 9864). */
export const ASYMMETRIC = [
  ...['RS256', 'RS384', 'RS512', 'PS256', 'PS384', 'PS512'],
  ...['ES256', 'ES384', 'ES512', 'EdDSA', 'Ed25519'],
] as const;

const CLAIM_STEPS_MAX = 4;
const CLAIM = { error: `must be the name of a claim, or a list of 1 to ${CLAIM_STEPS_MAX} names` };

const someScopes = (raw: string): Scopes | undefined => {
  const parsed = parseScopes(raw);
  return parsed?.size ? parsed : undefined;
};

function addIssue(context: z.RefinementCtx, path: (string | number)[], message: string): void {
  context.addIssue({ code: 'custom', path, message });
}

const right = z
  .strictObject({
    claim: z.union(
      [
        text(255).transform((name) => [name]),
        z.array(text(255)).min(1, CLAIM.error).max(CLAIM_STEPS_MAX, CLAIM.error),
      ],
      CLAIM,
    ),
    value: text(255),
    scopes: parsedBy(someScopes, 'must be existing scopes, separated by spaces'),
    realms: z.union(
      [
        z.literal('*'),
        z.array(parsedBy(parseUuid, 'must be the ID of a realm')).transform((ids) => new Set(ids)),
      ],
      { error: 'must be "*" or a list of the IDs of realms' },
    ),
  })
  .superRefine(({ value, scopes: given, realms }, context) => {
    if (given.has('admin') && value === ANY_VALUE)
      addIssue(context, ['value'], 'must name a value where scopes contain admin: "*" matches everybody');
    if (!areGrantable(given, realms)) addIssue(context, ['realms'], 'must be "*" where scopes contain admin');
  });

const SAFE = { error: 'must be https; http is for providers on this machine' };

const consoleClient = z
  .strictObject({
    client_id: text(1024),
    client_secret: text(4096).optional(),
    client_secret_file: text(4096).optional(),
    /** The requested scope (OpenID Connect Core 1.0, 5.4). */
    scope: z
      .string()
      .regex(/^[\x21\x23-\x5b\x5d-\x7e ]{1,1024}$/, 'must be words separated by spaces')
      .refine((value) => value.split(' ').includes('openid'), 'must contain openid')
      .default('openid profile email'),
    /** The claims that name a person; the first one present is used. */
    person: z
      .array(text(255))
      .min(1, 'must name at least one claim')
      .max(8, 'must name at most 8 claims')
      .default(['email', 'preferred_username', 'name']),
  })
  .refine(
    ({ client_secret: given, client_secret_file: file }) => (given === undefined) !== (file === undefined),
    'must have one of client_secret and client_secret_file',
  );

const issuer = z
  .strictObject({
    /** In logs and in the actors of audit entries. */
    name: z
      .string()
      .regex(/^[a-z0-9-]{1,32}$/, 'must be 1 to 32 of a-z, 0-9 and -')
      .refine((name) => name !== 'console', 'must not be console: sessions of console links use that name'),
    issuer: issuerUrl().refine(isSafeUrl, SAFE),
    audience: text(1024),
    /** Default: read from its discovery document. */
    jwks_uri: httpUrl(1024).refine(isSafeUrl, SAFE).optional(),
    typ: z
      .string()
      .regex(/^[\w.+/-]{1,64}$/, 'must be a media type without application/')
      .default('at+jwt'),
    algorithms: z
      .array(z.enum(ASYMMETRIC, { error: `must be one of ${ASYMMETRIC.join(', ')}` }))
      .min(1, 'must name at least one')
      .default(['RS256']),
    rights: z.array(right).max(LIMITS.issuerRightsMax, `must have at most ${LIMITS.issuerRightsMax} entries`),
    /** Default: people cannot sign in to the console with it. */
    console: consoleClient.optional(),
  })
  .superRefine(({ console, audience, typ, rights }, context) => {
    if (!console) return;
    if (audience === console.client_id && normalizeTyp(typ) === 'jwt')
      addIssue(
        context,
        ['audience'],
        'must not be the client_id of its console: its ID tokens would be accepted as access tokens',
      );
    const named = new Set(rights.flatMap(({ realms }) => (realms === '*' ? [] : [...realms])));
    if (named.size > LIMITS.tokenRealmsMax)
      addIssue(context, ['rights'], `must name at most ${LIMITS.tokenRealmsMax} realms where console is set`);
  })
  .transform(({ jwks_uri: jwksUri, typ, console, ...rest }) => ({
    ...rest,
    jwksUri,
    type: normalizeTyp(typ),
    console: console && {
      clientId: console.client_id,
      /** Empty until its file was read. */
      clientSecret: console.client_secret ?? '',
      clientSecretFile: console.client_secret_file,
      scope: console.scope,
      person: console.person,
    },
  }));

const issuersFile = z.strictObject({
  issuers: z
    .array(issuer)
    .max(LIMITS.issuersMax, `must have at most ${LIMITS.issuersMax} entries`)
    .superRefine((issuers, context) => {
      for (const member of ['name', 'issuer'] as const) {
        const values = issuers.map((each) => each[member]);
        for (const [at, value] of values.entries()) {
          if (values.indexOf(value) < at)
            addIssue(context, [at, member], 'is already used by another issuer');
        }
      }
    }),
});

/** Parses the issuers file. `path` names it in messages. Throws one Refusal that lists every mistake. */
export function parseIssuers(path: string, content: string): readonly ExternalIssuer[] {
  const json = parseJsonWithUniqueKeys(content);
  if (!json)
    throw new Refusal(
      `${path} is not a JSON object, or has a duplicate key: write {"issuers": [ISSUER, …]}, with each key once`,
      { isUsage: true },
    );
  const parsed = issuersFile.safeParse(json);
  if (!parsed.success) {
    const problems = parsed.error.issues.map(
      ({ path: at, message }) => `${path}: ${at.join('.')} ${message}`,
    );
    throw new Refusal(problems.join('\n'), { isUsage: true });
  }
  return parsed.data.issuers;
}

/** The canonical form of a `typ` (RFC 7515, 4.1.9). */
export function normalizeTyp(typ: string): string {
  return typ.toLowerCase().replace(/^application\//, '');
}
