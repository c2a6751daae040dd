import { z } from 'zod';
import { Fault, type FaultCode } from '../../../model/fault.ts';
import type { Revision } from '../../../model/id.ts';
import { LIMITS } from '../../../model/limits.ts';
import type { AuditContext } from '../../../model/log/audit_entry.ts';
import { assertFound, assertRevision, type Edit, type Managed } from '../../../model/managed.ts';
import { wholeNumber } from '../../../model/rule.ts';
import type { Store } from '../../../model/store.ts';
import { EXAMPLE_AT } from '../../openapi/examples.ts';
import { timestampSchema } from '../../openapi/schemas.ts';
import { instant, type ProjectedMembers } from '../projection.ts';
import {
  type AdminDeps,
  type AdminRequest,
  adminOperation,
  answerForm,
  type Presented,
  singleAnswer,
  urlAt,
} from './operation.ts';
import { listOperation, type PageRange } from './page.ts';

/** The dependencies of the operations. */
export interface ManagedDeps extends Pick<AdminDeps, 'accessStore' | 'webhooks' | 'clock'> {
  /** Looks up realms; undefined if they are not checked. */
  readonly store: Pick<Store, 'get'> | undefined;
}
type Request = AdminRequest<unknown, unknown>;

interface Thing extends Managed {
  readonly previous: { readonly expiresAt: number } | undefined;
}

/** A thing with its new secret, which is known only now. */
type Issued<T> = T & { readonly secret: string };

/**
 * Something that administrators manage and that has a secret: clients, webhook targets. The operations that list, create,
 * get, update, delete, rotate, disable and enable it follow from this description.
 */
export interface ManagedKind<
  T extends Thing = Thing,
  Listed extends object = object,
  C extends z.ZodObject = z.ZodObject,
  U extends z.ZodObject = z.ZodObject,
> {
  readonly type: 'client' | 'webhook';
  readonly idPattern: RegExp;
  /** `data` of the requests that create and update one. */
  readonly created: { readonly schema: C; readonly example: object };
  readonly updated: { readonly schema: U; readonly example: object };
  /** Members of its answers, and further ones in a list. */
  readonly members: ProjectedMembers<T>;
  readonly listed: ProjectedMembers<Listed>;
  readonly example: Partial<T> & Listed;
  readonly secret: Readonly<Record<'member' | 'description' | 'example', string>>;
  /** In the OpenAPI document; `fullNoun` is the noun at first mention. */
  readonly texts: Readonly<Record<'noun' | 'fullNoun' | Text, string>>;
  /** Whether a rotation reads `If-Match`. */
  readonly rotatesConditionally: boolean;
  idOf(thing: T): string;
  page(wanted: PageRange, deps: ManagedDeps): Promise<readonly (T & Listed)[]>;
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

type Text =
  | 'create'
  | 'update'
  | 'updateMore'
  | 'delete'
  | 'disable'
  | 'enable'
  | 'previousSecret'
  | 'overlap';

type Shown = Thing & { readonly secret?: string };

/** The forms in which answers show one kind. */
function formsOf(kind: ManagedKind) {
  const { type, texts, secret } = kind;
  const pathOf = (thing: Thing) => `/${type}s/${encodeURIComponent(kind.idOf(thing))}`;
  const members: ProjectedMembers<Presented<Shown>> = {
    id: [z.string(), kind.idOf],
    type,
    ...kind.members,
    is_disabled: [z.boolean(), ({ disabledAt }) => disabledAt !== undefined],
    previous_secret_expires_at: instant(
      ({ previous, now }) => (previous && previous.expiresAt > now ? previous.expiresAt : undefined),
      timestampSchema.nullable().meta({ description: texts.previousSecret }),
    ),
    meta: {
      created_at: instant(({ createdAt }) => createdAt),
      updated_at: instant(({ updatedAt }) => updatedAt),
    },
  };
  const once = z.string().meta({ description: secret.description, 'x-authrealm-shown-once': true });
  const issued: ProjectedMembers<Presented<Shown>> = {
    ...members,
    [secret.member]: [once, (thing) => thing.secret],
  };
  const times = { createdAt: EXAMPLE_AT, updatedAt: EXAMPLE_AT };
  const example = { ...times, secret: secret.example, ...kind.example } as unknown as Shown;
  return {
    shown: { ...singleAnswer<Shown>(`${type}.record`, members, example, pathOf), hasEtag: true as const },
    issued: { ...singleAnswer<Shown>(`${type}.issued`, issued, example, pathOf), hasEtag: true as const },
    item: answerForm(`${type}.item`, { ...members, ...kind.listed, links: { self: urlAt(pathOf) } }, example),
  };
}

/** The operations on one kind. */
export function managedOperations<
  T extends Thing,
  Listed extends object,
  C extends z.ZodObject,
  U extends z.ZodObject,
>(described: ManagedKind<T, Listed, C, U>) {
  const kind = described as unknown as ManagedKind;
  const parts = partsOf(kind);
  return [
    ...readAndCreateOperations(parts),
    ...changeOperations(parts),
    rotateOperation(parts),
    enableOrDisable(parts, 'disable'),
    enableOrDisable(parts, 'enable'),
  ];
}

/** What the operations on one kind have in common. */
function partsOf(kind: ManagedKind) {
  const { type, texts, example } = kind;
  const description = `The identifier of the ${texts.noun}.`;
  /** Throws Fault `not_found` for a malformed identifier. */
  function idIn({ params }: Request): string {
    const id = params[`${type}_id`] ?? '';
    if (!kind.idPattern.test(id)) throw new Fault('not_found');
    return id;
  }
  const find = async (request: Request, deps: ManagedDeps) =>
    assertFound(await kind.find(idIn(request), deps));
  return {
    kind,
    named: `/${type}s/:${type}_id`,
    params: { [`${type}_id`]: { description, example: kind.idOf(example as Thing) } },
    ...formsOf(kind),
    idIn,
    find,
    edit(request: Request, deps: ManagedDeps, edit: (found: Thing) => Partial<Thing> | undefined) {
      const checked = (found: Thing) => {
        assertRevision(found, request.requiredRevision);
        return edit(found);
      };
      return kind.change(idIn(request), checked, deps, request.auditContext);
    },
  };
}
type Parts = ReturnType<typeof partsOf>;

function readAndCreateOperations({ kind, named, params, shown, issued, item, find }: Parts) {
  const { type, texts } = kind;
  const path = `/${type}s`;
  return [
    listOperation({
      name: `list-${type}s`,
      path,
      summary: `List the ${texts.fullNoun}s, ordered by ID.`,
      idPattern: kind.idPattern,
      page: { id: `${type}.page`, description: `The ${texts.noun}s, without secrets.`, item },
      read: async (range, _, deps: ManagedDeps) => ({ items: await kind.page(range, deps) }),
    }),
    adminOperation({
      name: `create-${type}`,
      method: 'POST',
      path,
      summary: `Create a ${texts.fullNoun}. Only this response contains its secret.`,
      description: texts.create,
      data: kind.created,
      success: { ...issued, status: 201, description: `The ${texts.noun} and its secret.` },
      faults: ['conflict', 'unknown_outcome'],
      handle: ({ data, auditContext }, deps: ManagedDeps) => kind.create(data, deps, auditContext),
    }),
    adminOperation({
      name: `get-${type}`,
      method: 'GET',
      path: named,
      summary: `Get one ${texts.fullNoun}.`,
      params,
      success: { ...shown, status: 200, description: `The ${texts.noun}, without secrets.` },
      handle: find,
    }),
  ];
}

function changeOperations({ kind, named, params, shown, ...handle }: Parts) {
  const { type, texts } = kind;
  return [
    adminOperation({
      name: `update-${type}`,
      method: 'PUT',
      path: named,
      summary: texts.update,
      description: texts.updateMore,
      params,
      isConditional: true,
      data: kind.updated,
      success: { ...shown, status: 200, description: `The ${texts.noun} after the change.` },
      faults: ['conflict', 'unknown_outcome'],
      async handle(request, deps: ManagedDeps) {
        const patch = await kind.patch(request.data, deps, request);
        return handle.edit(request, deps, () => (Object.keys(patch).length > 0 ? patch : undefined));
      },
    }),
    adminOperation({
      name: `delete-${type}`,
      method: 'DELETE',
      path: named,
      summary: texts.delete,
      params,
      isConditional: true,
      success: { status: 204, description: 'Deleted.' },
      faults: [...endingFaults(kind), 'unknown_outcome'],
      async handle(request, deps: ManagedDeps) {
        kind.assertNotCaller?.(request);
        const { requiredRevision, auditContext } = request;
        const isGone = await kind.remove(handle.idIn(request), requiredRevision, deps, auditContext);
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
  return adminOperation({
    name: `rotate-${type}`,
    method: 'POST',
    path: `${named}/rotate`,
    summary: `Rotate the secret of a ${texts.noun}. Only this response contains the new secret.`,
    params,
    ...(rotatesConditionally ? { isConditional: true as const } : {}),
    data: { schema, example: { overlap_seconds: 7_200 } },
    success: { ...issued, status: 200, description: `The ${texts.noun} and its new secret.` },
    faults: ['unknown_outcome'],
    async handle(request, deps: ManagedDeps) {
      const { overlap_seconds: seconds = LIMITS.secretOverlapMs / 1_000 } = request.data;
      const rotation = { overlapMs: seconds * 1_000, seen: request.requiredRevision };
      return kind.rotate(handle.idIn(request), rotation, deps, request.auditContext);
    },
  });
}

/** Disables or enables a thing; one that is in that state already is unchanged. */
function enableOrDisable({ kind, named, params, shown, ...handle }: Parts, verb: 'disable' | 'enable') {
  const disables = verb === 'disable';
  return adminOperation({
    name: `${verb}-${kind.type}`,
    method: 'POST',
    path: `${named}/${verb}`,
    summary: kind.texts[verb],
    params,
    isConditional: true,
    success: { ...shown, status: 200, description: `The ${kind.texts.noun} after the change.` },
    faults: ['unknown_outcome', ...(disables ? endingFaults(kind) : [])],
    handle(request, deps: ManagedDeps) {
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
