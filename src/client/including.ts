import type { Resource } from '../domain/resource.ts';
import { recordPath } from './address.ts';
import { recordWithTag } from './calls.ts';
import type { IncludingCollection } from './collection.ts';
import { readIncluded } from './envelope.ts';
import type { SendRequest } from './exchange.ts';
import { WIRE_FORMATS, type WireFormat } from './wires.ts';

type WireFormats = Readonly<Record<string, WireFormat>>;

/** The additional methods of a collection whose records can be read with records below them. */
export function includingMethods(
  wire: WireFormat,
  send: SendRequest,
): Partial<Pick<IncludingCollection<Resource>, 'getIncluding'>> {
  const children = includableIn(wire);
  if (Object.keys(children).length === 0) return {};
  const depth = wire.collections.length;
  return {
    async getIncluding(key, names, { signal } = {}) {
      const wires = pick(children, names);
      const include = Object.values(wires).map(({ includedAs }) => includedAs);
      const path = `${recordPath(wire, key, depth)}?include=${include.join()}`;
      const answer = await send({ method: 'GET', path, signal });
      const record = recordWithTag(wire, answer, key.slice(0, -1));
      // Without a name the response is the plain record.
      const included = names.length === 0 ? {} : readIncluded(wires, answer.body, record.key);
      return { ...record, included } as never;
    },
  };
}

/** The formats of the records that can be included, by collection. */
function includableIn({ type }: WireFormat): WireFormats {
  return Object.fromEntries(
    Object.entries(WIRE_FORMATS).filter(
      ([, child]) => child.parentType === type && child.includedAs !== undefined,
    ),
  );
}

/** Throws TypeError for a name that is not a collection of such records. */
function pick(children: WireFormats, names: readonly string[]): WireFormats {
  return Object.fromEntries(
    names.map((name) => {
      const wire = children[name];
      if (!wire) throw new TypeError(`each name must be one of ${Object.keys(children).join(', ')}`);
      return [name, wire];
    }),
  );
}
