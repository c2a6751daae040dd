import { z } from 'zod';
import type { Uuid } from '../../model/id.ts';
import type { Key } from '../../model/resource.ts';
import { passwordProfile, passwordProfileInfo, user } from '../../model/resources.ts';
import { filledText } from '../../model/rule.ts';
import type { Credential } from '../../sign_in/store/credentials.ts';
import { exampleIdOf } from '../openapi/examples.ts';
import { pathParameters } from '../openapi/parameters.ts';
import { dataBody } from '../openapi/schemas.ts';
import { itemPattern, parameterNames } from '../pipeline/links.ts';
import type { Operation } from '../pipeline/operation.ts';
import { readData } from '../pipeline/reading.ts';
import { NOT_FOUND_REPLY } from '../server/reply.ts';
import { checkAnswer } from './check_answer.ts';
import { checkPassword, readEndUserAddress, SIGN_IN_SCOPE, type SignInDeps } from './password_request.ts';
import { DEVICE_EXAMPLE, signInParameters } from './password_schemas.ts';

/** Checks a password of any realm, for callers with sessions of their own (docs/wire.md#password-checks). No token is issued. */
const TYPE = 'password_check';
const PATH = `/v2${itemPattern(passwordProfile)}/check`;

const request = z.object({ type: z.literal(TYPE), username: filledText(), password: filledText() });

type Verified = Pick<Credential, 'userId' | 'infoId'> & { readonly deviceToken: string };

const ANSWER = checkAnswer<Verified>(TYPE, passwordProfileInfo, {
  device: [
    z
      .string()
      .optional()
      .meta({ description: 'A device token, for `Authrealm-Device` of later checks on this device.' }),
    ({ deviceToken }) => deviceToken,
  ],
});

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
    if (checked.kind === 'wrong') return ANSWER.unverified;
    const { credential, deviceToken } = checked;
    return ANSWER.verified({ ...credential, deviceToken });
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
    success: ANSWER.success(
      'Whether the password is right. An unknown username is answered as a wrong password.',
      {
        userId: exampleIdOf(user),
        infoId: exampleIdOf(passwordProfileInfo),
        deviceToken: DEVICE_EXAMPLE,
      },
    ),
    faults: ['invalid_query'],
  }),
};
