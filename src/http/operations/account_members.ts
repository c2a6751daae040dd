import { z } from 'zod';
import type { PresetOrigin } from '../../directory/presets.ts';
import type { Store } from '../../directory/store.ts';
import { parseFilter } from '../../domain/filter/filter.ts';
import { parseUuid, type Uuid } from '../../domain/id.ts';
import type { Principal } from '../../domain/principal.ts';
import { type AnyRecord, shownMembers } from '../../domain/resource.ts';
import { user } from '../../domain/resources.ts';
import { exampleIdOf } from '../openapi/examples.ts';
import { listParameters } from '../openapi/parameters.ts';
import { header, jsonContent } from '../openapi/responses.ts';
import {
  idSchema,
  lazyComponent,
  link,
  outputMember,
  pageSchema,
  timestampSchema,
} from '../openapi/schemas.ts';
import { authenticate } from '../pipeline/bearer.ts';
import type { Call } from '../pipeline/call.ts';
import type { Documentation, Operation } from '../pipeline/operation.ts';
import { listBody } from '../pipeline/paging.ts';
import { permitAny, shedLoad } from '../pipeline/pipeline.ts';
import { isoTimestamp } from '../pipeline/present.ts';
import { NEWEST_FIRST, readQuery } from '../pipeline/query.ts';
import { faultReply, type Reply } from '../server/reply.ts';
import { ACCOUNT_TOKEN, INVALID_ACCOUNT_TOKEN } from './account_tokens.ts';
import { NO_FILTER, pageOf, pageReply } from './lists.ts';
import { END_USER_ADDRESS, readEndUserAddress, SIGN_IN_SCOPE, type SignInDeps } from './password_request.ts';
import { accountTokenParameter, endUserAddressParameter } from './password_schemas.ts';
import { pageAnswer } from './record_operation.ts';
import { accessibleRealm, type SettingsDeps, settingsReply } from './settings.ts';

/** The dependencies of account members. */
export interface AccountMemberDeps extends SettingsDeps {
  readonly store: SettingsDeps['store'] & Pick<Store, 'list'>;
  readonly signIn: Pick<SignInDeps['signIn'], 'accountTokens'>;
}

/**
 * The users of the account realm as account members: the same records and IDs in another form, which cannot be written
 * (docs/wire.md#account-members).
 */
const COLLECTION = '/v2/account-members';
const TYPE = 'account_member';
const ORIGIN: PresetOrigin = 'account_authentication_settings';
const SCOPE = `${user.scope}:read`;
export const ACCOUNT_MEMBERS_TAG = 'account-members';
const NOT_FOUND = faultReply('not_found');

/** The members that an account member has in common with its user. */
const MEMBERS = shownMembers(user).filter(({ annotation: { within } }) => within === undefined);

function memberOf(record: AnyRecord): object {
  const { id, created_at, updated_at } = record;
  return {
    id,
    type: TYPE,
    ...Object.fromEntries(MEMBERS.map(({ name }) => [name, record[name] ?? null])),
    meta: { timestamps: { created_at: isoTimestamp(created_at), updated_at: isoTimestamp(updated_at) } },
  };
}

const linksOf = (baseUrl: string, { id }: AnyRecord) => ({ self: `${baseUrl}${COLLECTION}/${id}` });
const itemOf = (record: AnyRecord, baseUrl: string) => ({
  ...memberOf(record),
  links: linksOf(baseUrl, record),
});
const singleOf = (record: AnyRecord, baseUrl: string) => ({
  data: memberOf(record),
  links: linksOf(baseUrl, record),
});

const shape = lazyComponent(() =>
  z.strictObject({
    id: idSchema,
    type: z.literal(TYPE),
    ...Object.fromEntries(MEMBERS.map((member) => [member.name, outputMember(member)])),
    meta: z.strictObject({
      timestamps: z.strictObject({ created_at: timestampSchema, updated_at: timestampSchema }),
    }),
  }),
);
const links = () => z.strictObject({ self: link });

interface MemberDescription extends Pick<Operation<AccountMemberDeps>, 'name' | 'path'> {
  /** Any of these is needed. */
  readonly scopes: readonly [string, ...string[]];
  readonly answer: (deps: AccountMemberDeps) => (call: Call, accountRealm: Uuid) => Promise<Reply>;
  readonly document: (
    example: AnyRecord,
    baseUrl: string,
  ) => Pick<Documentation, 'summary' | 'path' | 'query' | 'ownHeaders' | 'success' | 'faults'>;
}

function memberOperation({
  name,
  path,
  scopes,
  answer,
  document,
}: MemberDescription): Operation<AccountMemberDeps> {
  return {
    name,
    method: 'GET',
    path,
    access: { anyScope: scopes },
    stages: (deps) => {
      const respond = answer(deps);
      return [
        ...shedLoad(deps.store.overloaded.get),
        authenticate(deps.tokens, deps.limits),
        permitAny(scopes),
        async (call) => {
          const named = accessibleRealm(call, await deps.settingsRealms.find(ORIGIN));
          return named ? respond(call, named.id) : NOT_FOUND;
        },
      ];
    },
    document: ({ baseUrl, examples }) => ({
      tag: ACCOUNT_MEMBERS_TAG,
      headers: ['X-Request-Id'],
      ...document(examples.stored(user), baseUrl),
    }),
  };
}

const RULES = { hasFilter: true, hasSort: true };

const LIST_MEMBERS = memberOperation({
  name: 'list-account-members',
  path: COLLECTION,
  scopes: [SCOPE],
  answer:
    ({ store, baseUrl, pageLength }) =>
    async (call, accountRealm) => {
      const { carried, sort, ...query } = readQuery(call.request.url, RULES);
      const filter = query.filter === undefined ? NO_FILTER : parseFilter(query.filter, user.filterables);
      const page = pageOf({ carried, sort, ...query }, pageLength);
      const listed = await store.list(user, [accountRealm], { filter, sort, page });
      if (!listed) return NOT_FOUND;
      const items = listed.items.map(({ record }) => JSON.stringify(itemOf(record, baseUrl))).join();
      const address = { url: `${baseUrl}${COLLECTION}`, carried };
      return pageReply(call, listBody(items, { listed, page, sort, address }));
    },
  document: (example, baseUrl) => ({
    summary: 'List the users of the account realm as account members, newest first.',
    query: listParameters(user),
    success: pageAnswer(
      pageSchema(
        shape()
          .extend({ links: links() })
          .meta({ id: `${TYPE}.item` }),
        `${TYPE}.page`,
      ),
      { counted: pageExample(example, baseUrl, 'offset'), followed: pageExample(example, baseUrl, 'after') },
    ),
    faults: ['malformed_filter', 'not_found'],
  }),
});

function pageExample(record: AnyRecord, baseUrl: string, kind: 'offset' | 'after'): unknown {
  const isCounted = kind === 'offset';
  const listed = {
    items: [{ key: [record.id] as const, record }],
    hasMore: false,
    total: isCounted ? 1 : undefined,
  };
  const page = isCounted
    ? ({ kind: 'offset', offset: 0, limit: 25 } as const)
    : ({ kind: 'after', after: undefined, limit: 25 } as const);
  const address = { url: `${baseUrl}${COLLECTION}`, carried: '' };
  return JSON.parse(
    listBody(JSON.stringify(itemOf(record, baseUrl)), { listed, page, sort: NEWEST_FIRST, address }),
  );
}

const GET_MEMBER = memberOperation({
  name: 'get-account-member',
  path: `${COLLECTION}/:member_id`,
  scopes: [SCOPE, SIGN_IN_SCOPE],
  answer:
    ({ store, signIn, baseUrl }) =>
    async (call, accountRealm) => {
      const id = parseUuid(call.params.member_id ?? '');
      const { scopes } = call.principal as Principal;
      const isOwn = !scopes.has(SCOPE);
      if (isOwn) {
        readEndUserAddress(call);
        const token = call.request.headers.get(ACCOUNT_TOKEN) ?? '';
        const signedIn = await signIn.accountTokens.verify(token, accountRealm);
        if (!signedIn) return INVALID_ACCOUNT_TOKEN;
        if (signedIn.userId !== id) return NOT_FOUND;
      }
      const record = id && (await store.get(user, [accountRealm, id]));
      if (!record) return NOT_FOUND;
      const reply = settingsReply(singleOf(record, baseUrl));
      // A cache does not know that the answer depends on the account token.
      return isOwn ? { ...reply, headers: { ...reply.headers, 'Cache-Control': 'no-store' } } : reply;
    },
  document: (example, baseUrl) => ({
    summary:
      'Get a user of the account realm as an account member; with `sign-in` alone, the one that the account token names.',
    ownHeaders: {
      [ACCOUNT_TOKEN]: accountTokenParameter(),
      [END_USER_ADDRESS]: endUserAddressParameter(),
    },
    path: z.object({
      member_id: idSchema.meta({
        param: { description: 'The ID of the account member, and of its user.', example: exampleIdOf(user) },
      }),
    }),
    success: {
      status: 200,
      description: 'The account member.',
      headers: {
        'Cache-Control': header(
          '`no-store` after an account token; else a cached response must be revalidated.',
          'private, no-cache',
        ),
      },
      content: jsonContent(
        z.strictObject({ data: shape(), links: links() }).meta({ id: TYPE }),
        singleOf(example, baseUrl),
      ),
    },
    faults: ['not_found', 'invalid_account_token', 'invalid_query'],
  }),
});

export const ACCOUNT_MEMBER_OPERATIONS: readonly Operation<AccountMemberDeps>[] = [LIST_MEMBERS, GET_MEMBER];
