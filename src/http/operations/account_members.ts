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
import { listParameters, offsetParameters } from '../openapi/parameters.ts';
import { header, jsonContent } from '../openapi/responses.ts';
import { idSchema, link, outputMember, pageSchema } from '../openapi/schemas.ts';
import type { Call } from '../pipeline/call.ts';
import type { Documentation, Operation } from '../pipeline/operation.ts';
import { listBody } from '../pipeline/paging.ts';
import { RECORD_CACHING, recordReply } from '../pipeline/pipeline.ts';
import { readQuery } from '../pipeline/query.ts';
import { documentReply, NOT_FOUND_REPLY, type Reply } from '../server/reply.ts';
import { ACCOUNT_TOKEN, refuseAccountToken } from './account_tokens.ts';
import { NO_FILTER, pageOf, shortListBody } from './lists.ts';
import { END_USER_ADDRESS, readEndUserAddress, SIGN_IN_SCOPE, type SignInDeps } from './password_request.ts';
import { accountTokenParameter, endUserAddressParameter } from './password_schemas.ts';
import {
  instant,
  type ProjectedMembers,
  type Projection,
  projectionSchema,
  projector,
} from './projection.ts';
import { pageAnswer } from './record_operation.ts';
import { accessibleRealm } from './settings.ts';

/**
 * The users of the account realm as account members and as their accounts: the same records and IDs in other forms, which cannot be
 * written (docs/wire.md#account-members).
 */
const ORIGIN: PresetOrigin = 'account_authentication_settings';
const SCOPE = `${user.scope}:read`;
export const ACCOUNT_MEMBERS_TAG = 'account-members';
const NO_STORE = { 'Cache-Control': 'no-store' };

/** A form of the users of the account realm. */
interface UserForm {
  readonly type: string;
  readonly collection: string;
  /** Of the ID in the path of an item. */
  readonly parameter: string;
  /** They exist only with `auto_create_account_for_account_members`. */
  readonly isAccount: boolean;
  /** The members between `type` and `meta`. */
  readonly members: ProjectedMembers<AnyRecord>;
}

/** The members that an account member has in common with its user. */
const MEMBERS = shownMembers(user).filter(({ annotation: { within } }) => within === undefined);

const ACCOUNT_MEMBER: UserForm = {
  type: 'account_member',
  collection: '/v2/account-members',
  parameter: 'member_id',
  isAccount: false,
  members: Object.fromEntries(
    MEMBERS.map((member) => [member.name, [outputMember(member), (record) => record[member.name] ?? null]]),
  ),
};

const NAME: Projection<AnyRecord> = [z.string(), ({ name }) => name];

const ACCOUNT: UserForm = {
  type: 'account',
  collection: '/v2/accounts',
  parameter: 'account_id',
  isAccount: true,
  members: { name: NAME, legal_name: NAME, registration_id: null, external_ref: null, parent_id: null },
};

const nounOf = ({ type }: UserForm) => type.replace('_', ' ');

const META: ProjectedMembers<AnyRecord> = {
  timestamps: {
    created_at: instant(({ created_at }) => created_at),
    updated_at: instant(({ updated_at }) => updated_at),
  },
};

const dataOf = ({ type, members }: Pick<UserForm, 'type' | 'members'>) => ({
  id: idSchema,
  type,
  ...members,
  meta: META,
});
const linksOf = ({ collection }: UserForm, baseUrl: string) => ({
  self: [link, ({ id }: AnyRecord) => `${baseUrl}${collection}/${id}`] as const,
});
/** A user by itself, and as an item of a list. */
const singleOf = (form: UserForm, baseUrl: string) => ({ data: dataOf(form), links: linksOf(form, baseUrl) });
const itemOf = (form: UserForm, baseUrl: string) => ({ ...dataOf(form), links: linksOf(form, baseUrl) });

/** What a request may read: all users of the account realm, or the one that its account token names. */
interface Visible {
  readonly accountRealm: AnyRecord;
  readonly own: Uuid | undefined;
}

/** An account token narrows every answer to its member, whatever the scopes; `sign-in` alone needs one. */
async function visibleTo(
  call: Call,
  { settingsRealms, signIn }: Pick<SignInDeps, 'settingsRealms' | 'signIn'>,
): Promise<Visible | Reply> {
  const accountRealm = accessibleRealm(call, await settingsRealms.find(ORIGIN));
  if (!accountRealm) return NOT_FOUND_REPLY;
  const mayReadAll = (call.principal as Principal).scopes.has(SCOPE);
  if (!mayReadAll) readEndUserAddress(call);
  const token = call.request.headers.get(ACCOUNT_TOKEN);
  if (mayReadAll && token === null) return { accountRealm, own: undefined };
  const signedIn = await signIn.accountTokens.verify(token ?? '', accountRealm.id);
  return signedIn ? { accountRealm, own: signedIn.userId } : refuseAccountToken(token);
}

interface FormDescription extends Pick<Operation<SignInDeps>, 'name' | 'path'> {
  readonly answer: (deps: SignInDeps) => (call: Call, visible: Visible) => Promise<Reply>;
  readonly document: (
    example: AnyRecord,
    baseUrl: string,
  ) => Pick<Documentation, 'summary' | 'path' | 'query' | 'success' | 'faults'>;
}

function formOperation({ name, path, answer, document }: FormDescription): Operation<SignInDeps> {
  return {
    name,
    method: 'GET',
    path,
    access: { anyScope: [SCOPE, SIGN_IN_SCOPE] },
    work: 'get',
    handle(deps) {
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
        faults: [...faults, 'not_found', 'invalid_account_token', 'invalid_query'],
      };
    },
  };
}

const hasAccounts = ({ accountRealm }: Visible) =>
  accountSettingsOf(accountRealm).auto_create_account_for_account_members;
const isUser = (id: Uuid) =>
  ({ kind: 'one_of', member: 'id', compared: 'identifier', values: [id] }) as const;

const listOperation = (form: UserForm) =>
  formOperation({
    name: `list-${form.collection.slice('/v2/'.length)}`,
    path: form.collection,
    answer({ store, baseUrl }) {
      const project = projector(itemOf(form, baseUrl));
      return async (call, visible) => {
        const { accountRealm, own } = visible;
        const query = readQuery(call.request.url, ['filter', 'sort']);
        const parsed = query.filter === undefined ? NO_FILTER : parseFilter(query.filter, user.filterables);
        const filter = own === undefined ? parsed : [...parsed, [isUser(own)]];
        const { carried, sort } = query;
        const page = pageOf(query);
        const listed =
          form.isAccount && !hasAccounts(visible)
            ? { items: [], hasMore: false, total: 0 }
            : await store.list(user, [accountRealm.id], { filter, sort, page });
        if (!listed) return NOT_FOUND_REPLY;
        const items = listed.items.map(({ record }) => JSON.stringify(project(record))).join();
        const address = { url: `${baseUrl}${form.collection}`, carried };
        return recordReply(call, listBody(items, { listed, page, sort, address }));
      };
    },
    document(example, baseUrl) {
      const projection = itemOf(form, baseUrl);
      const item = projectionSchema(projection).meta({ id: `${form.type}.item` });
      const page = { url: `${baseUrl}${form.collection}`, total: 1, limit: 25 };
      const body = shortListBody([projector(projection)(example)], page);
      return {
        summary: `List the users of the account realm as ${nounOf(form)}s, newest first; with an account token, the one that it names.`,
        query: listParameters(user),
        success: pageAnswer(pageSchema(item, `${form.type}.page`), JSON.parse(body)),
        faults: ['malformed_filter'],
      };
    },
  });

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

const pathOf = (form: UserForm) =>
  z.object({
    [form.parameter]: idSchema.meta({
      param: { description: `The ID of the ${nounOf(form)}, and of its user.`, example: exampleIdOf(user) },
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
    answer({ store, baseUrl }) {
      const project = projector(singleOf(form, baseUrl));
      return async (call, visible) => {
        const record = await userOf(form, call, { visible, store });
        return record ? documentReply(project(record), RECORD_CACHING) : NOT_FOUND_REPLY;
      };
    },
    document: (example, baseUrl) => ({
      summary: `Get a user of the account realm as an ${nounOf(form)}; with an account token, only the one that it names.`,
      path: pathOf(form),
      success: {
        status: 200,
        description: `The ${nounOf(form)}.`,
        headers: { 'Cache-Control': cacheControl },
        content: jsonContent(
          projectionSchema(singleOf(form, baseUrl)).meta({ id: form.type }),
          projector(singleOf(form, baseUrl))(example),
        ),
      },
    }),
  });

const MEMBERSHIP = dataOf({
  type: 'account_membership',
  members: { relationships: { account_member: { data: { id: idSchema, type: ACCOUNT_MEMBER.type } } } },
});
const projectMembership = projector(MEMBERSHIP);

function membershipsBody(
  record: AnyRecord,
  baseUrl: string,
  { limit, offset = 0 }: { readonly limit: number; readonly offset?: number | undefined },
): string {
  const url = `${baseUrl}${ACCOUNT.collection}/${record.id}/account-memberships`;
  const items = offset === 0 ? [projectMembership(record)] : [];
  return shortListBody(items, { url, total: 1, limit, offset });
}

/** The one membership of an account is that of its user, and has the same ID. */
const LIST_MEMBERSHIPS = formOperation({
  name: 'list-account-memberships',
  path: `${ACCOUNT.collection}/:${ACCOUNT.parameter}/account-memberships`,
  answer:
    ({ store, baseUrl }) =>
    async (call, visible) => {
      const { limit = LIMITS.pageRecordsDefault, offset } = readQuery(call.request.url);
      const record = await userOf(ACCOUNT, call, { visible, store });
      return record
        ? recordReply(call, membershipsBody(record, baseUrl, { limit, offset }))
        : NOT_FOUND_REPLY;
    },
  document: (example, baseUrl) => ({
    summary: 'List the memberships of an account: the one of its user.',
    path: pathOf(ACCOUNT),
    query: offsetParameters(),
    success: pageAnswer(
      pageSchema(
        projectionSchema(MEMBERSHIP).meta({ id: `${MEMBERSHIP.type}.item` }),
        `${MEMBERSHIP.type}.page`,
      ),
      JSON.parse(membershipsBody(example, baseUrl, { limit: 25 })),
    ),
  }),
});

export const ACCOUNT_MEMBER_OPERATIONS: readonly Operation<SignInDeps>[] = [
  listOperation(ACCOUNT_MEMBER),
  getOperation(ACCOUNT_MEMBER),
  listOperation(ACCOUNT),
  getOperation(ACCOUNT),
  LIST_MEMBERSHIPS,
];
