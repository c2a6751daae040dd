import type { Uuid } from '../../model/id.ts';
import { createAuditEntry } from '../../model/log/audit_entry.ts';
import type { Principal } from '../../model/principal.ts';
import { ancestry, type Key } from '../../model/resource.ts';
import { passwordProfileInfo, user } from '../../model/resources.ts';
import { foldedKey } from '../../model/text/folded_key.ts';
import type { SignInName } from '../../sign_in/credentials.ts';
import { EXAMPLE_AT, exampleIdOf } from '../openapi/examples.ts';
import { pathParameters } from '../openapi/parameters.ts';
import { jsonAnswer, NOT_STORED } from '../openapi/responses.ts';
import { link, timestampSchema } from '../openapi/schemas.ts';
import type { Call } from '../pipeline/call.ts';
import { collectionLinks, itemPattern, parameterNames } from '../pipeline/links.ts';
import type { Operation } from '../pipeline/operation.ts';
import { DONE, documentReply, NOT_FOUND_REPLY } from '../server/reply.ts';
import type { SignInDeps } from './password_request.ts';
import { instant, type ProjectedMembers, projectionSchema, projector } from './projection.ts';

/** Whether attempts to sign in to a password link are throttled (docs/decisions/0024-sign-in-by-password.md#budgets). */
const TYPE = 'sign_in_throttle';
const PATH = `/v2${itemPattern(passwordProfileInfo)}/sign-in-throttle`;

/** How the calls of both operations are admitted. */
const ADMISSION = { access: { scope: `${user.scope}:write` }, work: 'get', locates: 'key' } as const;

/** The name that signs in with the link of a call; undefined if there is no such link. */
async function nameOf({ key }: Call, { store }: SignInDeps): Promise<SignInName | undefined> {
  const [realmId] = key as Key;
  const record = await store.get(passwordProfileInfo, key as Key);
  if (!record) return undefined;
  const profileId = record.password_profile_id as Uuid;
  return { realmId, profileId, usernameKey: foldedKey(String(record.username)) };
}

function selfOf(baseUrl: string): (key: Key) => string {
  const collectionOf = collectionLinks(ancestry(passwordProfileInfo), baseUrl);
  return (key) => `${collectionOf(key)}/${key.at(-1)}/sign-in-throttle`;
}

const THROTTLE: ProjectedMembers<{ readonly until: number | undefined; readonly self: string }> = {
  data: {
    type: TYPE,
    throttled_until: instant(
      ({ until }) => until,
      timestampSchema.nullable().meta({
        description:
          'Until when attempts without a device token are not checked, because too many passwords were wrong; null if they are checked.',
      }),
    ),
  },
  links: { self: link },
};
const bodyOf = projector(THROTTLE);

const shared = {
  tag: passwordProfileInfo.name,
  isExtension: true,
  path: pathParameters(passwordProfileInfo, parameterNames(PATH)),
  headers: ['X-Request-Id'],
} as const;

export const SIGN_IN_THROTTLE_OPERATIONS: readonly Operation<SignInDeps>[] = [
  {
    name: 'get-sign-in-throttle',
    method: 'GET',
    path: PATH,
    ...ADMISSION,
    handle(deps) {
      const linkOf = selfOf(deps.baseUrl);
      return async (call) => {
        const name = await nameOf(call, deps);
        if (!name) return NOT_FOUND_REPLY;
        const until = await deps.signIn.budgets.throttledUntil(name);
        return documentReply(bodyOf({ until, self: linkOf(call.key as Key) }), 'no-store');
      };
    },
    document: ({ baseUrl }) => ({
      ...shared,
      summary: 'Get whether attempts to sign in to a password link are throttled.',
      success: jsonAnswer(
        'Until when.',
        NOT_STORED,
        projectionSchema(THROTTLE).meta({ id: TYPE }),
        bodyOf({
          until: EXAMPLE_AT,
          self: selfOf(baseUrl)(ancestry(passwordProfileInfo).map(exampleIdOf) as never),
        }),
      ),
    }),
  },
  {
    name: 'lift-sign-in-throttle',
    method: 'POST',
    path: `${PATH}/lift`,
    ...ADMISSION,
    handle: (deps) => async (call) => {
      const name = await nameOf(call, deps);
      if (!name) return NOT_FOUND_REPLY;
      const [realmId, userId, object] = call.key as readonly [Uuid, Uuid, Uuid];
      const { clientId: actor } = call.principal as Principal;
      const caller = { actor, address: call.address(), requestId: call.requestId };
      const fields = { id: deps.clock.mintId(), realm: realmId, user: userId, object, detail: {} };
      await deps.signIn.log([createAuditEntry('sign-in.throttle-lifted', fields, { ...deps.clock, caller })]);
      await deps.signIn.budgets.refill(name);
      return DONE;
    },
    document: () => ({
      ...shared,
      summary: 'Have attempts to sign in to a password link checked again.',
      success: { status: 204, description: 'All its wrong passwords are forgotten.' },
    }),
  },
];
