import { z } from 'zod';
import type { PresetOrigin } from '../../directory/presets.ts';
import type { FaultCode } from '../../domain/fault.ts';
import type { Uuid } from '../../domain/id.ts';
import type { JsonObject } from '../../domain/json_object.ts';
import { mayAccessRealm, type Principal } from '../../domain/principal.ts';
import type { AnyRecord } from '../../domain/resource.ts';
import { realm } from '../../domain/resources.ts';
import { exampleIdOf, INSTALLATION } from '../openapi/examples.ts';
import { HEADERS, jsonContent } from '../openapi/responses.ts';
import { dataBody, idSchema, lazyComponent } from '../openapi/schemas.ts';
import { dataOf } from '../pipeline/body.ts';
import type { Call } from '../pipeline/call.ts';
import { parameterNames } from '../pipeline/links.ts';
import type { Documentation, Operation } from '../pipeline/operation.ts';
import { RECORD_CACHING, type RecordDeps } from '../pipeline/pipeline.ts';
import { documentReply, NOT_FOUND_REPLY, type Reply } from '../server/reply.ts';
import { type Projection, projectionSchema, projector } from './projection.ts';
import { requestContext } from './record_writes.ts';

/** `settings:read` permits reading settings, `settings:write` changing them. */
const SCOPE = 'settings';
export const SETTINGS_TAG = 'settings';

/** The source of settings: the service, and the realm or the installation that they show. */
export interface Shown extends Pick<RecordDeps, 'baseUrl' | 'installation'> {
  readonly record: Pick<AnyRecord, 'id'> & Readonly<Record<string, unknown>>;
}

export type SettingsProjection = Projection<Shown>;

/** Settings: a path, their source, and their body. */
interface SettingsBase {
  readonly name: string;
  readonly path: string;
  readonly summary: string;
  /** `settings` by default. */
  readonly noun?: string;
  /** Its component in the OpenAPI document. */
  readonly component: { readonly id: string; readonly description?: string };
  readonly body: Readonly<Record<string, SettingsProjection>>;
  /** The same without an ID, because there is only one. */
  readonly collection?: Pick<SettingsBase, 'name' | 'path' | 'summary'>;
}

interface InstallationSettings extends SettingsBase {
  readonly source: 'installation';
  readonly change?: undefined;
}

interface RealmSettings extends SettingsBase {
  /** They show the realm of this origin, which the caller must be permitted to access (404). */
  readonly source: PresetOrigin;
  /** A PUT changes members of the realm. */
  readonly change?: SettingsChange;
}

/** A path may have one parameter: the ID of the realm or installation (404). */
export type SettingsRow = InstallationSettings | RealmSettings;

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
  const { component, collection } = settings;
  const { bodyOf, documentationOf } = shownBy(settings);
  const replyWith = ({ baseUrl, installation }: RecordDeps, record: Shown['record']): Reply =>
    documentReply(bodyOf({ baseUrl, installation, record }), RECORD_CACHING);

  const getOperation = (at: Pick<SettingsRow, 'name' | 'path' | 'summary'>): Operation<RecordDeps> => ({
    name: at.name,
    method: 'GET',
    path: at.path,
    access: { scope: `${SCOPE}:read` },
    work: 'get',
    handle: (deps) => async (call) => {
      const record = await recordFor(call, settings.source, deps);
      return record ? replyWith(deps, record) : NOT_FOUND_REPLY;
    },
    document: ({ baseUrl }) => documentationOf(at, baseUrl),
  });

  const putOperation = ({ path, source }: RealmSettings, change: SettingsChange): Operation<RecordDeps> => ({
    name: change.name,
    method: 'PUT',
    path,
    access: { scope: `${SCOPE}:write` },
    work: 'write',
    body: 'json',
    handle: (deps) => async (call) => {
      const record = await realmFor(call, source, deps);
      if (!record) return NOT_FOUND_REPLY;
      const edit = change.read(dataOf(call.body ?? ''));
      return replyWith(deps, await deps.settingsRealms.change(record, edit, requestContext(call)));
    },
    document: ({ baseUrl }) => ({
      ...documentationOf({ path, summary: change.summary }, baseUrl),
      body: dataBody(`${component.id}.update`, change.data, change.example),
      faults: ['not_found', ...(change.faults ?? []), 'unknown_outcome'],
    }),
  });

  return [
    ...(collection ? [getOperation(collection)] : []),
    getOperation(settings),
    ...(settings.change ? [putOperation(settings, settings.change)] : []),
  ];
}

/** The record that settings show to this caller; undefined if there is none, or if the path names another one. */
async function recordFor(call: Call, source: SettingsRow['source'], deps: RecordDeps) {
  if (source !== 'installation') return realmFor(call, source, deps);
  const record: Shown['record'] = { id: deps.installation as Uuid };
  return isNamed(call, record) ? record : undefined;
}

async function realmFor(call: Call, origin: PresetOrigin, { settingsRealms }: RecordDeps) {
  const record = await settingsRealms.find(origin);
  return isNamed(call, record) ? accessibleRealm(call, record) : undefined;
}

/** Whether the path has no parameter, or the ID of this record in it. */
function isNamed({ params }: Call, record: Shown['record'] | undefined): boolean {
  return Object.values(params).every((id) => id.toLowerCase() === record?.id);
}

/** The realm, unless the caller may not access it. */
export function accessibleRealm(call: Call, found: AnyRecord | undefined): AnyRecord | undefined {
  if (!found || mayAccessRealm(call.principal as Principal, found.id)) return found;
  call.refused = 'realm outside the list';
  return undefined;
}

/** The realm of every example in the OpenAPI document. */
const EXAMPLE_REALM = { id: exampleIdOf(realm), duplicate_email_policy: 'allowed', prefix: 'shop' };

/** The function that makes the body of settings, and the one that documents the operation at a path. */
function shownBy({ noun = 'settings', source, component, body }: SettingsRow) {
  const bodyOf = projector(body);
  const schema = lazyComponent(() => projectionSchema(body).meta({ ...component }));
  const isOfRealm = source !== 'installation';
  const record = isOfRealm ? EXAMPLE_REALM : { id: INSTALLATION };
  const description = `The ID of the ${isOfRealm ? noun : source}.`;
  const id = idSchema.meta({ param: { description, example: record.id } });
  const withIds = ([name]: readonly string[]) =>
    name === undefined ? {} : { path: z.object({ [name]: id }) };
  const documentationOf = (
    { path, summary }: Pick<SettingsRow, 'path' | 'summary'>,
    baseUrl: string,
  ): Documentation => ({
    summary,
    tag: SETTINGS_TAG,
    ...withIds(parameterNames(path)),
    success: {
      status: 200,
      description: `The ${noun}.`,
      headers: { 'Cache-Control': HEADERS.cacheControl },
      content: jsonContent(schema(), bodyOf({ baseUrl, installation: INSTALLATION, record })),
    },
    faults: isOfRealm ? ['not_found'] : [],
    headers: ['X-Request-Id'],
  });
  return { bodyOf, documentationOf };
}
