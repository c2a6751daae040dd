import { z } from 'zod';
import { exampleIdOf, INSTALLATION } from '../http/openapi/examples.ts';
import { HEADERS, jsonContent } from '../http/openapi/responses.ts';
import { dataBody, idSchema, lazyComponent } from '../http/openapi/schemas.ts';
import { type Projection, projectionSchema, projector } from '../http/operations/projection.ts';
import { requestContext } from '../http/operations/record_writes.ts';
import { dataOf } from '../http/pipeline/body.ts';
import type { Call } from '../http/pipeline/call.ts';
import { parameterNames } from '../http/pipeline/links.ts';
import type { Documentation, Operation } from '../http/pipeline/operation.ts';
import { RECORD_CACHING, type RecordDeps } from '../http/pipeline/pipeline.ts';
import { documentReply, NOT_FOUND_REPLY, type Reply } from '../http/server/reply.ts';
import type { FaultCode } from '../model/fault.ts';
import type { Uuid } from '../model/id.ts';
import { mayAccessRealm, type Principal } from '../model/principal.ts';
import type { AnyRecord } from '../model/resource.ts';
import { realm } from '../model/resources.ts';
import type { JsonObject } from '../model/text/json_object.ts';
import type { PresetOrigin } from '../records/presets.ts';

/** `settings:read` permits reading settings, `settings:write` changing them. */
const SCOPE = 'settings';
export const SETTINGS_TAG = 'settings';
const EXAMPLE_REALM = { id: exampleIdOf(realm), duplicate_email_policy: 'allowed', prefix: 'shop' };

/** The source of settings: the service, and the realm or the installation that they show. */
export interface Shown extends Pick<RecordDeps, 'baseUrl' | 'installation'> {
  readonly record: Pick<AnyRecord, 'id'> & Readonly<Record<string, unknown>>;
}

export type SettingsProjection = Projection<Shown>;

/** Settings: a path, which may have one parameter, the ID of the realm or installation (404); their source and their body. */
export interface SettingsRow {
  readonly name: string;
  readonly path: string;
  readonly summary: string;
  /** `settings` by default. */
  readonly noun?: string;
  /** The realm of this origin, which the caller must be permitted to access (404). */
  readonly source: PresetOrigin | 'installation';
  /** Its component in the OpenAPI document. */
  readonly component: { readonly id: string; readonly description?: string };
  readonly body: Readonly<Record<string, SettingsProjection>>;
  /** The same without an ID, because there is only one. */
  readonly collection?: Pick<SettingsRow, 'name' | 'path' | 'summary'>;
  /** A PUT changes members of the realm. */
  readonly change?: SettingsChange;
}

interface SettingsChange {
  readonly name: string;
  readonly summary: string;
  readonly data: z.ZodObject;
  readonly example: object;
  readonly faults?: readonly FaultCode[];
  /** Reads the `data` of a body; returns the function that makes the changed members of the realm. Throws a Fault. */
  readonly read: (data: JsonObject) => (record: AnyRecord) => object;
}

/** The GET of settings, and their PUT if they can be changed. */
export function settingsOperations(settings: SettingsRow): readonly Operation<RecordDeps>[] {
  const { noun = 'settings', source, path, component, body, collection, change } = settings;
  const bodyOf = projector(body);
  const schema = lazyComponent(() => projectionSchema(body).meta({ ...component }));
  const isOfRealm = source !== 'installation';
  const example = isOfRealm ? EXAMPLE_REALM : { id: INSTALLATION };
  const param = { description: `The ID of the ${isOfRealm ? noun : source}.`, example: example.id };
  const documentationOf = (
    at: Pick<SettingsRow, 'path' | 'summary'>,
    baseUrl: string,
    faults: readonly FaultCode[] = [],
  ): Documentation => ({
    summary: at.summary,
    tag: SETTINGS_TAG,
    ...Object.fromEntries(
      parameterNames(at.path).map((name) => ['path', z.object({ [name]: idSchema.meta({ param }) })]),
    ),
    success: {
      status: 200,
      description: `The ${noun}.`,
      headers: { 'Cache-Control': HEADERS.cacheControl },
      content: jsonContent(schema(), bodyOf({ baseUrl, installation: INSTALLATION, record: example })),
    },
    faults: [...(isOfRealm ? (['not_found'] as const) : []), ...faults],
    headers: ['X-Request-Id'],
  });
  const replyWith = ({ baseUrl, installation }: RecordDeps, record: Shown['record']): Reply =>
    documentReply(bodyOf({ baseUrl, installation, record }), RECORD_CACHING);

  const getOperation = (at: Pick<SettingsRow, 'name' | 'path' | 'summary'>): Operation<RecordDeps> => ({
    name: at.name,
    method: 'GET',
    path: at.path,
    access: { scope: `${SCOPE}:read` },
    work: 'get',
    handle: (deps) => async (call) => {
      const record = await recordFor(call, source, deps);
      return record ? replyWith(deps, record) : NOT_FOUND_REPLY;
    },
    document: ({ baseUrl }) => documentationOf(at, baseUrl),
  });

  const putOperation = ({ name, summary, data, ...of }: SettingsChange): Operation<RecordDeps> => ({
    name,
    method: 'PUT',
    path,
    access: { scope: `${SCOPE}:write` },
    work: 'write',
    body: 'json',
    handle: (deps) => async (call) => {
      const record = await recordFor(call, source, deps);
      if (!record) return NOT_FOUND_REPLY;
      const edit = of.read(dataOf(call.body ?? ''));
      return replyWith(
        deps,
        await deps.settingsRealms.change(record as AnyRecord, edit, requestContext(call)),
      );
    },
    document: ({ baseUrl }) => ({
      ...documentationOf({ path, summary }, baseUrl, [...(of.faults ?? []), 'unknown_outcome']),
      body: dataBody(`${component.id}.update`, data, of.example),
    }),
  });

  return [
    ...(collection ? [getOperation(collection)] : []),
    getOperation(settings),
    ...(change ? [putOperation(change)] : []),
  ];
}

/** The record that settings show to this caller; undefined if there is none, or if the path names another one. */
async function recordFor(
  call: Call,
  source: SettingsRow['source'],
  { settingsRealms, installation }: RecordDeps,
): Promise<Shown['record'] | undefined> {
  const isOfRealm = source !== 'installation';
  const record = isOfRealm ? await settingsRealms.find(source) : { id: installation as Uuid };
  const isNamed = Object.values(call.params).every((id) => id.toLowerCase() === record?.id);
  if (!isNamed) return undefined;
  return isOfRealm ? accessibleRealm(call, record as AnyRecord | undefined) : record;
}

/** The realm, unless the caller may not access it. */
export function accessibleRealm(call: Call, found: AnyRecord | undefined): AnyRecord | undefined {
  if (!found || mayAccessRealm(call.principal as Principal, found.id)) return found;
  call.refused = 'realm outside the list';
  return undefined;
}
