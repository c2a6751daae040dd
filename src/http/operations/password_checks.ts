import { z } from 'zod';
import type { Uuid } from '../../domain/id.ts';
import type { Key } from '../../domain/resource.ts';
import { passwordProfile, passwordProfileInfo, user } from '../../domain/resources.ts';
import type { Credential } from '../../store/auth/credentials.ts';
import { exampleIdOf } from '../openapi/examples.ts';
import { pathParameters } from '../openapi/parameters.ts';
import { HEADERS, namedExamples } from '../openapi/responses.ts';
import { dataBody, idSchema, lazyComponent } from '../openapi/schemas.ts';
import type { CallHandler } from '../pipeline/call.ts';
import { itemPattern, paramNames } from '../pipeline/links.ts';
import type { Operation } from '../pipeline/operation.ts';
import { readData } from '../pipeline/reading.ts';
import { documentReply, JSON_TYPE, NOT_FOUND_REPLY } from '../server/reply.ts';
import { checkPassword, readEndUserAddress, SIGN_IN_SCOPE, type SignInDeps } from './password_request.ts';
import { DEVICE_EXAMPLE, signInParameters } from './password_schemas.ts';

/** Checks a password of any realm, for callers with sessions of their own (docs/wire.md#password-checks). No token is issued. */
const TYPE = 'password_check';

const filled = () => z.string().min(1, 'must not be empty');
const request = z.object({ type: z.literal(TYPE), username: filled(), password: filled() });

function answer(deps: SignInDeps): CallHandler {
  return async (call) => {
    readEndUserAddress(call);
    if (!(await deps.store.get(passwordProfile, call.key as Key))) return NOT_FOUND_REPLY;
    const { username, password } = readData(request, call.body ?? '');
    const [realmId, profileId] = call.key as Key;
    const given = { realmId, profileId: profileId as Uuid, username, password };
    const checked = await checkPassword(call, TYPE, given, deps);
    if ('status' in checked) return checked;
    if (checked.kind === 'wrong') return UNVERIFIED;
    return documentReply(verifiedBody(checked.credential, checked.deviceToken), 'no-store');
  };
}

const NOT_VERIFIED = { data: { type: TYPE, verified: false } };
const UNVERIFIED = documentReply(NOT_VERIFIED, 'no-store');

type CheckedIds = Pick<Credential, 'userId' | 'infoId'>;

function verifiedBody({ userId, infoId }: CheckedIds, device: string) {
  const related = (id: string, { type }: { readonly type: string }) => ({ data: { id, type } });
  return {
    data: {
      type: TYPE,
      verified: true,
      device,
      relationships: {
        [user.type]: related(userId, user),
        [passwordProfileInfo.type]: related(infoId, passwordProfileInfo),
      },
    },
  };
}

const relation = (type: string) =>
  z.strictObject({ data: z.strictObject({ id: idSchema, type: z.literal(type) }) });

const answerSchema = lazyComponent(() =>
  z
    .strictObject({
      data: z.strictObject({
        type: z.literal(TYPE),
        verified: z.boolean().meta({ description: 'Without the other members if it is false.' }),
        device: z
          .string()
          .optional()
          .meta({ description: 'A device token, for `Authrealm-Device` of later checks on this device.' }),
        relationships: z
          .strictObject({
            [user.type]: relation(user.type),
            [passwordProfileInfo.type]: relation(passwordProfileInfo.type),
          })
          .optional(),
      }),
    })
    .meta({ id: TYPE }),
);

export const CHECK_PASSWORD: Operation<SignInDeps> = {
  name: 'check-password',
  method: 'POST',
  path: `/v2${itemPattern(passwordProfile)}/check`,
  // By its ID alone a client signs in with the token call only: docs/guides/clients-and-tokens.md#storefronts.
  access: { scope: SIGN_IN_SCOPE, needs: 'the secret of the client' },
  work: 'get',
  locates: 'key',
  body: 'json',
  handle: answer,
  document: () => ({
    summary: 'Check the password of a username.',
    description: 'Not with a token by the ID of a client alone.',
    tag: passwordProfile.name,
    isExtension: true,
    path: pathParameters(passwordProfile, paramNames(passwordProfile)),
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
      content: {
        [JSON_TYPE]: {
          schema: answerSchema(),
          examples: namedExamples({
            right: verifiedBody(
              { userId: exampleIdOf(user) as Uuid, infoId: exampleIdOf(passwordProfileInfo) as Uuid },
              DEVICE_EXAMPLE,
            ),
            wrong: NOT_VERIFIED,
          }),
        },
      },
    },
    faults: ['invalid_query'],
  }),
};
