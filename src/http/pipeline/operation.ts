import type { z } from 'zod';
import type { ZodOpenApiMediaTypeObject, ZodOpenApiResponsesObject } from 'zod-openapi';
import type { FaultCode } from '../../model/fault.ts';
import type { Resource } from '../../model/resource.ts';
import type { Store } from '../../model/store.ts';
import type { Examples } from '../openapi/examples.ts';
import type { RequestHeader } from '../openapi/parameters.ts';
import type { Faults } from '../openapi/responses.ts';
import type { RecordSchemas } from '../openapi/schemas.ts';
import type { Method } from '../server/router.ts';
import type { CallHandler } from './call.ts';

/**
 * An operation of the API, described once: its route, how its calls are admitted (`admission.ts`), the handler that answers them
 * and its place in the OpenAPI document are one value. `Deps` is what the handler is built from.
 */
export interface Operation<in Deps> {
  /** Its `operationId`. */
  readonly name: string;
  readonly method: Method;
  /** Static segments and `:name` ones, for example `/v2/authentication-realms/:id`. */
  readonly path: string;
  readonly access: Access;
  /** Its kind of work: calls are refused before authentication while such work would wait too long (503). */
  readonly work?: keyof Store['overloaded'];
  /** The resources whose records its parameter `include` adds; each needs its read scope (403). */
  readonly includes?: readonly Resource[];
  /** The IDs in its path, the realm first, are the key of a record or the scope of a collection (404). */
  readonly locates?: 'key' | 'scope';
  /** The body that it reads. A form is read by the handler, whose errors are those of OAuth; a file as well, for as long as it arrives. */
  readonly body?: 'json' | 'form' | 'file';
  /** Exempt from rate limits and load shedding: health checks. */
  readonly isUncounted?: true;
  /** Only for pages of this service, never for origins that CORS lists: a call from another origin is refused, except a GET (403). */
  readonly isOwn?: true;
  /**
   * How it uses the event loop. By default it waits for a turn before its handler. `lookup`: it never waits. `own turn`: it waits
   * itself, or needs no turn.
   */
  readonly loopUse?: 'lookup' | 'own turn';
  /**
   * Its handler admits the call as well, and the fields above only document it. Only lookups by ID, whose list of stages is the model
   * of all others.
   */
  readonly admitsItself?: true;
  /** Makes the function that answers an admitted call; called once, for the first call. */
  readonly handle: (deps: Deps) => CallHandler;
  /** Evaluated when the OpenAPI document is first requested. */
  readonly document: (context: DocumentContext) => Documentation;
}

/**
 * The caller needs a token with this scope, or with any of several; a console session; client credentials or a sign-in code, refused
 * while its address has too many failures, which the handler counts; or nothing.
 */
export type Access =
  | { readonly scope: string; readonly needs?: FurtherNeed }
  | { readonly anyScope: readonly string[] }
  | 'session'
  | 'credentials'
  | 'open';

/** A need besides a scope, in the words of the answer. */
export type FurtherNeed = 'access to all realms' | 'the secret of the client';

/** What the OpenAPI document says about an operation beyond its route. */
export interface Documentation {
  readonly summary: string;
  readonly description?: string;
  readonly tag: string;
  /** It is not part of the API that authrealm is compatible with (docs/extensions.md). */
  readonly isExtension?: true;
  /** Scopes that only some of its requests need, besides those of `includes`. */
  readonly furtherScopes?: readonly string[];
  /** Its path parameters. */
  readonly path?: z.ZodObject;
  readonly query?: z.ZodObject;
  /** Shared request headers. Some of them imply faults and responses. */
  readonly headers?: readonly RequestHeader[];
  /** Request headers of this operation only. */
  readonly ownHeaders?: z.ZodRawShape;
  /** `examples`: those of a file, by media type. */
  readonly body?: {
    readonly schema: z.ZodType;
    readonly example?: unknown;
    readonly examples?: Readonly<Record<string, string>>;
  };
  /** Undefined if it always answers a fault. */
  readonly success?: Success;
  /** Responses that are neither the success nor plain faults, by status. */
  readonly responses?: ZodOpenApiResponsesObject;
  /** Its response is made at start, so it never fails with `internal`. */
  readonly isFixed?: true;
  /** Faults that the other fields do not imply. */
  readonly faults?: readonly FaultCode[];
}

interface Success {
  readonly status: 200 | 201 | 202 | 204;
  readonly description: string;
  /** Response headers in addition to those of every response. */
  readonly headers?: Readonly<Record<string, z.ZodType>>;
  /** By media type. Without content there is no body. */
  readonly content?: Readonly<Record<string, ZodOpenApiMediaTypeObject>>;
}

/** The context that operations are documented in. */
export interface DocumentContext {
  readonly baseUrl: string;
  readonly examples: Examples;
  readonly faults: Faults;
  readonly etag: z.ZodType;
  /** The components of resources, shared by their operations. */
  readonly schemas: RecordSchemas;
}
