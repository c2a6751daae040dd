import { z } from 'zod';
import { type AccountSettings, accountSettings, accountSettingsOf } from '../../domain/account_settings.ts';
import { Fault } from '../../domain/fault.ts';
import type { AnyRecord } from '../../domain/resource.ts';
import { INSTALLATION } from '../openapi/examples.ts';
import { HEADERS, jsonContent } from '../openapi/responses.ts';
import { idSchema, lazyComponent, link } from '../openapi/schemas.ts';
import type { CallHandler } from '../pipeline/call.ts';
import type { Operation } from '../pipeline/operation.ts';
import { readData } from '../pipeline/reading.ts';
import { faultReply } from '../server/reply.ts';
import { requestContext } from './record_writes.ts';
import {
  accessibleRealm,
  EXAMPLE_REALM,
  realmLink,
  relationship,
  SETTINGS_SCOPE,
  SETTINGS_TAG,
  type SettingsContext,
  type SettingsDeps,
  settingsOperation,
  settingsReply,
} from './settings.ts';

const TYPE = 'account_authentication_settings';
const PATH = '/v2/settings/account-authentication';
const NOT_FOUND = faultReply('not_found');

/** Settings of what this service does not offer. A request may name them with these values. */
const FIXED = { enable_self_signup: false, account_member_self_management: 'disabled' } as const;
const fixedShape = {
  enable_self_signup: z.boolean(),
  account_member_self_management: z.enum(['disabled', 'update_only']),
};

function settingsBody(context: SettingsContext, named: AnyRecord) {
  return {
    data: {
      id: context.installation,
      type: TYPE,
      ...FIXED,
      ...accountSettingsOf(named),
      relationships: { authentication_realm: { data: realmLink(context, named, 'authentication_realm') } },
      meta: { client_id: 'account-management' },
    },
    links: { self: context.baseUrl + PATH },
  };
}

const schema = lazyComponent(() =>
  z
    .strictObject({
      data: z.strictObject({
        id: idSchema,
        type: z.literal(TYPE),
        ...fixedShape,
        ...accountSettings().shape,
        relationships: z.strictObject({ authentication_realm: relationship('authentication_realm') }),
        meta: z.strictObject({ client_id: z.literal('account-management') }),
      }),
      links: z.strictObject({ self: link }),
    })
    .meta({ id: TYPE }),
);

const GET_SETTINGS = settingsOperation({
  name: 'get-account-authentication-settings',
  path: PATH,
  summary: 'Get the settings of account members, and their realm.',
  schema,
  content: { origin: TYPE, body: settingsBody },
});

function updateHandler(deps: SettingsDeps): CallHandler {
  const { find, setAccountSettings } = deps.settingsRealms;
  return async (call) => {
    const named = accessibleRealm(call, await find(TYPE));
    if (!named) return NOT_FOUND;
    const changes = changesOf(call.body ?? '');
    const changed = await setAccountSettings(named, changes, requestContext(call));
    return settingsReply(settingsBody(deps, changed));
  };
}

const SETTINGS_CHANGE = z.object({
  type: z.literal(TYPE),
  ...z.object({ ...accountSettings().shape, ...fixedShape }).partial().shape,
});

/** The settings that a request changes. Throws Fault `invalid`, or `conflict` if it would switch on what is not offered. */
function changesOf(body: string): Partial<AccountSettings> {
  const {
    type: _,
    enable_self_signup,
    account_member_self_management,
    ...changes
  } = readData(SETTINGS_CHANGE, body);
  const wanted = { enable_self_signup, account_member_self_management };
  const impossible = (Object.keys(FIXED) as (keyof typeof FIXED)[])
    .filter((name) => wanted[name] !== undefined && wanted[name] !== FIXED[name])
    .map((name) => ({
      field: `data.${name}`,
      rule: `must be ${FIXED[name]}: this service does not offer it`,
    }));
  if (impossible.length > 0) throw new Fault('conflict', impossible);
  // No value of a JSON document is undefined.
  return changes as Partial<AccountSettings>;
}

const UPDATE_SETTINGS: Operation<SettingsDeps> = {
  name: 'update-account-authentication-settings',
  method: 'PUT',
  path: PATH,
  access: { scope: `${SETTINGS_SCOPE}:write` },
  work: 'write',
  body: 'json',
  handle: updateHandler,
  document: ({ baseUrl }) => {
    const example = settingsBody({ baseUrl, installation: INSTALLATION }, EXAMPLE_REALM);
    return {
      summary: 'Change the settings of account members.',
      tag: SETTINGS_TAG,
      body: {
        schema: z.object({ data: SETTINGS_CHANGE }).meta({ id: `${TYPE}.update` }),
        example: { data: { type: TYPE, account_management_authentication_token_timeout_secs: 3_600 } },
      },
      success: {
        status: 200,
        description: 'The settings.',
        headers: { 'Cache-Control': HEADERS.cacheControl },
        content: jsonContent(schema(), example),
      },
      headers: ['X-Request-Id'],
      faults: ['not_found', 'conflict', 'unknown_outcome'],
    };
  },
};

/** The settings of account members (docs/wire.md#settings). */
export const ACCOUNT_SETTINGS_OPERATIONS: readonly Operation<SettingsDeps>[] = [
  GET_SETTINGS,
  UPDATE_SETTINGS,
];
