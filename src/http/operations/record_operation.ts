import { z } from 'zod';
import { LIMITS } from '../../model/limits.ts';
import type { Resource } from '../../model/resource.ts';
import { includableBelow } from '../../model/resources.ts';
import { includeParameter, pathParameters } from '../openapi/parameters.ts';
import { jsonAnswer, jsonContent, REVALIDATED } from '../openapi/responses.ts';
import { parameterNames } from '../pipeline/links.ts';
import type { Documentation, DocumentContext, FurtherNeed, Operation } from '../pipeline/operation.ts';

/** An operation on the records of one resource; without what all such operations share. */
interface RecordDescription<Deps> extends Omit<Operation<Deps>, 'access' | 'document'> {
  readonly right: 'read' | 'write';
  readonly needs?: FurtherNeed | undefined;
  /** The description is that of the resource by default. With a further need it is an extension. */
  readonly document: (context: DocumentContext) => Omit<Documentation, 'tag' | 'path'>;
}

export function recordOperation<Deps>(
  resource: Resource,
  { right, needs, document, ...operation }: RecordDescription<Deps>,
): Operation<Deps> {
  const { name, path } = operation;
  // The path of a self link is an addition where it is not below /v2.
  const isSelfLink = !path.startsWith('/v2/');
  const names = parameterNames(path);
  return {
    ...operation,
    name: isSelfLink ? `${name}-by-self-link` : name,
    access: { scope: `${resource.scope}:${right}`, ...(needs ? { needs } : {}) },
    document(context) {
      const documentation = document(context);
      return {
        description: needs ? `${resource.summary} Requires a client with ${needs}.` : resource.summary,
        ...documentation,
        tag: resource.name,
        ...(isSelfLink || needs ? { isExtension: true } : {}),
        ...(names.length > 0 ? { path: pathParameters(resource, names) } : {}),
        headers: [...(documentation.headers ?? []), 'X-Request-Id'],
      };
    },
  };
}

/** A response with one record. */
export function recordAnswer(resource: Resource, { examples, etag, schemas }: DocumentContext) {
  return {
    headers: { ETag: etag, ...REVALIDATED },
    content: jsonContent(schemas.record(resource), examples.record(resource)),
  };
}

/** A response with a page of records. */
export function pageAnswer(schema: z.ZodType, example: unknown) {
  return jsonAnswer('The records. An empty page is a success.', REVALIDATED, schema, example);
}

/** The parameters of a page that may include records. */
export function parametersOfPage(resource: Resource, query: z.ZodObject = z.object({})): z.ZodObject {
  const children = includableBelow(resource);
  if (children.length === 0) return query;
  const description =
    'Adds all records of these kinds below those of the page in `included`. Requires their read scopes. Unknown values are ' +
    `ignored. More than ${LIMITS.includedInPageMax} of one kind are 400: ask for a smaller page.`;
  return query.extend(includeParameter(children, description).shape);
}
