import { CONSOLE_OPERATIONS } from '../../http/operations/console_sessions.ts';
import { SERVER_METADATA } from '../../http/operations/service.ts';
import { routesFrom } from '../../http/pipeline/admission.ts';
import type { Route } from '../../http/server/router.ts';
import { prefixOf } from '../../http/server/url.ts';
import { VERSION } from '../../model/version.ts';
import type { Authentication } from '../authentication.ts';
import { type ApiDeps, OPERATIONS } from './operations.ts';

/** `console` is undefined if the console is off. */
type HttpDeps = Omit<ApiDeps, 'describe'> & Pick<Authentication, 'console'>;

/** Every route of the service. With a path prefix in the base URL, all routes also answer under the prefix. */
export function routesOf(deps: HttpDeps): readonly Route[] {
  const prefix = prefixOf(deps.baseUrl);
  const own = ownRoutes(deps);
  const under = (before: string) => own.map((route) => ({ ...route, pattern: before + route.pattern }));
  if (prefix === '') return own;
  // The spelling of RFC 8414, section 3.1, for an issuer that has a path.
  const metadata = { ...SERVER_METADATA, path: SERVER_METADATA.path + prefix };
  return [...own, ...under(prefix), ...routesFrom([metadata], deps)];
}

function ownRoutes(deps: HttpDeps): Route[] {
  const { console } = deps;
  const describe = async () => {
    const { openApiDocument } = await import('./document.ts');
    return openApiDocument(deps.baseUrl, VERSION, console !== undefined);
  };
  return [
    ...routesFrom(OPERATIONS, { ...deps, describe }),
    ...(console ? routesFrom(CONSOLE_OPERATIONS, { ...deps, console }) : []),
  ];
}
