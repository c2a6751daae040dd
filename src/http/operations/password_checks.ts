import { z } from 'zod';
import type { Uuid } from '../../model/id.ts';
import type { Key } from '../../model/resource.ts';
import { passwordProfile, passwordProfileInfo, user } from '../../model/resources.ts';
import type { Credential } from '../../sign_in/store/credentials.ts';
import { exampleIdOf } from '../openapi/examples.ts';
import { pathParameters } from '../openapi/parameters.ts';
import { HEADERS, jsonContent } from '../openapi/responses.ts';
import { dataBody, idSchema } from '../openapi/schemas.ts';
import { itemPattern, parameterNames } from '../pipeline/links.ts';
import type { Operation } from '../pipeline/operation.ts';
import { readData } from '../pipeline/reading.ts';
import { documentReply, NOT_FOUND_REPLY } from '../server/reply.ts';
import { checkPassword, readEndUserAddress, SIGN_IN_SCOPE, type SignInDeps } from './password_request.ts';
import { DEVICE_EXAMPLE, signInParameters } from './password_schemas.ts';
import { type ProjectedMembers, projectionSchema, projector } from './projection.ts';

/** Checks a password of any realm, for callers with sessions of their own (docs/wire.md#password-checks). No token is issued. */
const TYPE = 'password_check';
const PATH = `/v2${itemPattern(passwordProfile)}/check`;

const filled = () => z.string().min(1, 'must not be empty');
const request = z.object({ type: z.literal(TYPE), username: filled(), password: filled() });

const UNVERIFIED = documentReply({ data: { type: TYPE, verified: false } }, 'no-store');

type Verified = Pick<Credential, 'userId' | 'infoId'> & { readonly deviceToken: string };

const RELATED: ProjectedMembers<Verified> = {
  [user.type]: { data: { id: [idSchema, ({ userId }) => userId], type: user.type } },
  [passwordProfileInfo.type]: {
    data: { id: [idSchema, ({ infoId }) => infoId], type: passwordProfileInfo.type },
  },
};
const VERIFIED: ProjectedMembers<Verified> = {
  data: {
    type: TYPE,
    verified: [z.boolean().meta({ description: 'Without the other members if it is false.' }), () => true],
    device: [
      z
        .string()
        .optional()
        .meta({ description: 'A device token, for `Authrealm-Device` of later checks on this device.' }),
      ({ deviceToken }) => deviceToken,
    ],
    relationships: [projectionSchema(RELATED).optional(), projector(RELATED)],
  },
};
const verifiedBody = projector(VERIFIED);

export const CHECK_PASSWORD: Operation<SignInDeps> = {
  name: 'check-password',
  method: 'POST',
  path: PATH,
  // By its ID alone a client signs in with the token call only: docs/guides/clients-and-tokens.md#storefronts.
  access: { scope: SIGN_IN_SCOPE, needs: 'the secret of the client' },
  work: 'get',
  locates: 'key',
  body: 'json',
  handle: (deps) => async (call) => {
    readEndUserAddress(call);
    if (!(await deps.store.get(passwordProfile, call.key as Key))) return NOT_FOUND_REPLY;
    const { username, password } = readData(request, call.body ?? '');
    const [realmId, profileId] = call.key as Key;
    const given = { realmId, profileId: profileId as Uuid, username, password };
    const checked = await checkPassword(call, TYPE, given, deps);
    if ('status' in checked) return checked;
    if (checked.kind === 'wrong') return UNVERIFIED;
    const { credential, deviceToken } = checked;
    return documentReply(verifiedBody({ ...credential, deviceToken }), 'no-store');
  },
  document: () => ({
    summary: 'Check the password of a username.',
    description: 'Not with a token by the ID of a client alone.',
    tag: passwordProfile.name,
    isExtension: true,
    path: pathParameters(passwordProfile, parameterNames(PATH)),
    headers: ['X-Request-Id'],
    ownHeaders: signInParameters(),
    body: dataBody(`${TYPE}.request`, request, {
      type: TYPE,
      username: 'jane@example.com',
      password: 'correct horse battery staple',
    }),
    success: {
      status: 200,
      description: 'Whether the password is right. An unknown username is answered as a wrong password.',
      headers: { 'Cache-Control': HEADERS.noStore },
      content: jsonContent(
        projectionSchema(VERIFIED).meta({ id: TYPE }),
        verifiedBody({
          userId: exampleIdOf(user),
          infoId: exampleIdOf(passwordProfileInfo),
          deviceToken: DEVICE_EXAMPLE,
        }),
      ),
    },
    faults: ['invalid_query'],
  }),
};
