import { z } from 'zod';
import { Refusal } from '../../model/fault.ts';
import { parseUuid } from '../../model/id.ts';
import { parseNetwork } from '../../model/ip_address.ts';
import { LIMITS } from '../../model/limits.ts';
import { END_USER_ADDRESSES, parseScopes } from '../../model/principal.ts';
import { parsedBy } from '../../model/text/text.ts';
import { parseRate } from '../../model/token_buckets.ts';
import { brokenRightsRule, CLIENT_ID_PATTERN, CLIENT_NAME, type ClientSpec } from './clients.ts';

const scopes = parsedBy(parseScopes, 'names a scope that does not exist');
const realms = z.union(
  [z.literal('*'), z.array(parsedBy(parseUuid, 'is no realm ID')).transform((ids) => new Set(ids))],
  'must be * or a list of realm IDs',
);

const bootstrapClient = z.strictObject({
  client_id: z.string().regex(CLIENT_ID_PATTERN, 'must be 1 to 64 letters, digits or . _ ~ -'),
  client_secret: z.string().min(32, 'must have at least 32 characters').max(255),
  name: CLIENT_NAME,
  scope: scopes,
  realms: realms.default('*'),
  implicit_scope: scopes.optional(),
  implicit_realms: realms.optional(),
  rate_per_address: parsedBy(parseRate, 'must be a rate such as 60/60').optional(),
  storefronts: z
    .array(parsedBy(parseNetwork, 'is no network, or that of all addresses'))
    .max(LIMITS.storefrontsMax, `has more than ${LIMITS.storefrontsMax} networks`)
    .optional(),
  end_user_address: z.enum(END_USER_ADDRESSES).optional(),
});

/** Parses a bootstrap client file. `path` names it in messages. Throws Refusal that lists every mistake. */
export function parseBootstrapClient(path: string, text: string): ClientSpec {
  const spec = parseMembers(path, text);
  const { client_id: clientId, client_secret: secret, name } = spec;
  const rights = {
    scopes: spec.scope,
    realms: spec.realms,
    endUserAddress: spec.end_user_address,
    implicitScopes: spec.implicit_scope,
    implicitRealms: spec.implicit_realms,
    ratePerAddress: spec.rate_per_address,
    storefronts: spec.storefronts,
  };
  const broken = brokenRightsRule(rights);
  if (broken) throw new Refusal(`${path}: ${broken.rule}`);
  return { clientId, secret, name, ...rights };
}

function parseMembers(path: string, text: string): z.output<typeof bootstrapClient> {
  let json: unknown;
  try {
    json = JSON.parse(text);
  } catch {
    throw new Refusal(
      `${path} is not JSON: --bootstrap-client-file needs an object with client_id, client_secret, name, scope and realms`,
    );
  }
  const parsed = bootstrapClient.safeParse(json);
  if (parsed.success) return parsed.data;
  const problems = parsed.error.issues.map(({ path: at, message }) => `${path}: ${at.join('.')} ${message}`);
  throw new Refusal(problems.join('\n'));
}
