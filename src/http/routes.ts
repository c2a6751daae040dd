import type { AuthenticateClient } from '../access/client_credentials.ts';
import type { GrantToken } from '../access/grant.ts';
import { publicKeySet } from '../access/signing.ts';
import type { AccessCache } from '../access/table.ts';
import type { TokenDesk } from '../access/token_desk.ts';
import type { Store } from '../directory/store.ts';
import { LIMITS } from '../domain/limits.ts';
import { SCOPES } from '../domain/principal.ts';
import type { AdminHouse } from './admin/operation.ts';
import { ADMIN_OPERATIONS } from './admin/routes.ts';
import type { Answer } from './call.ts';
import { type FeedRooms, feedRoutes } from './changes.ts';
import { type ConsoleRooms, sessionRoutes } from './console_sessions.ts';
import { introspectionEndpoint, revocationEndpoint, tokenEndpoint } from './oauth.ts';
import { routesFrom } from './operation.ts';
import { readiness } from './readiness.ts';
import { documentReply, type Reply } from './reply.ts';
import { type ResourceRooms, resourceRoutes } from './resource_routes.ts';
import type { Route } from './router.ts';

export interface House extends ResourceRooms, AdminHouse, FeedRooms, ConsoleRooms {
  readonly store: Store;
  readonly access: AccessCache;
  readonly authenticateClient: AuthenticateClient;
  readonly grant: GrantToken;
  readonly desk: TokenDesk;
  readonly version: string;
}

const STILL_ALIVE = documentReply({ status: 'ok' }, 'no-store');
const REVALIDATED = 'no-cache';

/** Everything the service answers. A base URL with a path prefix answers under the prefix as well. */
export function routesOf(house: House): readonly Route[] {
  const prefix = prefixOf(house.baseUrl);
  const own = ownRoutes(house);
  const prefixed = prefix === '' ? [] : own.map((route) => ({ ...route, pattern: prefix + route.pattern }));
  return [...own, ...prefixed, ...metadataRoutes(house.baseUrl, prefix)];
}

/** The path of the base URL, without a slash at its end. */
export function prefixOf(baseUrl: string): string {
  return new URL(baseUrl).pathname.replace(/\/$/, '');
}

function ownRoutes(house: House): Route[] {
  const token = tokenEndpoint(house.grant, house);
  const document = async () => {
    const { openApiDocument } = await import('./openapi.ts');
    const hasConsole = house.console !== undefined;
    return documentReply(openApiDocument(house.baseUrl, house.version, hasConsole), REVALIDATED);
  };
  return [
    ...resourceRoutes(house),
    ...feedRoutes(house),
    ...routesFrom(ADMIN_OPERATIONS, house),
    ...sessionRoutes(house),
    { pattern: '/oauth/access_token', answers: { POST: token } },
    { pattern: '/oauth/token', answers: { POST: token } },
    { pattern: '/oauth/revoke', answers: { POST: revocationEndpoint(house.desk, house) } },
    { pattern: '/oauth/introspect', answers: { POST: introspectionEndpoint(house.desk, house) } },
    { pattern: '/.well-known/jwks.json', answers: { GET: keySet(house.access) } },
    { pattern: '/openapi.json', answers: { GET: once(document) } },
    { pattern: '/healthz', answers: { GET: () => STILL_ALIVE }, isUncounted: true },
    { pattern: '/readyz', answers: { GET: readiness(house) }, isUncounted: true },
  ];
}

/** Built when it is first asked for, so that a start does not wait for it. */
function once(make: () => Promise<Reply>): Answer {
  let made: Promise<Reply> | undefined;
  return () => {
    made ??= make();
    return made;
  };
}

function keySet(access: AccessCache): Answer {
  return async () => {
    const { keys } = await access.fresh();
    return documentReply(
      publicKeySet(keys.accepted.values()),
      `public, max-age=${LIMITS.keySetAgeMsMax / 1000}`,
    );
  };
}

/** RFC 8414, with the spelling of its section 3.1 for an issuer that has a path. */
function metadataRoutes(baseUrl: string, prefix: string): Route[] {
  const methods = ['client_secret_basic', 'client_secret_post'];
  const document = documentReply(
    {
      issuer: baseUrl,
      token_endpoint: `${baseUrl}/oauth/access_token`,
      revocation_endpoint: `${baseUrl}/oauth/revoke`,
      introspection_endpoint: `${baseUrl}/oauth/introspect`,
      jwks_uri: `${baseUrl}/.well-known/jwks.json`,
      scopes_supported: SCOPES,
      response_types_supported: [],
      grant_types_supported: ['client_credentials'],
      token_endpoint_auth_methods_supported: methods,
      revocation_endpoint_auth_methods_supported: methods,
      introspection_endpoint_auth_methods_supported: methods,
    },
    REVALIDATED,
  );
  const path = '/.well-known/oauth-authorization-server';
  const spellings = new Set([path, `${path}${prefix}`, `${prefix}${path}`]);
  return [...spellings].map((pattern) => ({ pattern, answers: { GET: () => document } }));
}
