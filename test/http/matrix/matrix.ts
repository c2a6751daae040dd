import type { Uuid } from '../../../src/model/id.ts';
import type { Realms } from '../../../src/model/principal.ts';
import { SCOPES } from '../../../src/model/principal.ts';
import { consoleCredentials, startConsoleProvider } from '../../support/console_sign_in.ts';
import type { JsonObject } from '../../support/json_schema.ts';
import {
  type Operation,
  type OperationRequest,
  openOperationClient,
  operationsOf,
  successOf,
} from '../../support/openapi_client.ts';
import { openValidRequests, type ValidRequests } from '../../support/openapi_requests.ts';
import { type Service, startService } from '../../support/service.ts';
import { createSettingsRealms, type SettingsRealms } from '../../support/settings_realms.ts';
import { createPassword, passwordBody } from '../../support/sign_in.ts';
import { openStates } from './states.ts';
import type { Table } from './table.ts';

/**
 * The status of every operation of the OpenAPI document: for each single scope, of a client with a list that contains the
 * requested realm, with a list that does not, and with all realms; and for each state of a token with the needed rights.
 */
export interface Matrix {
  readonly operations: readonly Operation[];
  /** By operation and scope. */
  readonly rights: Table;
  /** By operation. */
  readonly tokens: Table;
}

/** The files of the tables, and their first columns. */
export const RIGHTS = { path: `${import.meta.dir}/rights.tsv`, names: ['operation', 'scope'] };
export const TOKENS = { path: `${import.meta.dir}/tokens.tsv`, names: ['operation'] };

/** The scope column of operations without a token. */
const NO_SCOPE = '-';
/** The cell of rights that no client can have. */
const UNGRANTABLE = '-';
const OTHER_REALM = '01900000-0000-7000-8000-000000000000' as Uuid;

interface MatrixContext {
  readonly service: Service;
  readonly world: ValidRequests;
  readonly send: (operation: Operation, sent: OperationRequest) => Promise<string>;
  readonly tokenOf: (scope: string, realms: Realms) => Promise<string | undefined>;
  /** The realm of an operation whose path names none. */
  readonly realmNamedBy: (operation: Operation) => Promise<string>;
}

/** Account members and accounts. */
const USER_FORMS = /\/v2\/account(-member)?s\b/;

/** The realm that is looked up for an operation. */
function settingsRealmOf(path: string, { buyers, merchants, accounts }: SettingsRealms): Uuid | undefined {
  if (USER_FORMS.test(path) || path.endsWith('/v2/settings/account-authentication')) return accounts;
  if (path.endsWith('/v2/settings/customer-authentication')) return buyers;
  return path.includes('/v2/merchant-realm-mappings') ? merchants : undefined;
}

export async function computeMatrix(): Promise<Matrix> {
  const consoleProvider = await startConsoleProvider();
  const service = await startService(
    { offline: 'true', badTokenRate: 'off' },
    undefined,
    consoleProvider.settings,
  );
  try {
    const realms = await createSettingsRealms(service.db);
    const member = await createPassword(service.db, realms.accounts);
    const document = (await (await service.get('/openapi.json')).json()) as JsonObject;
    const operations = operationsOf(document);
    const caller = openOperationClient(document);
    const credentials = (scope: string) => service.client(scope);
    const world = await openValidRequests({
      document,
      operations,
      caller,
      credentials,
      console: consoleCredentials(service),
      signIn: passwordBody(member) as JsonObject,
    });
    const send = async (operation: Operation, sent: OperationRequest): Promise<string> => {
      const { status, text } = await caller.send(operation, sent);
      const realm = realmOf(operation, sent) ?? (await context.realmNamedBy(operation));
      // An account member does not name its realm.
      const shown = USER_FORMS.test(operation.path) ? [realms.member, member.user] : [realm];
      // A wrong password is answered as one of a username that does not exist.
      const mayName = isOfRealms(operation) && !operation.path.endsWith('/check');
      const isHidden = status === 200 && mayName && !shown.some((id) => text.includes(id));
      return isHidden ? '200 hidden' : String(status);
    };
    const context: MatrixContext = {
      ...{ service, world, send, tokenOf: openTokensOf(service) },
      realmNamedBy: async ({ path }) =>
        settingsRealmOf(path, realms) ?? (await anyRealm({ operations, world })),
    };
    const rights = await rightsOf(operations, context);
    return { operations, rights, tokens: await tokensOf(operations, context) };
  } finally {
    await service.stop();
    consoleProvider.stop();
  }
}

/** Makes the function that returns the token of a client with one scope and these realms. */
function openTokensOf(service: Service): MatrixContext['tokenOf'] {
  const known = new Map<string, Promise<string | undefined>>();
  return (scope, realms) => {
    const name = `${scope} ${realms === '*' ? realms : [...realms].join()}`;
    const token = known.get(name) ?? service.token(scope, realms).catch(() => undefined);
    known.set(name, token);
    return token;
  };
}

async function rightsOf(operations: readonly Operation[], context: MatrixContext): Promise<Table> {
  const table = new Map<string, ReadonlyMap<string, string>>();
  for (const operation of operations) {
    const send = senderOf(operation, context);
    if (!operation.scopes) {
      const answer = await send(undefined);
      table.set(
        `${operation.id}\t${NO_SCOPE}`,
        new Map(['inside', 'outside', 'all'].map((of) => [of, answer])),
      );
      continue;
    }
    for (const scope of SCOPES) {
      const cells = new Map<string, string>();
      for (const [column, realms] of await realmsFor(operation, context)) {
        const token = await context.tokenOf(scope, realms);
        cells.set(column, token === undefined ? UNGRANTABLE : await send(token));
      }
      table.set(`${operation.id}\t${scope}`, cells);
    }
  }
  return table;
}

async function tokensOf(operations: readonly Operation[], context: MatrixContext): Promise<Table> {
  const states = await openStates(context.service);
  const table = new Map<string, ReadonlyMap<string, string>>();
  for (const operation of operations) {
    const send = senderOf(operation, context);
    const cells = new Map<string, string>();
    for (const [state, tokenOf] of states)
      cells.set(state, await send(await tokenOf((operation.scopes ?? []).join(' '))));
    table.set(operation.id, cells);
  }
  return table;
}

/** Sends a valid request with a given token. A write that succeeded is prepared again, because it cannot be repeated. */
function senderOf(
  operation: Operation,
  { world, send }: MatrixContext,
): (token: string | undefined) => Promise<string> {
  let right: Promise<OperationRequest> | undefined;
  return async (token) => {
    right ??= world.validRequest(operation);
    const { token: _, ...sent } = await right;
    const answer = await send(operation, token === undefined ? sent : { ...sent, token });
    if (operation.method !== 'get' && answer === String(successOf(operation))) right = undefined;
    return answer;
  };
}

async function realmsFor(
  operation: Operation,
  { world, realmNamedBy }: MatrixContext,
): Promise<readonly [column: string, realms: Realms][]> {
  const realm = realmOf(operation, await world.validRequest(operation)) ?? (await realmNamedBy(operation));
  return [
    ['inside', new Set([realm as Uuid])],
    ['outside', new Set([OTHER_REALM])],
    ['all', '*'],
  ];
}

/** Whether an operation is about the installation, as settings or as a store, and not about a realm. */
export function isOfInstallation({ path }: Pick<Operation, 'path'>): boolean {
  return /\/v2\/(?:settings|stores(?:\/\{store_id\})?)$/.test(path);
}

/** The answer to a password check names no realm. */
const isOfRealms = (operation: Operation) =>
  operation.scopes !== undefined &&
  /\/v2\/(?!.*\/check$)/.test(operation.path) &&
  !isOfInstallation(operation);

/** The realm that a request names. */
function realmOf({ path }: Operation, sent: OperationRequest): string | undefined {
  const [, name] = /\/authentication-realms\/\{(\w+)\}/.exec(path) ?? [];
  return name === undefined ? undefined : sent.path?.[name];
}

/** The realm of a request that names one. */
async function anyRealm(of: {
  readonly operations: readonly Operation[];
  readonly world: ValidRequests;
}): Promise<string> {
  for (const operation of of.operations.filter(({ method }) => method === 'get')) {
    const realm = realmOf(operation, await of.world.validRequest(operation));
    if (realm !== undefined) return realm;
  }
  throw new Error('no operation names a realm');
}
