import { z } from 'zod';
import type { openAdministration } from '../../../app/administration.ts';
import type { ChangeDelivery } from '../../../app/change_delivery.ts';
import type { ServiceContext } from '../../../app/service_context.ts';
import type { Clock, Revision } from '../../../model/id.ts';
import type { AuditContext } from '../../../model/log/audit_entry.ts';
import type { Principal } from '../../../model/principal.ts';
import type { MaybePromise } from '../../../model/store.ts';
import type { Snapshot } from '../../../ops/metrics/family.ts';
import { EXAMPLE_AT } from '../../openapi/examples.ts';
import { HEADERS, header } from '../../openapi/responses.ts';
import { dataBody, lazyComponent, link } from '../../openapi/schemas.ts';
import type { Call, CallHandler } from '../../pipeline/call.ts';
import type { Documentation, DocumentContext, Operation } from '../../pipeline/operation.ts';
import type { OperationDeps } from '../../pipeline/pipeline.ts';
import { preconditionReader } from '../../pipeline/precondition.ts';
import { etags } from '../../pipeline/present.ts';
import { checkData, readData, readParameters } from '../../pipeline/reading.ts';
import { JSON_TYPE, NO_CONTENT, type Reply } from '../../server/reply.ts';
import { type ProjectedMembers, type Projection, projectionSchema, projector } from '../projection.ts';

/** The dependencies of administrative operations. */
export interface AdminDeps
  extends OperationDeps,
    ReturnType<typeof openAdministration>,
    Pick<ServiceContext, 'keyring' | 'clock'>,
    Pick<ChangeDelivery, 'sendTest'> {
  /** The metrics of all processes of the service. */
  metrics(): Promise<Snapshot>;
}

/** Everything below this path is administration. */
export const ADMIN_PATH = '/admin/v1';
export const ADMIN_TAG = 'Administration';
/** The scope that all of them require. */
const ADMIN_SCOPE = 'admin';

/** A path parameter in the OpenAPI document. */
interface PathParameter {
  readonly description: string;
  readonly example: string;
  /** The operation that reads the record it names, if that is outside of administration. */
  readonly readBy?: string;
}

/** A validated request. */
export interface AdminRequest<Query, Data> extends AnswerContext {
  readonly params: Readonly<Record<string, string>>;
  readonly query: Query;
  readonly data: Data;
  /** The client that sent the request. */
  readonly clientId: string;
  readonly auditContext: AuditContext;
  /** The revision that a write requires; undefined if `If-Match` sets no condition. */
  readonly requiredRevision: Revision | undefined;
}

/** What an answer needs besides what it shows. */
interface AnswerContext {
  readonly auditContext: Pick<Clock, 'now'>;
  /** The absolute URL of a path below ADMIN_PATH. */
  urlOf(path: string): string;
}

/** What members of an answer are made from. */
export type Presented<From> = From & Pick<AnswerContext, 'urlOf'> & { readonly now: number };

/** A component of the OpenAPI document and its example, created on first use, and the function that shows something in this form. */
export interface AnswerForm<From> {
  schema(): z.ZodType;
  example(): Readonly<Record<string, unknown>>;
  show(from: From, context: AnswerContext): Readonly<Record<string, unknown>>;
}

/** The description of an administrative operation: an operation whose request is checked by schemas. */
export interface AdminDescription<Query extends z.ZodObject, Data extends z.ZodObject, Deps, From>
  extends Pick<Operation<Deps>, 'name' | 'method'>,
    Pick<Documentation, 'summary' | 'description' | 'faults'> {
  /** Below ADMIN_PATH, for example `/clients/:client_id`. */
  readonly path: string;
  readonly params?: Readonly<Record<string, PathParameter>>;
  readonly query?: Query;
  /** The `data` member of the body. */
  readonly data?: { readonly schema: Data; readonly example: object };
  /** It reads `If-Match`. */
  readonly isConditional?: true;
  /** Without a form there is no body: 204. */
  readonly success: {
    readonly status: 200 | 201 | 202 | 204;
    readonly description: string;
    /** The revision of what it shows becomes the ETag. */
    readonly hasEtag?: true;
  } & Partial<AnswerForm<From>>;
  handle(
    request: AdminRequest<z.output<Query>, z.output<Data>>,
    deps: Deps,
  ): MaybePromise<NoInfer<From> | undefined>;
}

/** A form whose members are made from what it shows. */
export function answerForm<From extends object>(
  id: string,
  members: ProjectedMembers<Presented<From>>,
  example: NoInfer<From>,
): AnswerForm<From> {
  const project = projector(members);
  const show = (from: From, { urlOf, auditContext }: AnswerContext) =>
    project({ ...from, urlOf, now: auditContext.now() });
  return {
    schema: lazyComponent(() => projectionSchema(members).meta({ id })),
    example: () => show(example, EXAMPLE_CONTEXT),
    show,
  };
}

/** The form of an answer with one thing, whose URL is that of the path. */
export function singleAnswer<From extends object>(
  id: string,
  members: ProjectedMembers<Presented<From>>,
  example: NoInfer<From>,
  pathOf: (from: From) => string,
) {
  return answerForm<From>(id, { data: members, links: { self: urlAt(pathOf) } }, example);
}

/** A link to the path of something, below ADMIN_PATH. */
export function urlAt<From>(pathOf: (from: From) => string): Projection<Presented<From>> {
  return [link, (from) => from.urlOf(pathOf(from))];
}

/** The service of every example. */
export const EXAMPLE_CONTEXT: AnswerContext = {
  auditContext: { now: () => EXAMPLE_AT },
  urlOf: (path) => `https://idp.example${ADMIN_PATH}${path}`,
};

/** A request from this process, its query and data not checked yet. */
export interface LocalRequest {
  readonly params?: Readonly<Record<string, string>>;
  readonly query?: Readonly<Record<string, unknown>>;
  readonly data?: object;
}

/** An administrative operation, which the command line performs without HTTP. */
interface AdminOperation<in Deps> extends Operation<AdminDeps> {
  /** Throws Fault `invalid` for data that breaks its schema. Returns the function that answers the body, or rejects as `handle` does. */
  prepare(request: LocalRequest): (deps: Deps) => Promise<object | undefined>;
}

/** An administrative operation: an admitted call, validation of query and body (400), then the handler (404, 412, 422). */
export function adminOperation<
  Query extends z.ZodObject,
  Data extends z.ZodObject,
  From,
  Deps extends Pick<AdminDeps, 'clock'> = AdminDeps,
>(description: AdminDescription<Query, Data, Deps, From>): AdminOperation<Deps> {
  const described = description as unknown as AnyDescription;
  const { name, method, path, data } = described;
  return Object.freeze({
    name,
    method,
    path: `${ADMIN_PATH}${path}`,
    access: { scope: ADMIN_SCOPE },
    ...(data ? { body: 'json' as const } : {}),
    handle: (deps: AdminDeps) => handlerOf(described, deps),
    document: (context: DocumentContext) => documentationOf(described, context),
    prepare({ params = {}, query = {}, data: given = {} }: LocalRequest) {
      const request = {
        params,
        query,
        data: data ? checkData(data.schema, given) : {},
        clientId: '',
        requiredRevision: undefined,
        urlOf: (below: string) => below,
      };
      return async (deps: Deps) => {
        const local: AnyRequest = { ...request, auditContext: deps.clock };
        const found = await described.handle(local, deps);
        return found && described.success.show?.(found, local);
      };
    },
  });
}

type AnyRequest = AdminRequest<Record<string, unknown>, Record<string, unknown>>;
type AnyDescription = AdminDescription<z.ZodObject, z.ZodObject, unknown, object>;

function handlerOf(described: AnyDescription, deps: AdminDeps): CallHandler {
  const etagOf = etags(deps.baseUrl);
  const requiredRevision = preconditionReader(etagOf);
  return async (call) => {
    const request = requestOf(call, described, deps, requiredRevision);
    const found = await described.handle(request, deps);
    return found ? replyOf(described.success, found, request, etagOf) : NO_CONTENT;
  };
}

/** The validated request of a call. */
function requestOf(
  call: Call,
  { query, data }: AnyDescription,
  { clock, baseUrl }: AdminDeps,
  requiredRevision: ReturnType<typeof preconditionReader>,
): AnyRequest {
  const { clientId } = call.principal as Principal;
  const caller = { actor: clientId, address: call.address(), requestId: call.requestId };
  return {
    params: call.params,
    query: query ? readParameters(query, call.request.url) : {},
    data: data ? readData(data.schema, call.body ?? '') : {},
    clientId,
    auditContext: { ...clock, caller },
    requiredRevision: requiredRevision(call.request.headers.get('if-match')),
    urlOf: (path) => `${baseUrl}${ADMIN_PATH}${path}`,
  };
}

function replyOf(
  { status, show, hasEtag }: AnyDescription['success'],
  found: object,
  context: AnswerContext,
  etagOf: ReturnType<typeof etags>,
): Reply {
  const body = show?.(found, context) ?? {};
  const headers = {
    'Content-Type': JSON_TYPE,
    'Cache-Control': 'no-store',
    ...(hasEtag ? { ETag: etagOf(found as { readonly revision: Revision }) } : {}),
    ...(status === 201 ? { Location: selfOf(body) } : {}),
  };
  return { status, headers, body: JSON.stringify(body) };
}

/** The URL of a created thing. */
function selfOf(body: object): string {
  return (body as { readonly links: { readonly self: string } }).links.self;
}

function documentationOf(described: AnyDescription, { etag }: DocumentContext): Documentation {
  const { name, summary, description, params, query, data, isConditional, success, faults = [] } = described;
  const { status, hasEtag } = success;
  const example = success.example?.();
  const headers = {
    'Cache-Control': HEADERS.noStore,
    ...(hasEtag ? { ETag: etag } : {}),
    ...(status === 201 && example
      ? { Location: header('The absolute URL of the created resource.', selfOf(example)) }
      : {}),
  };
  const content = success.schema && { [JSON_TYPE]: { schema: success.schema(), example } };
  return {
    summary,
    ...(description === undefined ? {} : { description }),
    tag: ADMIN_TAG,
    isExtension: true,
    ...(params ? { path: pathParameters(params) } : {}),
    ...(query ? { query } : {}),
    headers: isConditional ? ['If-Match', 'X-Request-Id'] : ['X-Request-Id'],
    ...(data ? { body: dataBody(`${name}.request`, data.schema, data.example) } : {}),
    success: { status, description: success.description, headers, ...(content ? { content } : {}) },
    faults,
  };
}

function pathParameters(params: Readonly<Record<string, PathParameter>>): z.ZodObject {
  const parameters = Object.entries(params).map(([name, { description, example, readBy }]) => {
    const reads = readBy === undefined ? {} : { 'x-authrealm-reads': readBy };
    return [name, z.string().meta({ param: { description, example }, ...reads })];
  });
  return z.object(Object.fromEntries(parameters));
}
