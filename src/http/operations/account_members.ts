import { z } from 'zod';
import type { PresetOrigin } from '../../directory/presets.ts';
import type { Store } from '../../directory/store.ts';
import { accountSettingsOf } from '../../domain/account_settings.ts';
import { parseFilter } from '../../domain/filter/filter.ts';
import { parseUuid, type Uuid } from '../../domain/id.ts';
import { LIMITS } from '../../domain/limits.ts';
import type { Principal } from '../../domain/principal.ts';
import { type AnyRecord, shownMembers } from '../../domain/resource.ts';
import { user } from '../../domain/resources.ts';
import { exampleIdOf } from '../openapi/examples.ts';
import { listParameters, PAGE_PARAMETERS } from '../openapi/parameters.ts';
import { header, jsonContent } from '../openapi/responses.ts';
import { idSchema, link, outputMember, pageSchema, timestampSchema } from '../openapi/schemas.ts';
import type { Call } from '../pipeline/call.ts';
import type { Documentation, Operation } from '../pipeline/operation.ts';
import { listBody } from '../pipeline/paging.ts';
import { isoTimestamp } from '../pipeline/present.ts';
import { NEWEST_FIRST, readQuery } from '../pipeline/query.ts';
import { faultReply, type Reply } from '../server/reply.ts';
import { ACCOUNT_TOKEN, refuseAccountToken } from './account_tokens.ts';
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
 * The users of the account realm as account members and as their accounts: the same records and IDs in other forms, which cannot be
 * written (docs/wire.md#account-members).
 */
const ORIGIN: PresetOrigin = 'account_authentication_settings';
const SCOPE = `${user.scope}:read`;
export const ACCOUNT_MEMBERS_TAG = 'account-members';
const NOT_FOUND = faultReply('not_found');
const NO_STORE = { 'Cache-Control': 'no-store' };

/** A form of the users of the account realm. */
interface UserForm {
  readonly type: string;
  readonly people: string;
  readonly collection: string;
  /** Of the ID in the path of an item. */
  readonly parameter: string;
  /** They exist only with `auto_create_account_for_account_members`. */
  readonly isAccount: boolean;
  readonly members: (record: AnyRecord) => object;
  readonly shape: () => z.ZodRawShape;
}

/** The members that an account member has in common with its user. */
const MEMBERS = shownMembers(user).filter(({ annotation: { within } }) => within === undefined);

const ACCOUNT_MEMBER: UserForm = {
  type: 'account_member',
  people: 'account member',
  collection: '/v2/account-members',
  parameter: 'member_id',
  isAccount: false,
  members: (record) => Object.fromEntries(MEMBERS.map(({ name }) => [name, record[name] ?? null])),
  shape: () => Object.fromEntries(MEMBERS.map((member) => [member.name, outputMember(member)])),
};

const ACCOUNT: UserForm = {
  type: 'account',
  people: 'account',
  collection: '/v2/accounts',
  parameter: 'account_id',
  isAccount: true,
  members: ({ name }) => ({
    ...{ name, legal_name: name },
    ...{ registration_id: null, external_ref: null, parent_id: null },
  }),
  shape: () => ({
    ...{ name: z.string(), legal_name: z.string() },
    ...{ registration_id: z.null(), external_ref: z.null(), parent_id: z.null() },
  }),
};

const timestampsOf = ({ created_at, updated_at }: AnyRecord) => ({
  timestamps: { created_at: isoTimestamp(created_at), updated_at: isoTimestamp(updated_at) },
});
const timestampsShape = () =>
  z.strictObject({
    timestamps: z.strictObject({ created_at: timestampSchema, updated_at: timestampSchema }),
  });

const dataOf = ({ type, members }: UserForm, record: AnyRecord) => ({
  id: record.id,
  type,
  ...members(record),
  meta: timestampsOf(record),
});
const linksOf = ({ collection }: UserForm, { id }: AnyRecord, baseUrl: string) => ({
  self: `${baseUrl}${collection}/${id}`,
});
const itemOf = (form: UserForm, record: AnyRecord, baseUrl: string) => ({
  ...dataOf(form, record),
  links: linksOf(form, record, baseUrl),
});
const singleOf = (form: UserForm, record: AnyRecord, baseUrl: string) => ({
  data: dataOf(form, record),
  links: linksOf(form, record, baseUrl),
});

const links = () => z.strictObject({ self: link });
const schemaOf = ({ type, shape }: UserForm) =>
  z.strictObject({ id: idSchema, type: z.literal(type), ...shape(), meta: timestampsShape() });

/** What a request may read: all users of the account realm, or the one that its account token names. */
interface Visible {
  readonly accountRealm: AnyRecord;
  readonly own: Uuid | undefined;
}

/** An account token narrows every answer to its member, whatever the scopes; `sign-in` alone needs one. */
async function visibleTo(
  call: Call,
  { settingsRealms, signIn }: Pick<AccountMemberDeps, 'settingsRealms' | 'signIn'>,
): Promise<Visible | Reply> {
  const accountRealm = accessibleRealm(call, await settingsRealms.find(ORIGIN));
  if (!accountRealm) return NOT_FOUND;
  const mayReadAll = (call.principal as Principal).scopes.has(SCOPE);
  if (!mayReadAll) readEndUserAddress(call);
  const token = call.request.headers.get(ACCOUNT_TOKEN);
  if (mayReadAll && token === null) return { accountRealm, own: undefined };
  const signedIn = await signIn.accountTokens.verify(token ?? '', accountRealm.id);
  return signedIn ? { accountRealm, own: signedIn.userId } : refuseAccountToken(token);
}

interface FormDescription extends Pick<Operation<AccountMemberDeps>, 'name' | 'path'> {
  readonly answer: (deps: AccountMemberDeps) => (call: Call, visible: Visible) => Promise<Reply>;
  readonly document: (
    example: AnyRecord,
    baseUrl: string,
  ) => Pick<Documentation, 'summary' | 'path' | 'query' | 'success' | 'faults'>;
}

function formOperation({ name, path, answer, document }: FormDescription): Operation<AccountMemberDeps> {
  return {
    name,
    method: 'GET',
    path,
    access: { anyScope: [SCOPE, SIGN_IN_SCOPE] },
    work: 'get',
    handle: (deps) => {
      const respond = answer(deps);
      return async (call) => {
        const visible = await visibleTo(call, deps);
        if ('status' in visible) return visible;
        const reply = await respond(call, visible);
        // A cache does not know that the answer depends on the account token.
        return visible.own === undefined ? reply : { ...reply, headers: { ...reply.headers, ...NO_STORE } };
      };
    },
    document: ({ baseUrl, examples }) => {
      const { faults = [], ...documented } = document(examples.stored(user), baseUrl);
      return {
        tag: ACCOUNT_MEMBERS_TAG,
        headers: ['X-Request-Id'],
        ownHeaders: {
          [ACCOUNT_TOKEN]: accountTokenParameter(),
          [END_USER_ADDRESS]: endUserAddressParameter(),
        },
        ...documented,
        faults: [...new Set([...faults, 'not_found', 'invalid_account_token', 'invalid_query'] as const)],
      };
    },
  };
}

const RULES = { hasFilter: true, hasSort: true };
const hasAccounts = ({ accountRealm }: Visible) =>
  accountSettingsOf(accountRealm).auto_create_account_for_account_members;

const listOperation = (form: UserForm) =>
  formOperation({
    name: `list-${form.collection.slice('/v2/'.length)}`,
    path: form.collection,
    answer:
      ({ store, baseUrl }) =>
      async (call, visible) => {
        const { accountRealm, own } = visible;
        const { carried, sort, ...query } = readQuery(call.request.url, RULES);
        const parsed = query.filter === undefined ? NO_FILTER : parseFilter(query.filter, user.filterables);
        const filter = own === undefined ? parsed : [...parsed, [isUser(own)]];
        const page = pageOf({ carried, sort, ...query });
        const listed =
          form.isAccount && !hasAccounts(visible)
            ? { items: [], hasMore: false, total: 0 }
            : await store.list(user, [accountRealm.id], { filter, sort, page });
        if (!listed) return NOT_FOUND;
        const items = listed.items.map(({ record }) => JSON.stringify(itemOf(form, record, baseUrl))).join();
        const address = { url: `${baseUrl}${form.collection}`, carried };
        return pageReply(call, listBody(items, { listed, page, sort, address }));
      },
    document: (example, baseUrl) => ({
      summary: `List the users of the account realm as ${form.people}s, newest first; with an account token, the one that it names.`,
      query: listParameters(user),
      success: pageAnswer(
        pageSchema(
          schemaOf(form)
            .extend({ links: links() })
            .meta({ id: `${form.type}.item` }),
          `${form.type}.page`,
        ),
        {
          counted: pageExample(form, example, { baseUrl, kind: 'offset' }),
          followed: pageExample(form, example, { baseUrl, kind: 'after' }),
        },
      ),
      faults: ['malformed_filter'],
    }),
  });

const isUser = (id: Uuid) =>
  ({ kind: 'one_of', member: 'id', compared: 'identifier', values: [id] }) as const;

function pageExample(
  form: UserForm,
  record: AnyRecord,
  { baseUrl, kind }: { readonly baseUrl: string; readonly kind: 'offset' | 'after' },
): unknown {
  const isCounted = kind === 'offset';
  const listed = {
    items: [{ key: [record.id] as const, record }],
    hasMore: false,
    total: isCounted ? 1 : undefined,
  };
  const page = isCounted
    ? ({ kind: 'offset', offset: 0, limit: 25 } as const)
    : ({ kind: 'after', after: undefined, limit: 25 } as const);
  const address = { url: `${baseUrl}${form.collection}`, carried: '' };
  return JSON.parse(
    listBody(JSON.stringify(itemOf(form, record, baseUrl)), { listed, page, sort: NEWEST_FIRST, address }),
  );
}

/** The user of an ID in the path; undefined for none that the request may read in this form. */
async function userOf(
  form: UserForm,
  { params }: Call,
  { visible, store }: { readonly visible: Visible; readonly store: Pick<Store, 'get'> },
): Promise<AnyRecord | undefined> {
  const { accountRealm, own } = visible;
  const id = parseUuid(params[form.parameter] ?? '');
  if (!id || (own !== undefined && own !== id) || (form.isAccount && !hasAccounts(visible))) return undefined;
  return store.get(user, [accountRealm.id, id]);
}

const pathOf = ({ parameter, people }: UserForm) =>
  z.object({
    [parameter]: idSchema.meta({
      param: { description: `The ID of the ${people}, and of its user.`, example: exampleIdOf(user) },
    }),
  });

const cacheControl = header(
  '`no-store` after an account token; else a cached response must be revalidated.',
  'private, no-cache',
);

const getOperation = (form: UserForm) =>
  formOperation({
    name: `get-${form.type.replace('_', '-')}`,
    path: `${form.collection}/:${form.parameter}`,
    answer:
      ({ store, baseUrl }) =>
      async (call, visible) => {
        const record = await userOf(form, call, { visible, store });
        return record ? settingsReply(singleOf(form, record, baseUrl)) : NOT_FOUND;
      },
    document: (example, baseUrl) => ({
      summary: `Get a user of the account realm as an ${form.people}; with an account token, only the one that it names.`,
      path: pathOf(form),
      success: {
        status: 200,
        description: `The ${form.people}.`,
        headers: { 'Cache-Control': cacheControl },
        content: jsonContent(
          z.strictObject({ data: schemaOf(form), links: links() }).meta({ id: form.type }),
          singleOf(form, example, baseUrl),
        ),
      },
    }),
  });

const MEMBERSHIP_TYPE = 'account_membership';

const membershipOf = (record: AnyRecord) => ({
  id: record.id,
  type: MEMBERSHIP_TYPE,
  relationships: { account_member: { data: { id: record.id, type: ACCOUNT_MEMBER.type } } },
  meta: timestampsOf(record),
});

function membershipsBody(
  record: AnyRecord,
  baseUrl: string,
  { limit, offset = 0 }: { readonly limit: number; readonly offset?: number | undefined },
): string {
  const listed = { items: [], hasMore: false, total: 1 };
  const page = { kind: 'offset', offset, limit } as const;
  const address = { url: `${baseUrl}${ACCOUNT.collection}/${record.id}/account-memberships`, carried: '' };
  const items = offset === 0 ? JSON.stringify(membershipOf(record)) : '';
  return listBody(items, { listed, page, sort: NEWEST_FIRST, address });
}

/** The one membership of an account is that of its user, and has the same ID. */
const LIST_MEMBERSHIPS = formOperation({
  name: 'list-account-memberships',
  path: `${ACCOUNT.collection}/:${ACCOUNT.parameter}/account-memberships`,
  answer:
    ({ store, baseUrl }) =>
    async (call, visible) => {
      const { limit = LIMITS.pageRecordsDefault, offset } = readQuery(call.request.url, {
        hasFilter: false,
        hasSort: false,
      });
      const record = await userOf(ACCOUNT, call, { visible, store });
      return record ? pageReply(call, membershipsBody(record, baseUrl, { limit, offset })) : NOT_FOUND;
    },
  document: (example, baseUrl) => ({
    summary: 'List the memberships of an account: the one of its user.',
    path: pathOf(ACCOUNT),
    query: z.object({
      'page[limit]': PAGE_PARAMETERS['page[limit]'],
      'page[offset]': PAGE_PARAMETERS['page[offset]'],
    } as z.ZodRawShape),
    success: pageAnswer(
      pageSchema(
        z
          .strictObject({
            id: idSchema,
            type: z.literal(MEMBERSHIP_TYPE),
            relationships: z.strictObject({
              account_member: z.strictObject({
                data: z.strictObject({ id: idSchema, type: z.literal(ACCOUNT_MEMBER.type) }),
              }),
            }),
            meta: timestampsShape(),
          })
          .meta({ id: `${MEMBERSHIP_TYPE}.item` }),
        `${MEMBERSHIP_TYPE}.page`,
      ),
      { counted: JSON.parse(membershipsBody(example, baseUrl, { limit: 25 })) },
    ),
  }),
});

export const ACCOUNT_MEMBER_OPERATIONS: readonly Operation<AccountMemberDeps>[] = [
  ...[ACCOUNT_MEMBER, ACCOUNT].flatMap((form) => [listOperation(form), getOperation(form)]),
  LIST_MEMBERSHIPS,
];
