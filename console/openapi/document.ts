/** The parts of an OpenAPI 3.1 document that the pages read. */

export interface Schema {
  readonly $ref?: string;
  readonly type?: string | readonly string[];
  readonly format?: string;
  readonly description?: string;
  readonly const?: unknown;
  readonly enum?: readonly unknown[];
  readonly default?: unknown;
  readonly examples?: readonly unknown[];
  readonly pattern?: string;
  readonly minLength?: number;
  readonly maxLength?: number;
  readonly minimum?: number;
  readonly maximum?: number;
  readonly minItems?: number;
  readonly maxItems?: number;
  readonly properties?: Readonly<Record<string, Schema>>;
  readonly required?: readonly string[];
  readonly items?: Schema;
  readonly anyOf?: readonly Schema[];
  readonly oneOf?: readonly Schema[];
  readonly additionalProperties?: boolean | Schema;
}

export interface Parameter {
  readonly in: 'path' | 'query' | 'header';
  readonly name: string;
  readonly required?: boolean;
  readonly description?: string;
  readonly example?: unknown;
  readonly schema?: Schema;
}

export interface Content {
  readonly schema?: Schema;
  readonly example?: unknown;
  readonly examples?: Readonly<Record<string, { readonly value: unknown }>>;
}

export interface Header {
  readonly description?: string;
  readonly example?: unknown;
}

interface Response {
  readonly description: string;
  readonly headers?: Readonly<Record<string, Header | Reference>>;
  readonly content?: Readonly<Record<string, Content>>;
}

interface Reference {
  readonly $ref: string;
}

interface OperationObject {
  readonly operationId: string;
  readonly summary?: string;
  readonly description?: string;
  readonly tags?: readonly string[];
  readonly security?: readonly Readonly<Record<string, readonly string[]>>[];
  readonly parameters?: readonly (Parameter | Reference)[];
  readonly requestBody?: { readonly required?: boolean; readonly content: Readonly<Record<string, Content>> };
  readonly responses: Readonly<Record<string, Response | Reference>>;
  readonly 'x-authrealm-extension'?: boolean;
}

interface Tag {
  readonly name: string;
  readonly 'x-displayName'?: string;
  readonly description?: string;
}

export interface ApiDocument {
  readonly info: { readonly title: string; readonly version: string; readonly description?: string };
  readonly security?: OperationObject['security'];
  readonly tags: readonly Tag[];
  readonly paths: Readonly<Record<string, Readonly<Record<string, OperationObject>>>>;
  readonly components: Readonly<Record<string, Readonly<Record<string, unknown>>>>;
}

/** An operation with resolved references, except in schemas. */
export interface Operation {
  readonly id: string;
  readonly method: string;
  readonly path: string;
  readonly summary: string;
  readonly description: string | undefined;
  readonly tag: string;
  /** Undefined if no token is required. */
  readonly scopes: readonly string[] | undefined;
  readonly parameters: readonly Parameter[];
  readonly body:
    | { readonly mediaType: string; readonly isRequired: boolean; readonly content: Content }
    | undefined;
  readonly responses: readonly { readonly status: string; readonly response: Response }[];
  readonly isExtension: boolean;
}

export interface Group {
  readonly name: string;
  readonly description: string | undefined;
  readonly operations: readonly Operation[];
}

/** The document, prepared for display. */
export interface Api {
  readonly document: ApiDocument;
  readonly groups: readonly Group[];
  readonly operations: ReadonlyMap<string, Operation>;
}

export function apiOf(document: ApiDocument): Api {
  const operations = Object.entries(document.paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, operation]) => operationOf(document, [method, path], operation)),
  );
  const groups = document.tags.map(({ name, 'x-displayName': title = name, description }) => ({
    name: title,
    description,
    operations: operations.filter(({ tag }) => tag === name),
  }));
  return { document, groups, operations: new Map(operations.map((each) => [each.id, each])) };
}

function operationOf(
  document: ApiDocument,
  [method, path]: readonly [string, string],
  operation: OperationObject,
): Operation {
  const { operationId, summary = '', description, tags = [], requestBody } = operation;
  const security = operation.security ?? document.security ?? [];
  const [mediaType, content] = Object.entries(requestBody?.content ?? {})[0] ?? [];
  return {
    ...{ id: operationId, method: method.toUpperCase(), path, summary, description, tag: tags[0] ?? '' },
    scopes: security.length === 0 ? undefined : security.flatMap((way) => Object.values(way).flat()),
    parameters: (operation.parameters ?? []).map((each) => resolveReference<Parameter>(document, each)),
    body:
      mediaType !== undefined && content
        ? { mediaType, content, isRequired: requestBody?.required === true }
        : undefined,
    responses: Object.entries(operation.responses).map(([status, each]) => ({
      status,
      response: resolveReference<Response>(document, each),
    })),
    isExtension: operation['x-authrealm-extension'] === true,
  };
}

/** Resolves a reference. */
export function resolveReference<T extends object>(document: ApiDocument, thing: T | Reference): T {
  if (!('$ref' in thing) || typeof thing.$ref !== 'string') return thing as T;
  const [, , kind = '', name = ''] = thing.$ref.split('/');
  return (document.components[kind]?.[name.replaceAll('~1', '/').replaceAll('~0', '~')] ?? {}) as T;
}

/** The last segment of a reference. */
export function nameOf(reference: string): string {
  return reference.slice(reference.lastIndexOf('/') + 1);
}

/** The example, or the first of several. */
export function exampleOf({ example, examples }: Content): unknown {
  return example ?? Object.values(examples ?? {})[0]?.value;
}

/** The operations that contain every word of `term`, by group. */
export function matching(groups: readonly Group[], term: string): readonly Group[] {
  const words = term.toLowerCase().split(/\s+/).filter(Boolean);
  const matches = ({ id, method, path, summary, scopes }: Operation) => {
    const text = `${id} ${method} ${path} ${summary} ${scopes?.join(' ') ?? ''}`.toLowerCase();
    return words.every((word) => text.includes(word));
  };
  return groups
    .map((group) => ({ ...group, operations: group.operations.filter(matches) }))
    .filter(({ operations }) => operations.length > 0);
}
