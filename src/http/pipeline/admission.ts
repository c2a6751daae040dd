import type { Principal } from '../../model/principal.ts';
import type { Resource } from '../../model/resource.ts';
import { requireOwnOrigin } from '../server/own_origin.ts';
import type { Route } from '../server/router.ts';
import { authenticate, insufficientScope } from './bearer.ts';
import { readBody } from './body.ts';
import { type CallHandler, runStages, type Stage } from './call.ts';
import { parameterNames } from './links.ts';
import type { Access, FurtherNeed, Operation } from './operation.ts';
import { locateBy, type OperationDeps, permit, permitIf, refuseWithout, shedLoad } from './pipeline.ts';
import { childrenNamed } from './query.ts';

/** The routes of operations, one for each path. */
export function routesFrom<Deps extends OperationDeps>(
  operations: readonly Operation<Deps>[],
  deps: Deps,
): readonly Route[] {
  const byPath = Map.groupBy(operations, ({ path }) => path);
  return [...byPath].map(([pattern, all]) => {
    const [{ isUncounted, isOwn, body }] = all as [Operation<Deps>];
    return {
      pattern,
      isUncounted,
      isOwn,
      isLong: body === 'file',
      answers: Object.fromEntries(all.map((each) => [each.method, handlerOf(each, deps)])),
    };
  });
}

/** Admits and answers the calls of an operation. */
function handlerOf<Deps extends OperationDeps>(operation: Operation<Deps>, deps: Deps): CallHandler {
  let handler: CallHandler | undefined;
  return (call) => {
    // Built for the first call: a start would wait for the handlers of all operations.
    handler ??= operation.admitsItself
      ? operation.handle(deps)
      : runStages([...entryStages(operation, deps), operation.handle(deps)]);
    return handler(call);
  };
}

/**
 * The stages that admit a call, made from the description of its operation, in one order for all. A caller without a valid token is
 * refused before its body is read, and takes no place in the queue of the event loop.
 */
function entryStages<Deps>(operation: Operation<Deps>, deps: OperationDeps): readonly Stage[] {
  const { method, path, access, work, includes = [], locates, body, isOwn, loopUse } = operation;
  const { store, baseUrl, loopBudget } = deps;
  const isLookup = loopUse === 'lookup';
  return [
    ...(isLookup ? [loopBudget.countLookup] : []),
    ...(isOwn && method !== 'GET' ? [requireOwnOrigin(baseUrl)] : []),
    ...(work ? shedLoad(store.overloaded[work]) : []),
    ...authorize(access, deps),
    ...(includes.length > 0 ? [requireReadOfIncluded(includes)] : []),
    ...(locates ? [locateBy(parameterNames(path), locates)] : []),
    ...(body && !isLookup ? [captureAddress] : []),
    ...(body === 'json' ? [readBody] : []),
    // After the body, which arrives in a later turn of the event loop.
    ...(loopUse === undefined ? [loopBudget.admit] : []),
  ];
}

function authorize(access: Access, { tokens, limits }: OperationDeps): readonly Stage[] {
  if (access === 'open') return [];
  if (access === 'credentials') return limits.badCredentials ? [limits.badCredentials.admit] : [];
  return [authenticate(tokens, limits), ...(access === 'session' ? [] : permitAccess(access))];
}

function permitAccess(access: Extract<Access, object>): readonly Stage[] {
  if ('anyScope' in access) {
    const { anyScope } = access;
    const refusal = insufficientScope(anyScope.join(' '), `needs one of the scopes ${anyScope.join(', ')}`);
    return [permitIf(({ scopes }) => anyScope.some((scope) => scopes.has(scope)), refusal)];
  }
  const { scope, needs } = access;
  if (!needs) return [permit(scope)];
  return [permit(scope), permitIf(FURTHER_NEEDS[needs], insufficientScope(scope, `needs ${needs}`))];
}

const FURTHER_NEEDS: Readonly<Record<FurtherNeed, (caller: Principal) => boolean>> = {
  'access to all realms': ({ realms }) => realms === '*',
  'the secret of the client': ({ implicit }) => !implicit,
};

/** Reads which records the answer includes, and checks their read scopes. */
function requireReadOfIncluded(includable: readonly Resource[]): Stage {
  return (call) => {
    call.included = childrenNamed(includable, call.request.url);
    return refuseWithout(
      call,
      call.included.map(({ scope }) => `${scope}:read`),
    );
  };
}

/**
 * Reads the address while the connection is open, so that a caller that disconnects before its body arrived is logged as well.
 * Without a body, `loopBudget.admit` reads it. Lookups log none.
 */
const captureAddress: Stage = (call) => {
  call.address();
  return undefined;
};
