import type { z } from 'zod';
import type { ZodOpenApiMediaTypeObject, ZodOpenApiResponsesObject } from 'zod-openapi';
import type { FaultCode } from '../../domain/fault.ts';
import type { Resource } from '../../domain/resource.ts';
import type { Examples } from '../openapi/examples.ts';
import type { RequestHeader } from '../openapi/parameters.ts';
import type { Faults } from '../openapi/responses.ts';
import type { Method, Route } from '../server/router.ts';
import { readBody } from './body.ts';
import { type CallHandler, runStages, type Stage } from './call.ts';
import type { LoopBudget } from './loop_budget.ts';

/**
 * An operation of the API, described once: its route, the stages that answer it and its place in the OpenAPI document
 * are one value. `Deps` is what its stages are built from.
 */
export interface Operation<in Deps> {
  /** Its `operationId`. */
  readonly name: string;
  readonly method: Method;
  /** Static segments and `:name` ones, for example `/v2/authentication-realms/:id`. */
  readonly path: string;
  /** What the caller needs: a token with this scope or with any of several, a console session, or nothing. */
  readonly access: { readonly scope: string } | { readonly anyScope: readonly string[] } | 'session' | 'open';
  /** Exempt from rate limits and load shedding: health checks. */
  readonly isUncounted?: true;
  /** Only for pages of this service, never for origins that CORS lists. */
  readonly isOwn?: true;
  /**
   * How it uses the event loop. By default it waits for a turn before its last stage, or after its body was read. `lookup`: it
   * never waits. `own turn`: it waits itself, or needs no turn.
   */
  readonly loopUse?: 'lookup' | 'own turn';
  /** Built once, for the first call. The last stage answers. */
  readonly stages: (deps: Deps) => readonly Stage[];
  /** Evaluated when the OpenAPI document is first requested. */
  readonly document: (context: DocumentContext) => Documentation;
}

/** What the OpenAPI document says about an operation beyond its route. */
export interface Documentation {
  readonly summary: string;
  readonly description?: string;
  readonly tag: string;
  /** It is not part of the API that authrealm is compatible with (docs/extensions.md). */
  readonly isExtension?: true;
  /** Scopes that only some of its requests need. */
  readonly furtherScopes?: readonly string[];
  /** Its path parameters. */
  readonly path?: z.ZodObject;
  readonly query?: z.ZodObject;
  /** Shared request headers. Some of them imply faults and responses. */
  readonly headers?: readonly RequestHeader[];
  /** Request headers of this operation only. */
  readonly ownHeaders?: z.ZodRawShape;
  readonly body?: Body;
  /** Undefined if it always answers a fault. */
  readonly success?: Success;
  /** Responses that are neither the success nor plain faults, by status. */
  readonly responses?: ZodOpenApiResponsesObject;
  /** Its response is made at start, so it never fails with `internal`. */
  readonly isFixed?: true;
  /** Faults that the other fields do not imply. */
  readonly faults?: readonly FaultCode[];
}

interface Body {
  readonly schema: z.ZodType;
  readonly example: unknown;
  /** Another example, by its name. */
  readonly further?: Readonly<Record<string, unknown>> | undefined;
  /** JSON by default. */
  readonly form?: true;
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
  /** One component for each resource, shared by its operations. */
  readonly records: ReadonlyMap<Resource, z.ZodType>;
  readonly items: ReadonlyMap<Resource, z.ZodType>;
  readonly foundItems: ReadonlyMap<Resource, z.ZodType>;
  readonly updates: ReadonlyMap<Resource, z.ZodType>;
}

/** What every operation needs. */
export interface OperationDeps {
  readonly loopBudget: LoopBudget;
}

/** The routes of operations, one for each path. */
export function routesFrom<Deps extends OperationDeps>(
  operations: readonly Operation<Deps>[],
  deps: Deps,
): readonly Route[] {
  const byPath = Map.groupBy(operations, ({ path }) => path);
  return [...byPath].map(([pattern, [first, ...others]]) => {
    const { isUncounted, isOwn } = first as Operation<Deps>;
    const all = [first as Operation<Deps>, ...others];
    return {
      pattern,
      answers: Object.fromEntries(
        all.map((each) => [each.method, openHandler(() => admittedStages(each, deps))]),
      ),
      ...(isUncounted ? { isUncounted } : {}),
      ...(isOwn ? { isOwn } : {}),
    };
  });
}

/** Builds the stages for the first call: a start would wait for those of every operation. */
function openHandler(build: () => readonly Stage[]): CallHandler {
  let handler: CallHandler | undefined;
  return (call) => {
    handler ??= runStages(build());
    return handler(call);
  };
}

/** The stages of an operation, and its wait for the event loop. */
function admittedStages<Deps extends OperationDeps>(
  operation: Operation<Deps>,
  deps: Deps,
): readonly Stage[] {
  const stages = operation.stages(deps);
  const { countLookup, admit } = deps.loopBudget;
  switch (operation.loopUse) {
    case 'lookup':
      return [countLookup, ...stages];
    case 'own turn':
      return stages;
    default:
      return stages.toSpliced(firstOfWork(stages), 0, admit);
  }
}

/**
 * Where the work of an operation begins: after its body, which arrives in a later turn of the event loop, or with its last stage. A
 * caller without a valid token is refused before, and takes no place in the queue.
 */
function firstOfWork(stages: readonly Stage[]): number {
  const body = stages.indexOf(readBody);
  return body < 0 ? stages.length - 1 : body + 1;
}
