import type { Resource } from '../model/resource.ts';
import { recordPath } from './address.ts';
import { collectionPath, postOnce, recordWithTag } from './calls.ts';
import type { IncludingCollection } from './collection.ts';
import { readIncluded, writeSingle } from './envelope.ts';
import type { SendRequest, ServiceResponse } from './exchange.ts';
import { WIRE_FORMATS, type WireFormat } from './wires.ts';

type MemberValues = Readonly<Record<string, unknown>>;
type WireFormats = Readonly<Record<string, WireFormat>>;

/** The additional methods of a collection whose records can be read with records below them. */
export function includingMethods(
  wire: WireFormat,
  send: SendRequest,
): Partial<Pick<IncludingCollection<Resource>, 'getIncluding' | 'createIncluding'>> {
  const children = Object.entries(WIRE_FORMATS).filter(
    ([, child]) => child.parentType === wire.type && child.includedAs !== undefined,
  );
  if (children.length === 0) return {};
  const depth = wire.collections.length;

  function recordOf(answer: ServiceResponse, wires: WireFormats, scope: readonly string[]) {
    const record = recordWithTag(wire, answer, scope);
    return { ...record, included: readIncluded(wires, answer.body, record.key) } as never;
  }

  return {
    async getIncluding(key, names, { signal } = {}) {
      const wires = pick(new Map(children), names);
      const include = Object.values(wires).map(({ includedAs }) => includedAs);
      const path = `${recordPath(wire, key, depth)}?include=${include.join()}`;
      return recordOf(await send({ method: 'GET', path, signal }), wires, key.slice(0, -1));
    },
    async createIncluding(scope, input, below: MemberValues, options) {
      const wires = pick(new Map(children), Object.keys(below));
      const included = Object.entries(wires).flatMap(([name, child]) =>
        (below[name] as readonly MemberValues[]).map((each) => writeSingle(child, each).data),
      );
      const body = { ...writeSingle(wire, input), included };
      const answer = await postOnce(send, collectionPath(wire, scope), body, options);
      return recordOf(answer, wires, scope);
    },
  };
}

/** Throws TypeError for a name that is not a collection of such records. */
function pick(children: ReadonlyMap<string, WireFormat>, names: readonly string[]): WireFormats {
  return Object.fromEntries(
    names.map((name) => {
      const wire = children.get(name);
      if (!wire) throw new TypeError(`each name must be one of ${[...children.keys()].join(', ')}`);
      return [name, wire];
    }),
  );
}
