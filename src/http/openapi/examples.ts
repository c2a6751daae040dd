import { z } from 'zod';
import { FAULTS, Fault, type FaultCode } from '../../model/fault.ts';
import type { Revision, Uuid } from '../../model/id.ts';
import { type AnyRecord, ancestry, type Key, membersOf, type Resource } from '../../model/resource.ts';
import { RESOURCES } from '../../model/resources.ts';
import { type InputVerb, type WritableMember, writableMembers } from '../../model/writable_members.ts';
import { collectionLinks, selfLinks } from '../pipeline/links.ts';
import { listBody } from '../pipeline/paging.ts';
import { etags, itemPresenterOf, presenterOf } from '../pipeline/present.ts';
import { NEWEST_FIRST } from '../pipeline/query.ts';
import { faultReply, replyOf } from '../server/reply.ts';

/** The instant of every example, in milliseconds since the epoch. */
export const EXAMPLE_AT = Date.UTC(2026, 0, 31, 9);
const REVISION = '17a4c09be25d6f83' as Revision;
/** The installation ID of every example; a real installation generates its own. */
export const INSTALLATION = exampleId(0);

/** An example ID. Each resource has its own, so that the examples are consistent. */
function exampleId(number: number): Uuid {
  return `019c1318-a400-7000-8000-${String(number).padStart(12, '0')}` as Uuid;
}

/** The ID of a resource's example record. */
export function exampleIdOf(resource: Resource): Uuid {
  return exampleId(RESOURCES.indexOf(resource) + 1);
}

const keyOf = (resource: Resource): Key => ancestry(resource).map(exampleIdOf) as unknown as Key;

/** The example record of a resource: example values of its schemas, or generated ones. */
function recordOf(resource: Resource): AnyRecord {
  const members = membersOf(resource).map(({ name, schema }) => [name, exampleOf(resource, name, schema)]);
  return {
    ...Object.fromEntries(members),
    id: exampleIdOf(resource),
    created_at: EXAMPLE_AT,
    updated_at: EXAMPLE_AT,
    revision: REVISION,
  };
}

/** The example value of a member. A discovery URL has the path of a discovery document. */
function exampleOf(resource: Resource, name: string, schema: z.ZodType): unknown {
  const members = membersOf(resource);
  const references = members.find((member) => member.name === name)?.annotation.references;
  const named = RESOURCES.find((other) => other.name === references);
  if (named) return exampleIdOf(named);
  const value = sampleOf(name, z.toJSONSchema(schema, { io: 'output' }));
  const discovery = members.find(({ annotation }) => annotation.discoveredFrom?.member === name);
  return discovery ? `${value}${discovery.annotation.discoveredFrom?.suffix}` : value;
}

type JsonSchema = z.core.JSONSchema.JSONSchema;

const SAMPLES: Readonly<Record<string, string>> = {
  uri: 'https://login.example.com',
  password: 'correct horse battery staple',
};

/** A value that matches a schema: its own example, or one made from its form. */
function sampleOf(name: string, schema: JsonSchema): unknown {
  const [example] = schema.examples ?? schema.enum ?? [];
  if (example !== undefined) return example;
  const [choice] = schema.anyOf ?? [];
  if (choice) return sampleOf(name, choice as JsonSchema);
  if (schema.type === 'array') return [sampleOf(name, schema.items as JsonSchema)];
  if (schema.type === 'object') {
    const properties = Object.entries(schema.properties ?? {});
    return Object.fromEntries(properties.map(([key, each]) => [key, sampleOf(key, each as JsonSchema)]));
  }
  if (schema.type !== 'string') return schema.default ?? false;
  return (
    SAMPLES[schema.format ?? ''] ?? name.replace(/^./, (first) => first.toUpperCase()).replaceAll('_', ' ')
  );
}

/** The body of a POST or PUT with every member. */
export function requestExample(resource: Resource, verb: InputVerb): { readonly data: object } {
  const inputMembers = writableMembers(resource, verb);
  const within = (place: WritableMember['within']) =>
    Object.fromEntries(
      inputMembers
        .filter((each) => each.within === place)
        .map(({ name, schema }) => [name, exampleOf(resource, name, schema)]),
    );
  const relationships = within('relationships');
  const related = Object.keys(relationships).length > 0 ? { relationships } : {};
  return { data: { type: resource.type, ...within('data'), ...related } };
}

/** A filter that finds the example record by these members. */
export function filterExample(resource: Resource, members: readonly string[]): string {
  const record = recordOf(resource);
  return members.map((member) => `eq(${member},${record[member]})`).join(':');
}

export type Examples = ReturnType<typeof openExamples>;

/** Example responses, made by the code that makes responses. */
export function openExamples(baseUrl: string) {
  const context = { baseUrl, installation: INSTALLATION };
  const read = (text: string): unknown => JSON.parse(text);

  function pageOf(resource: Resource, url: string | undefined, includesParent = false) {
    const placed = { key: keyOf(resource), record: recordOf(resource) };
    const present = itemPresenterOf(resource, context, includesParent);
    const page = { kind: 'offset', offset: 0, limit: 25 } as const;
    const listed = { items: [placed], hasMore: false, total: 1 };
    const address = url === undefined ? undefined : { url, carried: '' };
    return read(listBody(present(placed.record, placed.key), { listed, page, sort: NEWEST_FIRST, address }));
  }

  return {
    etag: etags(baseUrl)({ revision: REVISION }),
    /** The example record as it is stored. */
    stored: recordOf,
    location: (resource: Resource) => selfLinks({ ...resource, selfPrefix: '/v2' }, baseUrl)(keyOf(resource)),
    record: (resource: Resource) => read(presenterOf(resource, context)(recordOf(resource), keyOf(resource))),
    /** A page of one record. */
    page(resource: Resource) {
      const line = ancestry(resource);
      return pageOf(resource, collectionLinks(line, baseUrl)(line.map(exampleIdOf)));
    },
    /** The same page as the answer to a search, which has no links. */
    found: (resource: Resource) => pageOf(resource, undefined, resource.reverseLookup !== undefined),
    allRealms(resource: Resource) {
      const { data, links } = pageOf(resource, undefined, true) as { data: object; links: object };
      return { data, meta: { page: { limit: 25 }, realms: { next: null, cut: null } }, links };
    },
  };
}

/** The error body of a fault. */
export function faultExample(code: FaultCode): unknown {
  const { example, missing } = FAULTS[code];
  const reply = example ? replyOf(new Fault(code, [example])) : faultReply(code, {}, missing);
  return JSON.parse(reply.body as string);
}
