import type { Tokens } from '../../access/tokens/token.ts';
import { parseUuid, type Uuid } from '../../model/id.ts';
import { mayAccessRealm, type Principal } from '../../model/principal.ts';
import type { AnyRecord, Key, Resource } from '../../model/resource.ts';
import type { IsOverloaded, Store } from '../../model/store.ts';
import type { WriteRecords } from '../../records/directory.ts';
import type { SettingsRealms } from '../../records/settings_realms.ts';
import type { RateLimits } from '../server/rate_limits.ts';
import { JSON_TYPE, NOT_FOUND_REPLY, OVERLOADED, REQUEST_ID, type Reply } from '../server/reply.ts';
import { insufficientScope } from './bearer.ts';
import type { Call, Stage } from './call.ts';
import type { WithIdempotency } from './idempotency.ts';
import { itemPattern, parameterNames } from './links.ts';
import type { LoopBudget } from './loop_budget.ts';

/** The dependencies of every operation, with which its calls are admitted. */
export interface OperationDeps {
  readonly store: Store;
  readonly tokens: Tokens;
  readonly limits: RateLimits;
  readonly loopBudget: LoopBudget;
  readonly baseUrl: string;
}

/** The dependencies of operations on records and on settings. */
export interface RecordDeps extends OperationDeps {
  /** The ID of this installation, part of further links (docs/wire.md#oidc-profiles). */
  readonly installation: string;
  readonly writeRecords: WriteRecords;
  readonly withIdempotency: WithIdempotency;
  readonly settingsRealms: SettingsRealms;
}

/** A stage that waits for nothing. */
type Check = (call: Call) => Reply | undefined;

export const RECORD_CACHING = 'private, no-cache';

/** A reply with records. */
export function recordReply(
  { requestId }: Call,
  body: string,
  more?: Readonly<Record<string, string>>,
  status = 200,
): Reply {
  const headers = {
    'Content-Type': JSON_TYPE,
    ...more,
    'Cache-Control': RECORD_CACHING,
    [REQUEST_ID]: requestId,
  };
  return { status, headers, body };
}

/** Rejects work that would wait too long, before authentication, which would cost a good part of the work. */
export function shedLoad(isOverloaded: IsOverloaded | undefined): readonly Stage[] {
  return isOverloaded ? [({ params }) => (isOverloaded(params.realm_id) ? OVERLOADED : undefined)] : [];
}

/** Checks the scope of the caller. The result depends on token and operation alone, so it reveals nothing about records. */
export function permit(scope: string): Stage {
  const refusal = insufficientScope(scope);
  return (call) => (call.principal?.scopes.has(scope) ? undefined : refuse(call, refusal));
}

/** The same for any condition on the caller. */
export function permitIf(isPermitted: (caller: Principal) => boolean, refusal: Reply): Stage {
  return (call) => (isPermitted(call.principal as Principal) ? undefined : refuse(call, refusal));
}

/** Refuses a call that lacks one of the scopes which the request itself names. */
export function refuseWithout(call: Call, scopes: readonly string[]): Reply | undefined {
  const missing = scopes.find((scope) => !call.principal?.scopes.has(scope));
  return missing === undefined ? undefined : refuse(call, insufficientScope(missing));
}

function refuse(call: Call, refusal: Reply): Reply {
  call.refused = 'insufficient scope';
  return refusal;
}

/** Reads the key from the path. A malformed ID, or a realm outside the principal's list, is 404. */
export function locate(resource: Resource): Check {
  return locateBy(parameterNames(itemPattern(resource)), 'key');
}

/** The same for named parameters, the realm first: the key of a record, or the scope of a collection. */
export function locateBy(names: readonly string[], place: 'key' | 'scope'): Check {
  return (call) => {
    const ids: Uuid[] = [];
    for (const name of names) {
      const id = parseUuid(call.params[name] ?? '');
      if (id === undefined) return NOT_FOUND_REPLY;
      ids.push(id);
    }
    const [realm] = ids;
    if (realm !== undefined && !mayAccessRealm(call.principal as Principal, realm)) {
      call.refused = 'realm outside the list';
      return NOT_FOUND_REPLY;
    }
    if (place === 'key') call.key = ids as unknown as Key;
    else call.scope = ids;
    return undefined;
  };
}

/** Reads the record of the key (404). */
export function read(resource: Resource, store: Pick<Store, 'get'>): Stage {
  const setRecord = (call: Call, record: AnyRecord | undefined): Reply | undefined => {
    if (record === undefined) return NOT_FOUND_REPLY;
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
