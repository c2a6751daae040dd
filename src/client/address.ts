import { parseUuid } from '../model/id.ts';
import type { WireFormat } from './wires.ts';

/**
 * The path of a record or a collection, which has `depth` IDs. Throws TypeError for a missing, surplus or invalid ID: a dot
 * segment in its place would change the path.
 */
export function recordPath(wire: WireFormat, ids: readonly string[], depth: number): string {
  if (ids.length !== depth) {
    throw new TypeError(`expected ${depth} IDs: ${wire.keyNames.slice(0, depth).join(', ')}`);
  }
  const segments = wire.collections.map((collection, index) => {
    if (index >= ids.length) return `/${collection}`;
    return `/${collection}/${parseIdentifier(ids[index], wire.keyNames[index])}`;
  });
  return `/v2${segments.join('')}`;
}

export function searchPath(wire: WireFormat, realm: string): string {
  const [realms] = wire.collections;
  return `/v2/${realms}/${parseIdentifier(realm, wire.keyNames[0])}/${wire.collections.at(-1)}/search`;
}

export function parseIdentifier(raw: string | undefined, name = 'id'): string {
  const id = parseUuid(raw ?? '');
  if (id === undefined) throw new TypeError(`${name} must be an ID of the form 8-4-4-4-12, in hex`);
  return id;
}
