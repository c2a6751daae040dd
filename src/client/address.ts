import { parseUuid } from '../domain/id.ts';
import type { Wire } from './wires.ts';

/**
 * The path of a record, or of the collection it stands in: as many identifiers as `depth` says. Throws TypeError where one
 * is missing, too many or no identifier: a dot in its place would lead elsewhere.
 */
export function pathOf(wire: Wire, ids: readonly string[], depth: number): string {
  if (ids.length !== depth) {
    throw new TypeError(
      `an address of ${depth} identifiers was expected: ${wire.keyNames.slice(0, depth).join(', ')}`,
    );
  }
  const segments = wire.collections.map((collection, index) => {
    if (index >= ids.length) return `/${collection}`;
    return `/${collection}/${identifier(ids[index], wire.keyNames[index])}`;
  });
  return `/v2${segments.join('')}`;
}

/** The path under which the records of a realm are found. */
export function searchPath(wire: Wire, realm: string): string {
  const [realms] = wire.collections;
  return `/v2/${realms}/${identifier(realm, wire.keyNames[0])}/${wire.collections.at(-1)}/search`;
}

export function identifier(raw: string | undefined, name = 'id'): string {
  const id = parseUuid(raw ?? '');
  if (id === undefined) throw new TypeError(`${name} must be an identifier of the form 8-4-4-4-12, in hex`);
  return id;
}
