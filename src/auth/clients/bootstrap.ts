import { z } from 'zod';
import { Refusal } from '../../domain/fault.ts';
import { parseUuid, type Uuid } from '../../domain/id.ts';
import { END_USER_ADDRESSES, parseScopes, type Realms } from '../../domain/principal.ts';
import { brokenRightsRule, CLIENT_ID_PATTERN, CLIENT_NAME, type ClientSpec } from './clients.ts';

const bootstrapClient = z.strictObject({
  client_id: z.string().regex(CLIENT_ID_PATTERN, 'must be 1 to 64 letters, digits or . _ ~ -'),
  client_secret: z.string().min(32, 'must have at least 32 characters').max(255),
  name: CLIENT_NAME,
  scope: z.string(),
  realms: z.union([z.literal('*'), z.array(z.string())]).default('*'),
  end_user_address: z.enum(END_USER_ADDRESSES).optional(),
});

/** Parses a bootstrap client file. `path` names it in messages. Throws Refusal that lists every mistake. */
export function parseBootstrapClient(path: string, text: string): ClientSpec {
  const spec = parseMembers(path, text);
  const { client_id: clientId, client_secret: secret, name } = spec;
  const scopes = parseScopes(spec.scope);
  if (!scopes) throw new Refusal(`${path}: scope names a scope that does not exist`);
  const realms: Realms = spec.realms === '*' ? '*' : new Set(spec.realms.map((raw) => realmId(raw, path)));
  const rights = { scopes, realms, endUserAddress: spec.end_user_address };
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

function realmId(raw: string, path: string): Uuid {
  const id = parseUuid(raw);
  if (!id) throw new Refusal(`${path}: realms contains an invalid realm ID`);
  return id;
}
