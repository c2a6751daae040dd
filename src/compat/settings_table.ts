import { z } from 'zod';
import { idSchema, link } from '../http/openapi/schemas.ts';
import { projectionSchema, projector } from '../http/operations/projection.ts';
import { selfLinks } from '../http/pipeline/links.ts';
import { checkData } from '../http/pipeline/reading.ts';
import { type AccountSettings, accountSettings, accountSettingsOf } from '../model/account_settings.ts';
import { conflict, Fault, type FieldError } from '../model/fault.ts';
import { LIMITS } from '../model/limits.ts';
import { mappingPrefix } from '../model/mapping_prefix.ts';
import { realm } from '../model/resources.ts';
import { violatedRule } from '../model/rule.ts';
import { type SettingsProjection, type SettingsRow, type Shown, settingsOperations } from './settings.ts';

const INSTALLATION_ID: SettingsProjection = [idSchema, ({ installation }) => installation];
const RECORD_ID: SettingsProjection = [idSchema, ({ record }) => record.id];

/** `links`, with the URL of a path. */
const selfAt = (pathOf: (of: Shown) => string): SettingsProjection => ({
  self: [link, (of) => of.baseUrl + pathOf(of)],
});

/** The realm, as a relationship. The two settings spell its type differently (docs/wire.md#settings). */
const realmAs = (type: string) => ({
  id: RECORD_ID,
  type,
  links: { self: [link, ({ baseUrl, record }: Shown) => selfLinks(realm, baseUrl)([record.id])] } as const,
});

const ACCOUNT_TYPE = 'account_authentication_settings';
const ACCOUNT_PATH = '/v2/settings/account-authentication';

const changeable = accountSettings().shape;
const accountChange = z.object({ type: z.literal(ACCOUNT_TYPE), ...accountSettings().partial().shape });

/** The settings as they are stored with the realm, or their defaults. */
const stored = (name: keyof AccountSettings): SettingsProjection => [
  changeable[name],
  ({ record }) => accountSettingsOf(record)[name],
];

const ACCOUNT_SETTINGS: SettingsRow = {
  name: 'get-account-authentication-settings',
  path: ACCOUNT_PATH,
  summary: 'Get the settings of account members, and their realm.',
  source: ACCOUNT_TYPE,
  component: { id: ACCOUNT_TYPE },
  body: {
    data: {
      id: INSTALLATION_ID,
      type: ACCOUNT_TYPE,
      enable_self_signup: stored('enable_self_signup'),
      account_member_self_management: stored('account_member_self_management'),
      auto_create_account_for_account_members: stored('auto_create_account_for_account_members'),
      account_management_authentication_token_timeout_secs: stored(
        'account_management_authentication_token_timeout_secs',
      ),
      relationships: { authentication_realm: { data: realmAs('authentication_realm') } },
      meta: { client_id: 'account-management' },
    },
    links: selfAt(() => ACCOUNT_PATH),
  },
  change: {
    name: 'update-account-authentication-settings',
    summary: 'Change the settings of account members.',
    data: accountChange,
    example: { type: ACCOUNT_TYPE, account_management_authentication_token_timeout_secs: 3_600 },
    faults: ['conflict'],
    read(data) {
      const { type: _, ...changes } = checkData(accountChange, data);
      assertOffered(changes);
      return (record) => ({ account_settings: { ...accountSettingsOf(record), ...changes } });
    },
  },
};

/**
 * Throws Fault `conflict` if members should manage themselves, which does not exist. Set-up tools send this together with
 * `enable_self_signup`: then it is stored, and has no effect.
 */
function assertOffered({
  enable_self_signup,
  account_member_self_management: management,
}: Omit<z.output<typeof accountChange>, 'type'>): void {
  if (enable_self_signup === undefined && management === 'update_only')
    throw conflict('data.account_member_self_management', 'must be disabled: this service does not offer it');
}

const CUSTOMER_TYPE = 'customer-authentication-settings';

const CUSTOMER_SETTINGS: SettingsRow = {
  name: 'get-customer-authentication-settings',
  path: '/v2/settings/customer-authentication',
  summary: 'Get the realm of customers.',
  source: CUSTOMER_TYPE,
  component: { id: CUSTOMER_TYPE },
  body: {
    data: {
      id: INSTALLATION_ID,
      type: CUSTOMER_TYPE,
      relationships: {
        'authentication-realm': {
          data: {
            ...realmAs('authentication-realm'),
            duplicate_email_policy: [
              z.enum(['allowed', 'api_only']),
              ({ record }) => record.duplicate_email_policy,
            ],
          },
        },
      },
      meta: { client_id: 'customers' },
    },
  },
};

const GENERAL_SETTINGS: SettingsRow = {
  name: 'get-settings',
  path: '/v2/settings',
  summary: 'Get the ID of the installation, which stands for that of a store, and the default page length.',
  source: 'installation',
  component: { id: 'settings' },
  body: {
    data: {
      id: INSTALLATION_ID,
      type: 'settings',
      page_length: [z.int(), () => LIMITS.pageRecordsDefault],
    },
    links: selfAt(() => '/v2/settings'),
  },
};

const STORES = '/v2/stores';
const storeMembers = { id: INSTALLATION_ID, type: 'store', name: 'authrealm' };
const storeLinks = selfAt(({ installation }) => `${STORES}/${installation}`);
const storeItem = { ...storeMembers, links: storeLinks };
const projectStore = projector<Shown>(storeItem);

const STORE_LIST: SettingsRow = {
  name: 'list-stores',
  path: STORES,
  summary: 'List the one store: the installation.',
  source: 'installation',
  component: { id: 'store.page' },
  body: {
    data: [z.array(projectionSchema(storeItem)), (of) => [projectStore(of)]],
    links: selfAt(() => STORES),
  },
};

const STORE: SettingsRow = {
  name: 'get-store',
  path: `${STORES}/:store_id`,
  summary: 'Get the installation as a store.',
  source: 'installation',
  component: { id: 'store' },
  body: { data: storeMembers, links: storeLinks },
};

const MAPPING_TYPE = 'merchant-realm-mappings';
const MAPPINGS = `/v2/${MAPPING_TYPE}`;
const prefixChange = z.object({ type: z.literal(MAPPING_TYPE), prefix: mappingPrefix() });

/**
 * The mapping between this installation, as a store, and the realm of merchants. There is one, with the ID of that realm, whose
 * record holds its prefix: so it exists as soon as the realm does, and no other mapping can have its prefix.
 */
const MAPPING: SettingsRow = {
  name: 'get-merchant-realm-mapping',
  path: `${MAPPINGS}/:mapping_id`,
  summary: 'Get a merchant realm mapping.',
  noun: 'mapping',
  source: MAPPING_TYPE,
  component: {
    id: MAPPING_TYPE,
    description: 'The realm of merchants, and the prefix of their login addresses.',
  },
  body: {
    data: {
      id: RECORD_ID,
      type: MAPPING_TYPE,
      prefix: [mappingPrefix().nullable(), ({ record }) => record.prefix ?? null],
      realm_id: RECORD_ID,
      store_id: INSTALLATION_ID,
    },
    links: selfAt(({ record }) => `${MAPPINGS}/${record.id}`),
  },
  collection: {
    name: 'find-merchant-realm-mapping',
    path: MAPPINGS,
    summary: 'Get the one merchant realm mapping.',
  },
  change: {
    name: 'update-merchant-realm-mapping',
    summary: 'Change the prefix of a merchant realm mapping.',
    data: prefixChange,
    example: { type: MAPPING_TYPE, prefix: 'shop' },
    read(data) {
      const parsed = prefixChange.safeParse(data);
      if (!parsed.success) throw new Fault('invalid', parsed.error.issues.map(prefixError(data.prefix)));
      const { prefix } = parsed.data;
      return () => ({ prefix });
    },
  },
};

/** A missing prefix is reported in the words that clients know (docs/wire.md#settings). */
const prefixError =
  (prefix: unknown) =>
  (issue: z.core.$ZodIssue): FieldError => {
    const field = `data.${issue.path.join('.')}`;
    return field === 'data.prefix' && (prefix === undefined || prefix === null)
      ? { field, rule: 'is missing', detail: "The field 'prefix' is required." }
      : { field, rule: violatedRule(issue) };
  };

/** What clients read before anything else: which realm is for whom, and the ID of the store. */
export const SETTINGS_OPERATIONS = [
  ACCOUNT_SETTINGS,
  CUSTOMER_SETTINGS,
  GENERAL_SETTINGS,
  STORE_LIST,
  STORE,
  MAPPING,
].flatMap(settingsOperations);
