import { z } from 'zod';
import type { PresetOrigin } from '../../directory/presets.ts';
import { Fault, type FieldError } from '../../domain/fault.ts';
import { parseUuid } from '../../domain/id.ts';
import type { JsonObject } from '../../domain/json_object.ts';
import { mappingPrefix } from '../../domain/mapping_prefix.ts';
import type { AnyRecord } from '../../domain/resource.ts';
import { realm } from '../../domain/resources.ts';
import { violatedRule } from '../../domain/rule.ts';
import { exampleIdOf, INSTALLATION } from '../openapi/examples.ts';
import { HEADERS, jsonContent } from '../openapi/responses.ts';
import { idSchema, lazyComponent, link } from '../openapi/schemas.ts';
import { dataOf } from '../pipeline/body.ts';
import type { CallHandler } from '../pipeline/call.ts';
import type { Documentation, Operation } from '../pipeline/operation.ts';
import { faultReply } from '../server/reply.ts';
import { requestContext } from './record_writes.ts';
import {
  accessibleRealm,
  EXAMPLE_REALM,
  SETTINGS_SCOPE,
  SETTINGS_TAG,
  type SettingsDeps,
  settingsReply,
} from './settings.ts';

/**
 * The mapping between this installation, as a store, and the realm of merchants. There is one, with the ID of that realm, whose
 * record holds its prefix: so it exists as soon as the realm does, and no other mapping can have its prefix.
 */
const TYPE = 'merchant-realm-mappings';
const ORIGIN: PresetOrigin = TYPE;
const COLLECTION = `/v2/${TYPE}`;
const ITEM = `${COLLECTION}/:mapping_id`;
const NOT_FOUND = faultReply('not_found');

type MappingContext = Pick<SettingsDeps, 'baseUrl' | 'installation'>;

function mappingBody({ id, prefix = null }: AnyRecord, { baseUrl, installation }: MappingContext) {
  return {
    data: { id, type: TYPE, prefix, realm_id: id, store_id: installation },
    links: { self: `${baseUrl}${COLLECTION}/${id}` },
  };
}

const mappingSchema = lazyComponent(() =>
  z
    .strictObject({
      data: z.strictObject({
        id: idSchema,
        type: z.literal(TYPE),
        prefix: mappingPrefix().nullable(),
        realm_id: idSchema,
        store_id: idSchema,
      }),
      links: z.strictObject({ self: link }),
    })
    .meta({ id: TYPE, description: 'The realm of merchants, and the prefix of their login addresses.' }),
);

interface MappingDescription
  extends Pick<Operation<SettingsDeps>, 'name' | 'path' | 'work' | 'body' | 'handle'> {
  readonly method: 'GET' | 'PUT';
  readonly right: 'read' | 'write';
  readonly document: Pick<Documentation, 'summary' | 'body' | 'faults'>;
}

function mappingOperation({ right, document, ...operation }: MappingDescription): Operation<SettingsDeps> {
  return {
    ...operation,
    access: { scope: `${SETTINGS_SCOPE}:${right}` },
    document: ({ baseUrl }) => ({
      tag: SETTINGS_TAG,
      ...(operation.path === ITEM ? { path: z.object({ mapping_id: mappingId() }) } : {}),
      success: {
        status: 200,
        description: 'The mapping.',
        headers: { 'Cache-Control': HEADERS.cacheControl },
        content: jsonContent(
          mappingSchema(),
          mappingBody({ ...EXAMPLE_REALM, prefix: 'shop' }, { baseUrl, installation: INSTALLATION }),
        ),
      },
      headers: ['X-Request-Id'],
      ...document,
      faults: ['not_found', ...(document.faults ?? [])],
    }),
  };
}

function mappingId() {
  return idSchema.meta({ param: { description: 'The ID of the mapping.', example: exampleIdOf(realm) } });
}

function readHandler(deps: SettingsDeps): CallHandler {
  return async (call) => {
    const named = accessibleRealm(call, await deps.settingsRealms.find(ORIGIN));
    const { mapping_id: id } = call.params;
    if (!named || (id !== undefined && parseUuid(id) !== named.id)) return NOT_FOUND;
    return settingsReply(mappingBody(named, deps));
  };
}

function updateHandler(deps: SettingsDeps): CallHandler {
  const { merchants, setPrefix } = deps.settingsRealms;
  return async (call) => {
    const isMapping = parseUuid(call.params.mapping_id ?? '') === merchants;
    if (!accessibleRealm(call, isMapping ? { id: merchants } : undefined)) return NOT_FOUND;
    const prefix = prefixOf(dataOf(call.body ?? ''));
    return settingsReply(mappingBody(await setPrefix(prefix, requestContext(call)), deps));
  };
}

const PREFIX = mappingPrefix();

/** Throws Fault `invalid`. */
function prefixOf({ type, prefix }: JsonObject): string {
  const errors: FieldError[] = type === TYPE ? [] : [{ field: 'data.type', rule: `must be ${TYPE}` }];
  const parsed = PREFIX.safeParse(prefix);
  if (prefix === undefined || prefix === null) errors.push(PREFIX_MISSING);
  else
    for (const issue of parsed.error?.issues ?? [])
      errors.push({ field: 'data.prefix', rule: violatedRule(issue) });
  if (errors.length > 0 || !parsed.success) throw new Fault('invalid', errors);
  return parsed.data;
}

/** In the words that clients know (docs/wire.md#settings). */
const PREFIX_MISSING = {
  field: 'data.prefix',
  rule: 'is missing',
  detail: "The field 'prefix' is required.",
} as const;

export const MAPPING_OPERATIONS: readonly Operation<SettingsDeps>[] = [
  mappingOperation({
    name: 'find-merchant-realm-mapping',
    method: 'GET',
    path: COLLECTION,
    right: 'read',
    work: 'get',
    handle: readHandler,
    document: { summary: 'Get the one merchant realm mapping.' },
  }),
  mappingOperation({
    name: 'get-merchant-realm-mapping',
    method: 'GET',
    path: ITEM,
    right: 'read',
    work: 'get',
    handle: readHandler,
    document: { summary: 'Get a merchant realm mapping.' },
  }),
  mappingOperation({
    name: 'update-merchant-realm-mapping',
    method: 'PUT',
    path: ITEM,
    right: 'write',
    work: 'write',
    body: 'json',
    handle: updateHandler,
    document: {
      summary: 'Change the prefix of a merchant realm mapping.',
      body: {
        schema: z
          .object({ data: z.object({ type: z.literal(TYPE), prefix: mappingPrefix() }) })
          .meta({ id: `${TYPE}.update` }),
        example: { data: { type: TYPE, prefix: 'shop' } },
      },
      faults: ['unknown_outcome'],
    },
  }),
];
