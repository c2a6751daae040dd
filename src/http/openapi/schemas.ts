import { z } from 'zod';
import { LIMITS } from '../../model/limits.ts';
import { type Member, membersOf, type Resource, shownMembers } from '../../model/resource.ts';
import { includableBelow, RESOURCES } from '../../model/resources.ts';
import { wholeNumber } from '../../model/rule.ts';
import { type InputVerb, type WritableMember, writableMembers } from '../../model/writable_members.ts';

type Shape = Record<string, z.ZodType>;

/** A component of the document, created on first use, because a schema of five members takes 40 KB. */
export function lazyComponent<T extends z.ZodType>(make: () => T): () => T {
  let made: T | undefined;
  return () => {
    made ??= make();
    return made;
  };
}

export const idSchema = z.string().meta({ format: 'uuid' });
export const link = z.string().meta({ format: 'uri' });
export const timestampSchema = z.iso
  .datetime({ precision: 3 })
  .meta({ id: 'Instant', description: 'An instant in UTC, with milliseconds and `Z`.' });

/** The personal values of a log entry. Its parts have names: a generator of Java makes no class for a union with an anonymous one. */
export const personalMembers = z
  .union([
    z.enum(['erased', 'unreadable']).meta({ id: 'PersonalMembersGone' }),
    z
      .strictObject({ before: z.looseObject({}).optional(), after: z.looseObject({}).optional() })
      .meta({ id: 'PersonalMembersKept' }),
  ])
  .meta({
    id: 'PersonalMembers',
    description: 'Personal members before and after; `erased` after an erasure.',
  });

export type RecordSchemas = ReturnType<typeof openRecordSchemas>;

/** The components of a document that resources have, one for each. */
export function openRecordSchemas() {
  const ofEach = <T>(make: (resource: Resource) => T) => {
    const made = new Map(RESOURCES.map((resource) => [resource, make(resource)]));
    return (resource: Resource) => made.get(resource) as T;
  };
  const item = ofEach((resource) => itemSchema(resource, false));
  return {
    item,
    /** An item that names its parent. */
    foundItem: ofEach((resource) => itemSchema(resource, true)),
    record: ofEach((resource) => recordSchema(resource, item)),
    update: ofEach((resource) => requestSchema(resource, 'update')),
  };
}

/**
 * A single record in a response: exactly the members of the description, without secrets. It may have records below it.
 */
function recordSchema(resource: Resource, item: (child: Resource) => z.ZodObject): z.ZodType {
  const { type } = resource;
  const below = includableBelow(resource);
  const rest = below.map(({ includedAs = '', name }) => [
    includedAs,
    link
      .optional()
      .meta({ description: `The rest of the list of ${name} records, if not all are included.` }),
  ]);
  return z
    .strictObject({
      data: z.strictObject(dataShape(resource)),
      ...includedShape(below.map(item), `${type}.included-item`, LIMITS.includedRecordsMax * below.length, {
        description:
          'The records below it, if the request asks for them or has some: by resource, newest first in a realm.',
      }),
      links: z.strictObject({ ...linksShape(resource), ...Object.fromEntries(rest) }),
    })
    .meta({ id: type, description: resource.summary });
}

/** The member `included` with at most `most` objects, which their `type` tells apart; none without kinds of them. */
function includedShape(
  items: readonly z.ZodObject[],
  id: string,
  most: number,
  notes: Readonly<Record<string, unknown>>,
): Shape {
  if (items.length === 0) return {};
  const item = z.discriminatedUnion('type', items as [z.ZodObject, ...z.ZodObject[]]).meta({ id });
  return { included: z.array(item).max(most).optional().meta(notes) };
}

/** `data` of a record: exactly the members of the description, where it places them. */
function dataShape(resource: Resource, relations: Shape = {}): Shape {
  const visible = shownMembers(resource);
  const within = (place: 'meta' | 'relationships' | undefined): Shape =>
    Object.fromEntries(
      visible
        .filter(({ annotation }) => annotation.within === place)
        .map((member) => [member.name, outputMember(member)]),
    );
  const relationships = { ...within('relationships'), ...relations };
  return {
    id: idSchema,
    type: z.literal(resource.type),
    ...within(undefined),
    ...(Object.keys(relationships).length > 0 ? { relationships: z.strictObject(relationships) } : {}),
    meta: z.strictObject({ ...within('meta'), created_at: timestampSchema, updated_at: timestampSchema }),
  };
}

/** A member of a response is null if the record has no value, and present unless it has `omittedIf`. */
export function outputMember({ schema, annotation }: Member): z.ZodType {
  const { inner, notes } = withoutDefault(schema);
  if (annotation.omittedIf !== undefined) return inner.optional().meta({ ...notes });
  const isOptional = inner instanceof z.ZodOptional;
  const bare = isOptional ? (inner.unwrap() as z.ZodType) : inner;
  const known = isOptional && annotation.installation === undefined ? bare.nullable() : bare;
  return known.meta({ ...known.meta(), ...notes, ...referenceNotes(annotation.references) });
}

/** A schema without its default, and the metadata of the whole. */
function withoutDefault(schema: z.ZodType): { readonly inner: z.ZodType; readonly notes: object } {
  const inner = schema instanceof z.ZodDefault ? (schema.unwrap() as z.ZodType) : schema;
  return { inner, notes: schema.meta() ?? {} };
}

/** Names the operation that reads the referenced record, for people and for programs. */
function referenceNotes(references: string | undefined): object {
  if (references === undefined) return {};
  return {
    description: `The ID of the ${references} record, which must be in the same realm.`,
    'x-authrealm-reads': `get-${references}`,
  };
}

/** A record in a list: with its links inside, and with its parent if the path does not name it. */
function itemSchema(resource: Resource, isFound: boolean): z.ZodObject {
  const { parent, type } = resource;
  const above = z.strictObject({
    data: z.strictObject({ id: idSchema, type: z.literal(parent?.type ?? '') }),
  });
  return z
    .strictObject({
      ...dataShape(resource, isFound && parent ? { [parent.type]: above } : {}),
      links: z.strictObject(linksShape(resource)),
    })
    .meta({ id: `${type}.${isFound ? 'found-item' : 'item'}` });
}

function linksShape({ extraLinks = {} }: Resource): Shape {
  return { self: link, ...Object.fromEntries(Object.keys(extraLinks).map((name) => [name, link])) };
}

const count = z.int().min(0);
const limit = z.int().min(1).max(LIMITS.pageRecordsMax);
const nullableLink = link.nullable();

const current = count.meta({ description: 'The number of this page, counted from 1.' });
const total = count.meta({ description: 'The number of pages.' });
const results = z.strictObject({ total: count.meta({ description: 'The number of records.' }) });
const countedPage = z.strictObject({ limit, offset: count, current, total });
export const countedMeta = z.strictObject({ page: countedPage, results }).meta({ id: 'PageCounted' });
/** One object for both kinds of page: generators of typed languages cannot tell such unions apart. */
const pageMeta = z
  .strictObject({
    page: countedPage.partial({ offset: true, current: true, total: true }),
    results: results.optional(),
  })
  .meta({
    id: 'PageMeta',
    description: 'A page that follows a record (`page[after]`) has only `page.limit`.',
  });
export const followedMeta = z.strictObject({ page: z.strictObject({ limit }) }).meta({ id: 'PageFollowed' });
const farLinks = { last: nullableLink, next: nullableLink, prev: nullableLink };
export const pageLinks = z.strictObject({ current: link, first: link, ...farLinks }).meta({
  id: 'PageLinks',
  description: 'Null if there is no such page. A page that follows a record has at most `next`.',
});
const foundLinks = z.strictObject({ current: nullableLink, first: nullableLink, ...farLinks }).meta({
  id: 'FoundLinks',
  description: 'All null if the page is complete, or the filter was in the request body and has no URL.',
});

const allRealmsMeta = z
  .strictObject({
    page: z.strictObject({ limit }),
    realms: z.strictObject({
      next: idSchema
        .nullable()
        .meta({ description: 'Pass it as `after_realm` to continue; null if no later realm has a match.' }),
      cut: idSchema.nullable().meta({
        description:
          'The realm with more matches than fit on the page, or null. Pass it as `after_realm`, with the ID of the last item as ' +
          '`after_id`, for the rest.',
      }),
    }),
    results: z.strictObject({ total: count }).optional().meta({
      description:
        'The number of all matches, for a request with `page.total`; absent if they are too many to count.',
    }),
  })
  .meta({ id: 'PageEverywhere' });

/** The pages of records, by the last word of their component. */
const PAGES = {
  page: { meta: pageMeta, links: pageLinks },
  found: { meta: pageMeta, links: foundLinks },
  searched: { meta: countedMeta, links: foundLinks },
  everywhere: { meta: allRealmsMeta, links: foundLinks },
};

/**
 * A page of records, which may have the records below its own. Those name their parent, as do the records themselves where the path does
 * not name it.
 */
export function recordPageSchema(
  resource: Resource,
  { item, foundItem }: RecordSchemas,
  name: keyof typeof PAGES,
): z.ZodType {
  const isNamedByPath = name === 'page' || (name === 'searched' && !resource.reverseLookup);
  const below = includableBelow(resource).map(foundItem);
  const id = `${resource.type}.${name}`;
  const included = includedShape(below, `${id}-included-item`, LIMITS.includedInPageMax * below.length, {
    description:
      'The records below those of the page, if the request asks for them: by resource, newest first.',
  });
  const data = dataOf(isNamedByPath ? item(resource) : foundItem(resource));
  return z.strictObject({ data, ...PAGES[name], ...included }).meta({ id });
}

/** A page of items. */
export function pageSchema(item: z.ZodType, id: string): z.ZodType {
  return z.strictObject({ data: dataOf(item), meta: pageMeta, links: pageLinks }).meta({ id });
}

function dataOf(item: z.ZodType): z.ZodType {
  return z.array(item).max(LIMITS.pageRecordsMax);
}

/** The body of a POST or PUT, with the members that the request reader accepts. Other members are ignored. */
export function requestSchema(resource: Resource, verb: InputVerb): z.ZodType {
  const { type } = resource;
  const included = verb === 'create' ? includableBelow(resource) : [];
  const items = included.map((child) =>
    requestData(child, verb).meta({ id: `${child.type}.included`, description: child.summary }),
  );
  return z
    .object({
      data: requestData(resource, verb),
      ...includedShape(items, `${type}.included`, LIMITS.recordsPerRequestMax, {
        description:
          'Records to create below it, each like the `data` of its own POST: all in one transaction, or none. Requires their ' +
          `write scopes. At most ${LIMITS.passwordsPerRequestMax} passwords.`,
        'x-authrealm-extension': true,
      }),
    })
    .meta({ id: `${type}.${verb}` });
}

function requestData(resource: Resource, verb: InputVerb): z.ZodObject {
  const inputMembers = writableMembers(resource, verb);
  const within = (place: WritableMember['within']): Shape =>
    Object.fromEntries(
      inputMembers
        .filter((each) => each.within === place)
        .map((each) => [each.name, inputMember(resource, each, verb)]),
    );
  const related = within('relationships');
  const relationships = z.object(related).nullable().optional();
  return z.object({
    type: z.literal(resource.type),
    ...(verb === 'update' ? bodyId(resource) : {}),
    ...within('data'),
    ...(Object.keys(related).length > 0 ? { relationships } : {}),
  });
}

/** An update leaves absent members unchanged, so its schema has no defaults. */
function inputMember(
  resource: Resource,
  { name, schema, within, isRequired }: WritableMember,
  verb: InputVerb,
): z.ZodType {
  const { inner, notes } = withoutDefault(schema);
  const { references, writableBy } =
    membersOf(resource).find((member) => member.name === name)?.annotation ?? {};
  const known = verb === 'update' ? inner.optional() : isRequired ? z.nonoptional(schema) : schema;
  // Clients send null for a relationship that names nothing (docs/wire.md#request-bodies).
  const sent = within === 'relationships' ? known.nullable() : known;
  return sent.meta({
    ...notes,
    ...referenceNotes(references),
    ...(writableBy === 'offline' ? OFFLINE_NOTES : {}),
  });
}

const OFFLINE_NOTES = {
  description: 'Read by a service that sends no requests to providers (`--offline`); others ignore it.',
  'x-authrealm-extension': true,
};

function bodyId({ bodyId, parent }: Resource): Shape {
  if (bodyId === 'ignored') return {};
  const other = bodyId === 'own_or_parent' && parent ? ` or of its ${parent.name}` : '';
  return {
    id: idSchema.optional().meta({ description: `Must be the ID of the record in the path${other}.` }),
  };
}

/** The body of a search. */
export const searchSchema = z
  .object({
    filter: z.string().min(1).max(LIMITS.filterBytesMax),
    page: z
      .object({
        limit: wholeNumber(1, LIMITS.pageRecordsMax).optional(),
        offset: wholeNumber(0, LIMITS.pageOffsetMax).optional(),
      })
      .optional(),
  })
  .meta({ id: 'search' });

/** A request body with this `data`, and an example. */
export function dataBody(id: string, data: z.ZodType, example: object) {
  return { schema: z.object({ data }).meta({ id }), example: { data: example } };
}

/** One object, because generators of typed languages cannot tell a union of two such objects apart. */
const source = z
  .strictObject({
    pointer: z.string().optional().meta({ description: 'A JSON pointer into the body.' }),
    parameter: z.string().optional().meta({ description: 'A query parameter or a header.' }),
  })
  .meta({ id: 'ErrorSource', description: 'One of the two.', minProperties: 1, maxProperties: 1 });

/** The `errors` member of every error response. */
export const errorsShape = {
  errors: z
    .array(
      z
        .strictObject({
          status: z.string().regex(/^[45]\d\d$/),
          title: z.string().min(1),
          detail: z.string().min(1),
          code: z.string().meta({
            description: 'The name of the error, and of its section in the page of errors.',
            'x-authrealm-extension': true,
          }),
          source: source.optional(),
          meta: z
            .strictObject({ oldest_cursor: z.string() })
            .optional()
            .meta({ description: 'For `expired_cursor`: the oldest cursor to continue from.' }),
        })
        .meta({ id: 'Error' }),
    )
    .min(1)
    .max(LIMITS.fieldErrorsMax),
};

export const errorsSchema = z.strictObject(errorsShape).meta({
  id: 'ErrorResponse',
  description: 'One error for each broken rule. No value of the request is repeated.',
});

/** Adds the output constraints of a zod pipe to its input schema. */
export function narrow(context: {
  readonly zodSchema: z.core.$ZodType;
  jsonSchema: object;
  io: string;
}): void {
  const { zodSchema, jsonSchema, io } = context;
  if (io !== 'input' || !(zodSchema instanceof z.ZodPipe)) return;
  const { $schema, ...out } = z.toJSONSchema(zodSchema.out, { io: 'output' });
  Object.assign(jsonSchema, out);
}
