import { z } from 'zod';
import type { AuditContext } from '../../../domain/audit_entry.ts';
import { Fault, type FaultCode } from '../../../domain/fault.ts';
import type { Revision } from '../../../domain/id.ts';
import { LIMITS } from '../../../domain/limits.ts';
import { assertFound, assertRevision, type Edit, type Managed } from '../../../domain/managed.ts';
import { wholeNumber } from '../../../domain/rule.ts';
import { link, timestampSchema } from '../../openapi/schemas.ts';
import {
  type AdminAnswer,
  type AdminDeps,
  type AdminDescription,
  type AdminRequest,
  adminOperation,
  singleAnswer,
} from './operation.ts';
import { listOperation, type PageRange } from './page.ts';

/** The dependencies of the operations. */
export interface ManagedDeps extends Pick<AdminDeps, 'accessStore' | 'webhooks' | 'clock'> {
  /** Looks up realms; undefined if they are not checked. */
  readonly store: AdminDeps['store'] | undefined;
}
type Request = AdminRequest<unknown, unknown>;

interface Thing extends Managed {
  readonly previous: { readonly expiresAt: number } | undefined;
}

/** A thing with its new secret, which is known only now. */
interface Issued<T> {
  readonly thing: T;
  readonly secret: string;
}

/**
 * Something that administrators manage and that has a secret: clients, webhook targets. The operations that list, create,
 * get, update, delete, rotate, disable and enable it follow from this description.
 */
export interface ManagedKind<
  T extends Thing = Thing,
  C extends z.ZodObject = z.ZodObject,
  U extends z.ZodObject = z.ZodObject,
> {
  readonly type: 'client' | 'webhook';
  readonly idPattern: RegExp;
  /** `data` of the requests that create and update one. */
  readonly created: { readonly schema: C; readonly example: object };
  readonly updated: { readonly schema: U; readonly example: object };
  /** Members of its answers, and further ones in a list. */
  readonly members: z.ZodRawShape;
  readonly listed: z.ZodRawShape;
  readonly secret: {
    readonly member: string;
    readonly description: string;
    readonly example: string;
  };
  readonly example: { readonly id: string; readonly members: object; readonly listed: object };
  readonly texts: Texts;
  /** Whether a rotation reads `If-Match`. */
  readonly rotatesConditionally: boolean;
  idOf(thing: T): string;
  membersOf(thing: T): object;
  page(
    wanted: PageRange,
    deps: ManagedDeps,
  ): Promise<readonly { readonly thing: T; readonly listed: object }[]>;
  find(id: string, deps: ManagedDeps): T | undefined | Promise<T | undefined>;
  create(data: z.output<C>, deps: ManagedDeps, auditContext: AuditContext): Promise<Issued<T>>;
  /** The requested changes. Rejects with Fault `conflict`. */
  patch(data: z.output<U>, deps: ManagedDeps, request: Request): Promise<Partial<T>>;
  change(id: string, edit: Edit<T>, deps: ManagedDeps, auditContext: AuditContext): Promise<T>;
  rotate(
    id: string,
    rotation: { readonly overlapMs: number; readonly seen: Revision | undefined },
    deps: ManagedDeps,
    auditContext: AuditContext,
  ): Promise<Issued<T>>;
  remove(
    id: string,
    seen: Revision | undefined,
    deps: ManagedDeps,
    auditContext: AuditContext,
  ): Promise<boolean>;
  /** Throws Fault `conflict` if the caller would disable or delete itself. */
  assertNotCaller?(request: Request): void;
}

/** In the OpenAPI document; `fullNoun` is the noun at first mention. */
type Text =
  | 'create'
  | 'update'
  | 'updateMore'
  | 'delete'
  | 'disable'
  | 'enable'
  | 'previousSecret'
  | 'overlap';
type Texts = Readonly<Record<'noun' | 'fullNoun' | Text, string>>;

const AT = '2026-01-31T09:00:00.000Z';

/** The paths, schemas and examples of one kind. */
function documentationOf({ type, texts, members, listed, secret, example }: ManagedKind) {
  const shown = {
    id: z.string(),
    type: z.literal(type),
    ...members,
    is_disabled: z.boolean(),
    previous_secret_expires_at: timestampSchema.nullable().meta({ description: texts.previousSecret }),
    meta: z.strictObject({ created_at: timestampSchema, updated_at: timestampSchema }),
  };
  const once = { description: secret.description, 'x-authrealm-shown-once': true };
  const issued = { ...shown, [secret.member]: z.string().meta(once) };
  const data = {
    id: example.id,
    type,
    ...example.members,
    is_disabled: false,
    previous_secret_expires_at: null,
    meta: { created_at: AT, updated_at: AT },
  };
  const path = `/${type}s`;
  const self = `${path}/${example.id}`;
  const shownAnswer = singleAnswer(`${type}.record`, shown, data, self);
  const secretExample = { ...data, [secret.member]: secret.example };
  return {
    path,
    named: `${path}/:${type}_id`,
    params: { [`${type}_id`]: { description: `The identifier of the ${texts.noun}.`, example: example.id } },
    shown: { ...shownAnswer, hasEtag: true as const },
    issued: {
      ...singleAnswer(`${type}.issued`, issued, secretExample, self),
      hasEtag: true as const,
    },
    page: {
      id: `${type}.page`,
      item: z
        .strictObject({ ...shown, ...listed, links: z.strictObject({ self: link }) })
        .meta({ id: `${type}.item` }),
      example: { ...data, ...example.listed, links: shownAnswer.example.links },
    },
  };
}

function timestamp(at: number): string {
  return new Date(at).toISOString();
}

/** Reads the identifier and the condition of a request, and presents its result. */
function handlersOf(kind: ManagedKind) {
  /** Throws Fault `not_found` for a malformed identifier. */
  function idIn({ params }: Request): string {
    const id = params[`${kind.type}_id`] ?? '';
    if (!kind.idPattern.test(id)) throw new Fault('not_found');
    return id;
  }
  const find = async (request: Request, deps: ManagedDeps) =>
    assertFound(await kind.find(idIn(request), deps));
  const locationOf = (thing: Thing, { url }: Pick<Request, 'url'>) =>
    url(`/${kind.type}s/${encodeURIComponent(kind.idOf(thing))}`);
  const describe = (thing: Thing, { clock }: ManagedDeps) => {
    const { previous, disabledAt, createdAt, updatedAt } = thing;
    const overlaps = previous !== undefined && previous.expiresAt > clock.now();
    return {
      id: kind.idOf(thing),
      type: kind.type,
      ...kind.membersOf(thing),
      is_disabled: disabledAt !== undefined,
      previous_secret_expires_at: overlaps ? timestamp(previous.expiresAt) : null,
      meta: { created_at: timestamp(createdAt), updated_at: timestamp(updatedAt) },
    };
  };
  const present = (thing: Thing, request: Request, deps: ManagedDeps, secret: object = {}): AdminAnswer => ({
    body: { data: { ...describe(thing, deps), ...secret }, links: { self: locationOf(thing, request) } },
    revision: thing.revision,
  });
  const seenBy = (request: Request, deps: ManagedDeps) =>
    request.requiredRevision(async () => (await find(request, deps)).revision);
  return {
    idIn,
    find,
    locationOf,
    describe,
    present,
    seenBy,
    presentIssued: ({ thing, secret }: Issued<Thing>, request: Request, deps: ManagedDeps) =>
      present(thing, request, deps, { [kind.secret.member]: secret }),
    async edit(request: Request, deps: ManagedDeps, edit: (found: Thing) => Partial<Thing> | undefined) {
      const seen = await seenBy(request, deps);
      const checked = (found: Thing) => {
        assertRevision(found, seen);
        return edit(found);
      };
      return present(await kind.change(idIn(request), checked, deps, request.auditContext), request, deps);
    },
  };
}

/** An operation that needs no more than `ManagedDeps`. */
export function managedOperation<Query extends z.ZodObject, Data extends z.ZodObject>(
  description: AdminDescription<Query, Data, ManagedDeps>,
) {
  return adminOperation(description);
}

/** The operations on one kind. */
export function managedOperations<T extends Thing, C extends z.ZodObject, U extends z.ZodObject>(
  described: ManagedKind<T, C, U>,
) {
  const kind = described as unknown as ManagedKind;
  const parts = { kind, ...documentationOf(kind), ...handlersOf(kind) };
  return [
    ...readAndCreateOperations(parts),
    ...changeOperations(parts),
    rotateOperation(parts),
    enableOrDisable(parts, 'disable'),
    enableOrDisable(parts, 'enable'),
  ];
}

type Parts = { readonly kind: ManagedKind } & ReturnType<typeof documentationOf> &
  ReturnType<typeof handlersOf>;

function readAndCreateOperations({ kind, path, named, params, shown, issued, page, ...handle }: Parts) {
  const { type, example, texts } = kind;
  return [
    listOperation<ManagedDeps>({
      name: `list-${type}s`,
      path,
      summary: `List the ${texts.fullNoun}s, ordered by ID.`,
      idPattern: kind.idPattern,
      page: { ...page, description: `The ${texts.noun}s, without secrets.` },
      async read(range, request, deps) {
        const items = (await kind.page(range, deps)).map(({ thing, listed }) => {
          const links = { self: handle.locationOf(thing, request) };
          return { ...handle.describe(thing, deps), ...listed, links };
        });
        return { items };
      },
    }),
    managedOperation({
      name: `create-${type}`,
      method: 'POST',
      path,
      summary: `Create a ${texts.fullNoun}. Only this response contains its secret.`,
      description: texts.create,
      data: kind.created,
      success: {
        ...issued,
        status: 201,
        description: `The ${texts.noun} and its secret.`,
        location: `${path}/${example.id}`,
      },
      faults: ['conflict', 'unknown_outcome'],
      async handle(request, deps) {
        const created = await kind.create(request.data, deps, request.auditContext);
        const location = handle.locationOf(created.thing, request);
        return { ...handle.presentIssued(created, request, deps), location };
      },
    }),
    managedOperation({
      name: `get-${type}`,
      method: 'GET',
      path: named,
      summary: `Get one ${texts.fullNoun}.`,
      params,
      success: { ...shown, status: 200, description: `The ${texts.noun}, without secrets.` },
      faults: ['not_found'],
      handle: async (request, deps) => handle.present(await handle.find(request, deps), request, deps),
    }),
  ];
}

function changeOperations({ kind, named, params, shown, ...handle }: Parts) {
  const { type, texts } = kind;
  return [
    managedOperation({
      name: `update-${type}`,
      method: 'PUT',
      path: named,
      summary: texts.update,
      description: texts.updateMore,
      params,
      isConditional: true,
      data: kind.updated,
      success: { ...shown, status: 200, description: `The ${texts.noun} after the change.` },
      faults: ['not_found', 'conflict', 'unknown_outcome'],
      async handle(request, deps) {
        const patch = await kind.patch(request.data, deps, request);
        return handle.edit(request, deps, () => (Object.keys(patch).length > 0 ? patch : undefined));
      },
    }),
    managedOperation({
      name: `delete-${type}`,
      method: 'DELETE',
      path: named,
      summary: texts.delete,
      params,
      isConditional: true,
      success: { status: 204, description: 'Deleted.' },
      faults: ['not_found', ...endingFaults(kind), 'unknown_outcome'],
      async handle(request, deps) {
        kind.assertNotCaller?.(request);
        const seen = await handle.seenBy(request, deps);
        const isGone = await kind.remove(handle.idIn(request), seen, deps, request.auditContext);
        assertFound(isGone || undefined);
        return undefined;
      },
    }),
  ];
}

function rotateOperation({ kind, named, params, issued, ...handle }: Parts) {
  const { type, texts, rotatesConditionally } = kind;
  const overlap = wholeNumber(0, LIMITS.secretOverlapHoursMax * 3_600);
  const schema = z.object({ overlap_seconds: overlap.optional().meta({ description: texts.overlap }) });
  return managedOperation({
    name: `rotate-${type}`,
    method: 'POST',
    path: `${named}/rotate`,
    summary: `Rotate the secret of a ${texts.noun}. Only this response contains the new secret.`,
    params,
    ...(rotatesConditionally ? { isConditional: true as const } : {}),
    data: { schema, example: { overlap_seconds: 7_200 } },
    success: { ...issued, status: 200, description: `The ${texts.noun} and its new secret.` },
    faults: ['not_found', 'unknown_outcome'],
    async handle(request, deps) {
      const { overlap_seconds: seconds = LIMITS.secretOverlapMs / 1_000 } = request.data;
      const seen = rotatesConditionally ? await handle.seenBy(request, deps) : undefined;
      const rotation = { overlapMs: seconds * 1_000, seen };
      const rotated = await kind.rotate(handle.idIn(request), rotation, deps, request.auditContext);
      return handle.presentIssued(rotated, request, deps);
    },
  });
}

/** Disables or enables a thing; one that is in that state already is unchanged. */
function enableOrDisable({ kind, named, params, shown, ...handle }: Parts, verb: 'disable' | 'enable') {
  const disables = verb === 'disable';
  return managedOperation({
    name: `${verb}-${kind.type}`,
    method: 'POST',
    path: `${named}/${verb}`,
    summary: kind.texts[verb],
    params,
    isConditional: true,
    success: { ...shown, status: 200, description: `The ${kind.texts.noun} after the change.` },
    faults: ['not_found', 'unknown_outcome', ...(disables ? endingFaults(kind) : [])],
    handle(request, deps) {
      if (disables) kind.assertNotCaller?.(request);
      const disabledAt = disables ? deps.clock.now() : undefined;
      return handle.edit(request, deps, (found) =>
        (found.disabledAt !== undefined) === disables ? undefined : { disabledAt },
      );
    },
  });
}

function endingFaults({ assertNotCaller }: ManagedKind): readonly FaultCode[] {
  return assertNotCaller ? ['conflict'] : [];
}
