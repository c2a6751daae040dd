import { z } from 'zod';
import type { PresetOrigin } from '../../directory/presets.ts';
import type { SettingsRealms } from '../../directory/settings_realms.ts';
import { LIMITS } from '../../domain/limits.ts';
import { mayAccessRealm, type Principal } from '../../domain/principal.ts';
import type { AnyRecord, RecordOf } from '../../domain/resource.ts';
import { realm } from '../../domain/resources.ts';
import { exampleIdOf, INSTALLATION } from '../openapi/examples.ts';
import { HEADERS, jsonContent } from '../openapi/responses.ts';
import { idSchema, link } from '../openapi/schemas.ts';
import type { Call, CallHandler } from '../pipeline/call.ts';
import { selfLinks } from '../pipeline/links.ts';
import type { Operation } from '../pipeline/operation.ts';
import { RECORD_CACHING, type RecordDeps } from '../pipeline/pipeline.ts';
import { faultReply, JSON_TYPE, type Reply } from '../server/reply.ts';

/** The dependencies of settings. */
export interface SettingsDeps extends RecordDeps {
  readonly settingsRealms: SettingsRealms;
}

/** `settings:read` permits reading settings, `settings:write` changing them. */
export const SETTINGS_SCOPE = 'settings';
export const SETTINGS_TAG = 'settings';

export type SettingsContext = Pick<SettingsDeps, 'baseUrl' | 'installation'>;

/** A read of settings, described once. */
export interface SettingsDescription {
  readonly name: string;
  readonly path: string;
  readonly summary: string;
  readonly schema: () => z.ZodType;
  /** A parameter of the path that must be the ID of the installation (404). */
  readonly installationParameter?: string;
  readonly content: RealmSettings | OwnSettings;
}

export interface RealmSettings {
  /** The realm that the settings name, which the caller must be permitted to access (404). */
  readonly origin: PresetOrigin;
  readonly body: (place: SettingsContext, named: AnyRecord) => object;
}

/** Settings that name no realm. */
interface OwnSettings {
  readonly origin?: undefined;
  readonly body: (place: SettingsContext) => object;
}

const NOT_FOUND = faultReply('not_found');

export function settingsOperation(described: SettingsDescription): Operation<SettingsDeps> {
  const { name, path, summary, schema, installationParameter: parameter, content } = described;
  return {
    name,
    method: 'GET',
    path,
    access: { scope: `${SETTINGS_SCOPE}:read` },
    work: 'get',
    handle: (deps) => settingsHandler(described, deps),
    document: ({ baseUrl }) => ({
      summary,
      tag: SETTINGS_TAG,
      ...(parameter ? { path: z.object({ [parameter]: installationId() }) } : {}),
      success: {
        status: 200,
        description: 'The settings.',
        headers: { 'Cache-Control': HEADERS.cacheControl },
        content: jsonContent(schema(), content.body({ baseUrl, installation: INSTALLATION }, EXAMPLE_REALM)),
      },
      faults: content.origin || parameter ? ['not_found'] : [],
      headers: ['X-Request-Id'],
    }),
  };
}

function settingsHandler(described: SettingsDescription, deps: SettingsDeps): CallHandler {
  const { installationParameter: parameter, content } = described;
  return async (call) => {
    if (parameter && call.params[parameter]?.toLowerCase() !== deps.installation) return NOT_FOUND;
    if (!content.origin) return settingsReply(content.body(deps));
    const named = accessibleRealm(call, await deps.settingsRealms.find(content.origin));
    return named ? settingsReply(content.body(deps, named)) : NOT_FOUND;
  };
}

/** The realm, unless the caller may not access it. */
export function accessibleRealm<R extends Pick<AnyRecord, 'id'>>(
  call: Call,
  named: R | undefined,
): R | undefined {
  if (!named || mayAccessRealm(call.principal as Principal, named.id)) return named;
  call.refused = 'realm outside the list';
  return undefined;
}

export function settingsReply(body: object): Reply {
  const headers = { 'Content-Type': JSON_TYPE, 'Cache-Control': RECORD_CACHING };
  return { status: 200, headers, body: JSON.stringify(body) };
}

/** The realm of every example in the OpenAPI document. */
export const EXAMPLE_REALM = {
  id: exampleIdOf(realm),
  duplicate_email_policy: 'allowed',
} as Partial<RecordOf<typeof realm>> as AnyRecord;

function installationId() {
  return idSchema.meta({ param: { description: 'The ID of the installation.', example: INSTALLATION } });
}

const CUSTOMER_TYPE = 'customer-authentication-settings';

const CUSTOMER_SETTINGS: SettingsDescription = {
  name: 'get-customer-authentication-settings',
  path: '/v2/settings/customer-authentication',
  summary: 'Get the realm of customers.',
  schema: () =>
    z
      .strictObject({
        data: z.strictObject({
          id: idSchema,
          type: z.literal(CUSTOMER_TYPE),
          relationships: z.strictObject({
            'authentication-realm': relationship('authentication-realm', {
              duplicate_email_policy: z.enum(['allowed', 'api_only']),
            }),
          }),
          meta: z.strictObject({ client_id: z.literal('customers') }),
        }),
      })
      .meta({ id: CUSTOMER_TYPE }),
  content: {
    origin: CUSTOMER_TYPE,
    body: (place, named) => ({
      data: {
        id: place.installation,
        type: CUSTOMER_TYPE,
        relationships: {
          'authentication-realm': {
            data: {
              ...realmLink(place, named, 'authentication-realm'),
              duplicate_email_policy: named.duplicate_email_policy,
            },
          },
        },
        meta: { client_id: 'customers' },
      },
    }),
  },
};

/** A relationship with a realm. The two settings spell its type differently (docs/wire.md#settings). */
export function relationship(type: string, more: z.ZodRawShape = {}) {
  const data = { id: idSchema, type: z.literal(type), links: z.strictObject({ self: link }), ...more };
  return z.strictObject({ data: z.strictObject(data) });
}

export function realmLink({ baseUrl }: SettingsContext, { id }: AnyRecord, type: string) {
  return { id, type, links: { self: selfLinks(realm, baseUrl)([id]) } };
}

const GENERAL_SETTINGS: SettingsDescription = {
  name: 'get-settings',
  path: '/v2/settings',
  summary: 'Get the ID of the installation, which stands for that of a store, and the default page length.',
  schema: () =>
    z
      .strictObject({
        data: z.strictObject({ id: idSchema, type: z.literal('settings'), page_length: z.int() }),
        links: z.strictObject({ self: link }),
      })
      .meta({ id: 'settings' }),
  content: {
    body: ({ baseUrl, installation }) => ({
      data: { id: installation, type: 'settings', page_length: LIMITS.pageRecordsDefault },
      links: { self: `${baseUrl}/v2/settings` },
    }),
  },
};

const STORES = '/v2/stores';
const links = () => z.strictObject({ self: link });
const storeShape = { id: idSchema, type: z.literal('store'), name: z.literal('authrealm') };
const storeOf = ({ installation }: SettingsContext) => ({
  id: installation,
  type: 'store',
  name: 'authrealm',
});
const storeLinks = ({ baseUrl, installation }: SettingsContext) => ({
  self: `${baseUrl}${STORES}/${installation}`,
});

const LIST_STORES: SettingsDescription = {
  name: 'list-stores',
  path: STORES,
  summary: 'List the one store: the installation.',
  schema: () =>
    z
      .strictObject({
        data: z.array(z.strictObject({ ...storeShape, links: links() })),
        links: links(),
      })
      .meta({ id: 'store.page' }),
  content: {
    body: (place) => ({
      data: [{ ...storeOf(place), links: storeLinks(place) }],
      links: { self: `${place.baseUrl}${STORES}` },
    }),
  },
};

const STORE: SettingsDescription = {
  name: 'get-store',
  path: `${STORES}/:store_id`,
  summary: 'Get the installation as a store.',
  installationParameter: 'store_id',
  schema: () => z.strictObject({ data: z.strictObject(storeShape), links: links() }).meta({ id: 'store' }),
  content: { body: (place) => ({ data: storeOf(place), links: storeLinks(place) }) },
};

/** What clients read before anything else: which realm is for whom, and the ID of the store. */
export const SETTINGS_OPERATIONS: readonly Operation<SettingsDeps>[] = [
  CUSTOMER_SETTINGS,
  GENERAL_SETTINGS,
  LIST_STORES,
  STORE,
].map(settingsOperation);
