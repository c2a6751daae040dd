import type { Tokens } from '../../auth/tokens/token.ts';
import type { IsOverloaded, Store } from '../../directory/store.ts';
import { parseUuid, type Uuid } from '../../domain/id.ts';
import { mayAccessRealm, type Principal } from '../../domain/principal.ts';
import type { AnyRecord, Key, Resource } from '../../domain/resource.ts';
import type { RateLimits } from '../server/rate_limits.ts';
import { faultReply, OVERLOADED, type Reply } from '../server/reply.ts';
import { insufficientScope } from './bearer.ts';
import type { Call, Stage } from './call.ts';
import { paramNames, scopeParamNames } from './links.ts';
import type { OperationDeps } from './operation.ts';

/** The dependencies of record operations. */
export interface RecordDeps extends OperationDeps {
  readonly store: Pick<Store, 'get' | 'getIncluding' | 'overloaded'>;
  readonly tokens: Tokens;
  readonly limits: RateLimits;
  readonly baseUrl: string;
  /** The ID of this installation, part of further links (docs/wire.md#oidc-profiles). */
  readonly installation: string;
}

/** One response for everything that is absent for this caller (docs/wire.md#absence). */
const NOT_FOUND = faultReply('not_found');
export const RECORD_CACHING = 'private, no-cache';

/** Rejects work that would wait too long, before authentication, which would cost a good part of the work. */
export function shedLoad(isOverloaded: IsOverloaded | undefined): readonly Stage[] {
  return isOverloaded ? [({ params }) => (isOverloaded(params.realm_id) ? OVERLOADED : undefined)] : [];
}

/** Checks the caller. The result depends on token and operation alone, so it reveals nothing about records. */
export function permitIf(isPermitted: (caller: Principal) => boolean, refusal: Reply): Stage {
  return (call) => {
    if (isPermitted(call.principal as Principal)) return undefined;
    call.refused = 'insufficient scope';
    return refusal;
  };
}

export function permit(scope: string): Stage {
  return permitIf(({ scopes }) => scopes.has(scope), insufficientScope(scope));
}

/** The same for an operation that needs any of several scopes. */
export function permitAny(scopes: readonly string[]): Stage {
  return permitIf(
    (caller) => scopes.some((scope) => caller.scopes.has(scope)),
    insufficientScope(scopes.join(' '), `needs one of the scopes ${scopes.join(', ')}`),
  );
}

/** Reads the key from the path. A malformed ID, or a realm outside the principal's list, is 404. */
export function locate(resource: Resource): Stage {
  return locateBy(paramNames(resource));
}

/** The same for named parameters, the realm first. */
export function locateBy(names: readonly string[]): Stage {
  return (call) => {
    const ids = idsOf(call, names);
    if (ids === undefined) return NOT_FOUND;
    call.key = ids as unknown as Key;
    return undefined;
  };
}

/** The same for the parents of a collection. */
export function locateScope(resource: Resource): Stage {
  const names = scopeParamNames(resource);
  return (call) => {
    const ids = idsOf(call, names);
    if (ids === undefined) return NOT_FOUND;
    call.scope = ids;
    return undefined;
  };
}

function idsOf(call: Call, names: readonly string[]): Uuid[] | undefined {
  const { params, principal } = call;
  const ids: Uuid[] = [];
  for (const name of names) {
    const id = parseUuid(params[name] ?? '');
    if (id === undefined) return undefined;
    ids.push(id);
  }
  const [realm] = ids;
  if (realm === undefined || mayAccessRealm(principal as Principal, realm)) return ids;
  call.refused = 'realm outside the list';
  return undefined;
}

/** Reads the record of the key (404). */
export function read(resource: Resource, store: Pick<Store, 'get'>): Stage {
  const setRecord = (call: Call, record: AnyRecord | undefined): Reply | undefined => {
    if (record === undefined) return NOT_FOUND;
    call.record = record;
    return undefined;
  };
  return (call) => {
    const found = store.get(resource, call.key as Key);
    return found instanceof Promise
      ? found.then((record) => setRecord(call, record))
      : setRecord(call, found);
  };
}
