import { ancestry, type Key, type KeyPrefix, type Resource } from '../../model/resource.ts';

/** The path of a resource's record below the version segment, as a route pattern: one `:column` per key column. */
export function itemPattern(resource: Resource): string {
  return ancestry(resource)
    .map((ancestor) => `/${ancestor.collection}/:${paramName(ancestor, resource)}`)
    .join('');
}

/** The names of the parameters in a path, in their order, which is that of a key. */
export function parameterNames(path: string): readonly string[] {
  return [...path.matchAll(/:(\w+)/g)].map(([, name = '']) => name);
}

/** The path of a resource's collection. */
export function collectionPattern(resource: Resource): string {
  return `/v2${itemPattern(resource)}`.replace(/\/:id$/, '');
}

/** The path of the reverse lookup of a whole realm. */
export function reverseLookupPattern(resource: Resource): string {
  const [realm] = ancestry(resource);
  return `/v2/${realm?.collection}/:realm_id/${resource.collection}`;
}

function paramName(ancestor: Resource, resource: Resource): string {
  return ancestor === resource ? 'id' : (ancestor.foreignKey ?? 'id');
}

/** The paths of a record: below `/v2`, and the path of its self link. */
export function itemPatterns(resource: Resource): readonly string[] {
  const pattern = itemPattern(resource);
  return resource.selfPrefix === '/v2'
    ? [`/v2${pattern}`]
    : [`/v2${pattern}`, `${resource.selfPrefix}${pattern}`];
}

/** The parts of a record's self link; each precedes the ID at that depth of its key. */
export function selfLinkTexts(resource: Resource, baseUrl: string): readonly string[] {
  return ancestry(resource).map(({ collection }, depth) =>
    depth === 0 ? `${baseUrl}${resource.selfPrefix}/${collection}/` : `/${collection}/`,
  );
}

/** Builds the absolute self link of a single record, from the configured base URL and never from a request. */
export function selfLinks(resource: Resource, baseUrl: string): (key: Key) => string {
  const texts = selfLinkTexts(resource, baseUrl);
  return (key) => texts.map((text, depth) => `${text}${key[depth]}`).join('');
}

/** Builds the absolute URL of a collection in a scope, without a query. */
export function collectionLinks(line: readonly Resource[], baseUrl: string): (scope: KeyPrefix) => string {
  const [first = '', ...below] = line.map(({ collection }) => `/${collection}`);
  return (scope) =>
    below.reduce((url, text, depth) => `${url}/${scope[depth]}${text}`, `${baseUrl}/v2${first}`);
}
