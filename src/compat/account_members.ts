import { z } from 'zod';
import { exampleIdOf } from '../http/openapi/examples.ts';
import { listParameters, offsetParameters } from '../http/openapi/parameters.ts';
import { header, jsonContent } from '../http/openapi/responses.ts';
import { idSchema, link, outputMember, pageSchema } from '../http/openapi/schemas.ts';
import { NO_FILTER, pageOf, shortListBody } from '../http/operations/lists.ts';
import type { SignInDeps } from '../http/operations/password_request.ts';
import { END_USER_ADDRESS, readEndUserAddress, SIGN_IN_SCOPE } from '../http/operations/password_request.ts';
import { accountTokenParameter, endUserAddressParameter } from '../http/operations/password_schemas.ts';
import {
  instant,
  type ProjectedMembers,
  type Projection,
  projectionSchema,
  projector,
} from '../http/operations/projection.ts';
import { pageAnswer } from '../http/operations/record_operation.ts';
import type { Call } from '../http/pipeline/call.ts';
import type { Documentation, Operation } from '../http/pipeline/operation.ts';
import { listBody } from '../http/pipeline/paging.ts';
import { RECORD_CACHING, recordReply } from '../http/pipeline/pipeline.ts';
import { readQuery } from '../http/pipeline/query.ts';
import { documentReply, NOT_FOUND_REPLY, type Reply } from '../http/server/reply.ts';
import { accountSettingsOf } from '../model/account_settings.ts';
import { parseFilter } from '../model/filter/filter.ts';
import { parseUuid, type Uuid } from '../model/id.ts';
import { LIMITS } from '../model/limits.ts';
import type { Principal } from '../model/principal.ts';
import { type AnyRecord, shownMembers } from '../model/resource.ts';
import { user } from '../model/resources.ts';
import type { Store } from '../model/store.ts';
import type { PresetOrigin } from '../records/presets.ts';
import { ACCOUNT_TOKEN, refuseAccountToken } from './account_tokens.ts';
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
  readonly members: ProjectedMembers<Shown>;
}

/** A user of the account realm, and the base URL of its links. */
interface Shown {
  readonly record: AnyRecord;
  readonly baseUrl: string;
}

/** The members that an account member has in common with its user. */
const MEMBERS = shownMembers(user).filter(
  ({ annotation: { within, omittedIf } }) => within === undefined && omittedIf === undefined,
);

const ACCOUNT_MEMBER: UserForm = {
  type: 'account_member',
  collection: '/v2/account-members',
  parameter: 'member_id',
  isAccount: false,
  members: Object.fromEntries(
    MEMBERS.map((member) => [
      member.name,
      [outputMember(member), ({ record }) => record[member.name] ?? null],
    ]),
  ),
};

const NAME: Projection<Shown> = [z.string(), ({ record }) => record.name];

const ACCOUNT: UserForm = {
  type: 'account',
  collection: '/v2/accounts',
  parameter: 'account_id',
  isAccount: true,
  members: { name: NAME, legal_name: NAME, registration_id: null, external_ref: null, parent_id: null },
};

const nounOf = ({ type }: UserForm) => type.replace('_', ' ');

const ID: Projection<Shown> = [idSchema, ({ record }) => record.id];
const META: ProjectedMembers<Shown> = {
  timestamps: {
    created_at: instant(({ record }) => record.created_at),
    updated_at: instant(({ record }) => record.updated_at),
  },
};

/** A user by itself; the members of an item of a list are its data and links. */
const formOf = ({ type, collection, members }: UserForm) => ({
  data: { id: ID, type, ...members, meta: META },
  links: { self: [link, ({ record, baseUrl }: Shown) => `${baseUrl}${collection}/${record.id}`] as const },
});

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
  readonly answer: (call: Call, visible: Visible, deps: SignInDeps) => Promise<Reply>;
  readonly document: (example: Shown) => Omit<Documentation, 'tag'>;
}

function formOperation({ name, path, answer, document }: FormDescription): Operation<SignInDeps> {
  return {
    name,
    method: 'GET',
    path,
    access: { anyScope: [SCOPE, SIGN_IN_SCOPE] },
    work: 'get',
    handle: (deps) => async (call) => {
      const visible = await visibleTo(call, deps);
      if ('status' in visible) return visible;
      const reply = await answer(call, visible, deps);
      // A cache does not know that the answer depends on the account token.
      return visible.own === undefined ? reply : { ...reply, headers: { ...reply.headers, ...NO_STORE } };
    },
    document: ({ baseUrl, examples }) => {
      const { faults = [], ...documented } = document({ record: examples.stored(user), baseUrl });
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

function listOperation(form: UserForm): Operation<SignInDeps> {
  const { data, links } = formOf(form);
  const item = { ...data, links };
  const project = projector(item);
  return formOperation({
    name: `list-${form.collection.slice('/v2/'.length)}`,
    path: form.collection,
    async answer(call, visible, { store, baseUrl }) {
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
      const items = listed.items.map(({ record }) => JSON.stringify(project({ record, baseUrl }))).join();
      const address = { url: `${baseUrl}${form.collection}`, carried };
      return recordReply(call, listBody(items, { listed, page, sort, address }));
    },
    document(example) {
      const page = { url: `${example.baseUrl}${form.collection}`, total: 1, limit: 25 };
      const schema = pageSchema(
        projectionSchema(item).meta({ id: `${form.type}.item` }),
        `${form.type}.page`,
      );
      return {
        summary: `List the users of the account realm as ${nounOf(form)}s, newest first; with an account token, the one that it names.`,
        query: listParameters(user),
        success: pageAnswer(schema, JSON.parse(shortListBody([project(example)], page))),
        faults: ['malformed_filter'],
      };
    },
  });
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

function getOperation(form: UserForm): Operation<SignInDeps> {
  const single = formOf(form);
  const project = projector(single);
  return formOperation({
    name: `get-${form.type.replace('_', '-')}`,
    path: `${form.collection}/:${form.parameter}`,
    async answer(call, visible, { store, baseUrl }) {
      const record = await userOf(form, call, { visible, store });
      return record ? documentReply(project({ record, baseUrl }), RECORD_CACHING) : NOT_FOUND_REPLY;
    },
    document: (example) => ({
      summary: `Get a user of the account realm as an ${nounOf(form)}; with an account token, only the one that it names.`,
      path: pathOf(form),
      success: {
        status: 200,
        description: `The ${nounOf(form)}.`,
        headers: { 'Cache-Control': cacheControl },
        content: jsonContent(projectionSchema(single).meta({ id: form.type }), project(example)),
      },
    }),
  });
}

const MEMBERSHIP: ProjectedMembers<Shown> = {
  id: ID,
  type: 'account_membership',
  relationships: { account_member: { data: { id: ID, type: ACCOUNT_MEMBER.type } } },
  meta: META,
};
const projectMembership = projector(MEMBERSHIP);

function membershipsBody(
  shown: Shown,
  page: { readonly limit: number; readonly offset?: number | undefined },
) {
  const url = `${shown.baseUrl}${ACCOUNT.collection}/${shown.record.id}/account-memberships`;
  const items = page.offset ? [] : [projectMembership(shown)];
  return shortListBody(items, { url, total: 1, ...page });
}

/** The one membership of an account is that of its user, and has the same ID. */
const LIST_MEMBERSHIPS = formOperation({
  name: 'list-account-memberships',
  path: `${ACCOUNT.collection}/:${ACCOUNT.parameter}/account-memberships`,
  async answer(call, visible, { store, baseUrl }) {
    const { limit = LIMITS.pageRecordsDefault, offset } = readQuery(call.request.url);
    const record = await userOf(ACCOUNT, call, { visible, store });
    if (!record) return NOT_FOUND_REPLY;
    return recordReply(call, membershipsBody({ record, baseUrl }, { limit, offset }));
  },
  document: (example) => ({
    summary: 'List the memberships of an account: the one of its user.',
    path: pathOf(ACCOUNT),
    query: offsetParameters(),
    success: pageAnswer(
      pageSchema(
        projectionSchema(MEMBERSHIP).meta({ id: 'account_membership.item' }),
        'account_membership.page',
      ),
      JSON.parse(membershipsBody(example, { limit: 25 })),
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
