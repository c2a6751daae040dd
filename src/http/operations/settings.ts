import { z } from 'zod';
import type { PresetOrigin } from '../../directory/presets.ts';
import type { SettingsRealms } from '../../directory/settings_realms.ts';
import type { FaultCode } from '../../domain/fault.ts';
import type { JsonObject } from '../../domain/json_object.ts';
import { mayAccessRealm, type Principal } from '../../domain/principal.ts';
import type { AnyRecord } from '../../domain/resource.ts';
import { realm } from '../../domain/resources.ts';
import { exampleIdOf, INSTALLATION } from '../openapi/examples.ts';
import { HEADERS, jsonContent } from '../openapi/responses.ts';
import { idSchema, lazyComponent } from '../openapi/schemas.ts';
import { dataOf } from '../pipeline/body.ts';
import type { Call } from '../pipeline/call.ts';
import { parameterNames } from '../pipeline/links.ts';
import type { Documentation, Operation } from '../pipeline/operation.ts';
import { RECORD_CACHING, type RecordDeps } from '../pipeline/pipeline.ts';
import { documentReply, NOT_FOUND_REPLY, type Reply } from '../server/reply.ts';
import { type Projection, projectionSchema, projector } from './projection.ts';
import { requestContext } from './record_writes.ts';

/** The dependencies of settings. */
export interface SettingsDeps extends RecordDeps {
  readonly settingsRealms: SettingsRealms;
}

/** `settings:read` permits reading settings, `settings:write` changing them. */
const SCOPE = 'settings';
export const SETTINGS_TAG = 'settings';

/** What settings are made from: the service, and the realm or installation that they show. */
export interface Shown extends Pick<SettingsDeps, 'baseUrl' | 'installation'> {
  readonly shown: Pick<AnyRecord, 'id'> & Readonly<Record<string, unknown>>;
}

export type SettingsProjection = Projection<Shown>;

/** Settings: a path, what they show, and how. A PUT changes members of the realm that they show. */
export interface Settings {
  readonly name: string;
  readonly path: string;
  readonly summary: string;
  /** `settings` by default. */
  readonly noun?: string;
  /**
   * The installation, or the realm of an origin, which the caller must be permitted to access (404). If the path has a parameter, it
   * must be the ID of what is shown (404).
   */
  readonly source: 'installation' | PresetOrigin;
  /** Its component in the OpenAPI document. */
  readonly component: { readonly id: string; readonly description?: string };
  readonly body: Readonly<Record<string, SettingsProjection>>;
  /** The same without an ID, because there is only one. */
  readonly collection?: Pick<Settings, 'name' | 'path' | 'summary'>;
  readonly change?: SettingsChange;
}

interface SettingsChange {
  readonly name: string;
  readonly summary: string;
  readonly data: z.ZodObject;
  readonly example: object;
  readonly faults?: readonly FaultCode[];
  /** Reads the `data` of a body; returns the function that makes the changed members of the realm. Throws a Fault. */
  readonly read: (data: JsonObject) => (shown: AnyRecord) => object;
}

/** The GET of settings, and their PUT if they can be changed. */
export function settingsOperations(settings: Settings): readonly Operation<SettingsDeps>[] {
  const { source, component, collection, change } = settings;
  const bodyOf = projector(settings.body);
  const made = {
    schema: lazyComponent(() => projectionSchema(settings.body).meta({ ...component })),
    bodyOf,
  };
  const replyWith = ({ baseUrl, installation }: SettingsDeps, shown: AnyRecord): Reply =>
    documentReply(bodyOf({ baseUrl, installation, shown }), RECORD_CACHING);

  const read = (at: Pick<Settings, 'name' | 'path' | 'summary'>): Operation<SettingsDeps> => ({
    name: at.name,
    method: 'GET',
    path: at.path,
    access: { scope: `${SCOPE}:read` },
    work: 'get',
    handle: (deps) => async (call) => {
      const shown = await shownTo(call, at.path, source, deps);
      return shown ? replyWith(deps, shown) : NOT_FOUND_REPLY;
    },
    document: ({ baseUrl }) => documentationOf(settings, at, made, baseUrl),
  });

  const write = ({
    name,
    summary,
    data,
    example,
    faults = [],
    read,
  }: SettingsChange): Operation<SettingsDeps> => ({
    name,
    method: 'PUT',
    path: settings.path,
    access: { scope: `${SCOPE}:write` },
    work: 'write',
    body: 'json',
    handle: (deps) => async (call) => {
      const shown = await shownTo(call, settings.path, source, deps);
      if (!shown) return NOT_FOUND_REPLY;
      const edit = read(dataOf(call.body ?? ''));
      return replyWith(deps, await deps.settingsRealms.change(shown, edit, requestContext(call)));
    },
    document: ({ baseUrl }) => ({
      ...documentationOf(settings, { path: settings.path, summary }, made, baseUrl),
      body: {
        schema: z.object({ data }).meta({ id: `${component.id}.update` }),
        example: { data: example },
      },
      faults: ['not_found', ...faults, 'unknown_outcome'],
    }),
  });

  return [...(collection ? [read(collection)] : []), read(settings), ...(change ? [write(change)] : [])];
}

/** What settings show to this caller; undefined for nothing. */
async function shownTo(
  call: Call,
  path: string,
  source: Settings['source'],
  { installation, settingsRealms }: SettingsDeps,
): Promise<AnyRecord | undefined> {
  const isRealm = source !== 'installation';
  const shown = isRealm ? await settingsRealms.find(source) : ({ id: installation } as AnyRecord);
  const [parameter] = parameterNames(path);
  if (parameter !== undefined && call.params[parameter]?.toLowerCase() !== shown?.id) return undefined;
  return isRealm ? accessibleRealm(call, shown) : shown;
}

/** The realm, unless the caller may not access it. */
export function accessibleRealm(call: Call, found: AnyRecord | undefined): AnyRecord | undefined {
  if (!found || mayAccessRealm(call.principal as Principal, found.id)) return found;
  call.refused = 'realm outside the list';
  return undefined;
}

/** The realm of every example in the OpenAPI document. */
const EXAMPLE_REALM = { id: exampleIdOf(realm), duplicate_email_policy: 'allowed', prefix: 'shop' };

/** The function that makes the body of settings, and its schema. */
interface MadeBody {
  readonly schema: () => z.ZodType;
  readonly bodyOf: (of: Shown) => object;
}

function documentationOf(
  { noun = 'settings', source }: Settings,
  { path, summary }: Pick<Settings, 'path' | 'summary'>,
  { schema, bodyOf }: MadeBody,
  baseUrl: string,
): Documentation {
  const shown = source === 'installation' ? { id: INSTALLATION } : EXAMPLE_REALM;
  const example = bodyOf({ baseUrl, installation: INSTALLATION, shown });
  const [parameter] = parameterNames(path);
  const description = `The ID of the ${source === 'installation' ? source : noun}.`;
  const id = idSchema.meta({ param: { description, example: shown.id } });
  return {
    summary,
    tag: SETTINGS_TAG,
    ...(parameter === undefined ? {} : { path: z.object({ [parameter]: id }) }),
    success: {
      status: 200,
      description: `The ${noun}.`,
      headers: { 'Cache-Control': HEADERS.cacheControl },
      content: jsonContent(schema(), example),
    },
    faults: source === 'installation' && parameter === undefined ? [] : ['not_found'],
    headers: ['X-Request-Id'],
  };
}
