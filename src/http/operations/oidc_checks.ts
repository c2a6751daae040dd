import { z } from 'zod';
import type { Uuid } from '../../model/id.ts';
import type { Key } from '../../model/resource.ts';
import { oidcProfile, oidcProfileInfo, realm, user } from '../../model/resources.ts';
import { filledText, identifier } from '../../model/rule.ts';
import type { LinkedIdentity } from '../../records/identity_linking.ts';
import { exampleIdOf } from '../openapi/examples.ts';
import { pathParameters } from '../openapi/parameters.ts';
import { dataBody } from '../openapi/schemas.ts';
import { itemPattern, parameterNames } from '../pipeline/links.ts';
import type { Operation } from '../pipeline/operation.ts';
import { refuseWithout } from '../pipeline/pipeline.ts';
import { readData } from '../pipeline/reading.ts';
import { NOT_FOUND_REPLY } from '../server/reply.ts';
import { checkAnswer } from './check_answer.ts';
import { type OidcDeps, signInThroughProvider } from './oidc_request.ts';
import { END_USER_ADDRESS, readEndUserAddress, SIGN_IN_SCOPE, SIGN_UP_SCOPE } from './password_request.ts';
import { endUserAddressParameter } from './password_schemas.ts';
import { requestContext } from './record_writes.ts';

/** Checks an ID token in any realm, for native apps and callers with sessions of their own (docs/wire.md#oidc-checks). No token is issued. */
const TYPE = 'oidc_check';
const PATH = `/v2${itemPattern(oidcProfile)}/check`;

const request = z.object({
  type: z.literal(TYPE),
  id_token: filledText(),
  nonce: filledText().optional(),
  user_authentication_info_id: identifier('a user').optional(),
});

const ANSWER = checkAnswer<LinkedIdentity>(TYPE, oidcProfileInfo, {
  outcome: [z.enum(['known', 'linked', 'created']).optional(), ({ outcome }) => outcome],
});

export const CHECK_ID_TOKEN: Operation<OidcDeps> = {
  name: 'check-id-token',
  method: 'POST',
  path: PATH,
  access: { scope: SIGN_IN_SCOPE, needs: 'the secret of the client' },
  work: 'get',
  locates: 'key',
  body: 'json',
  handle: (deps) => async (call) => {
    readEndUserAddress(call);
    const { store, oidc } = deps;
    const [realmId, profileId] = call.key as readonly [Uuid, Uuid];
    const [place, profile] = [
      await store.get(realm, [realmId]),
      await store.get(oidcProfile, call.key as Key),
    ];
    if (!place || !profile) return NOT_FOUND_REPLY;
    const {
      id_token: idToken,
      nonce,
      user_authentication_info_id: userId,
    } = readData(request, call.body ?? '');
    // With this scope the caller may create the same link; a sign-up scope alone would own every account.
    const refused = userId && refuseWithout(call, [`${oidcProfileInfo.scope}:write`]);
    if (refused) return refused;
    const { issuer, client_id: clientId } = profile;
    const mayCreate = call.principal?.scopes.has(SIGN_UP_SCOPE) ?? false;
    const by = requestContext(call);
    const signedIn = await signInThroughProvider(
      call,
      {
        ...{ mechanism: 'oidc_check', realmId, profileId },
        identify: () => oidc.providers.identifyByToken({ issuer, clientId, idToken, nonce }),
        link: (identity) =>
          userId
            ? oidc.linking.linkTo(identity, { realm: place, profileId, userId }, by)
            : oidc.linking.link(identity, { realm: place, profileId, mayCreate }, by),
      },
      deps,
    );
    if (signedIn === 'refused') return ANSWER.unverified;
    return 'status' in signedIn ? signedIn : ANSWER.verified(signedIn);
  },
  document: () => ({
    summary: 'Check an ID token, and find or create the user that it is about.',
    description:
      'Not with a token by the ID of a client alone. A user or link is created only with the scope `sign-up`; with ' +
      '`user_authentication_info_id` the identity is linked to that user, which needs `oidc-profile-infos:write` instead.',
    tag: oidcProfile.name,
    isExtension: true,
    furtherScopes: [SIGN_UP_SCOPE, `${oidcProfileInfo.scope}:write`],
    path: pathParameters(oidcProfile, parameterNames(PATH)),
    headers: ['X-Request-Id'],
    ownHeaders: { [END_USER_ADDRESS]: endUserAddressParameter() },
    body: dataBody(`${TYPE}.request`, request, {
      type: TYPE,
      id_token: 'eyJhbGciOiJSUzI1NiJ9.e30.c2lnbmF0dXJl',
      nonce: 'n-0S6_WzA2Mj',
    }),
    success: ANSWER.success('Whether the ID token is valid and names a user of the realm.', {
      ...{ outcome: 'known', userId: exampleIdOf(user), infoId: exampleIdOf(oidcProfileInfo) },
      revision: '' as LinkedIdentity['revision'],
    }),
    faults: ['invalid_query', 'provider_unavailable'],
  }),
};
