import { type Command, InvalidArgumentError, Option } from 'commander';
import type { FindableCollection, IncludingCollection, ResourceRecord, SortKey } from '../client/client.ts';
import { rawFilter } from '../client/client.ts';
import { Refusal } from '../model/fault.ts';
import { LIMITS } from '../model/limits.ts';
import { keyColumns, type Resource, shownMembers } from '../model/resource.ts';
import { type CollectionName, DESCRIPTIONS, includableBelow, RESOURCES } from '../model/resources.ts';
import { isVisibleAscii, VISIBLE_ASCII_RULE } from '../model/text/visible_ascii.ts';
import { printNotice } from '../ops/process/standard_streams.ts';
import {
  type MemberArguments,
  openInputReader,
  type ReadInput,
  readCriteria,
  readMembers,
  readObjects,
} from './arguments.ts';
import { addConnection, type ConnectionOptions, connectBy } from './connection.ts';
import type { CliContext } from './context.ts';
import { commandLineName, identifiersIn, parseResourceName, RESOURCE_HELP } from './identifiers.ts';
import { parseWholeNumber } from './option_values.ts';
import { writeOut } from './output.ts';
import { namesAndValues, openTable, printable, printableJson } from './table.ts';

interface RecordOptions extends ConnectionOptions {
  readonly json?: true;
  readonly include?: string;
  readonly included?: string;
  readonly filter?: string;
  readonly sort?: SortKey;
  readonly limit?: number;
  readonly body?: string;
  readonly ifMatch?: string;
  readonly idempotencyKey?: string;
  readonly id?: true;
}

/** The arguments of a command, and the collection that it uses. */
interface Call {
  readonly resource: Resource;
  /** Its methods for links and for records below it are there if the resource has them. */
  readonly records: FindableCollection<Resource> & IncludingCollection<Resource>;
  readonly words: readonly string[];
  readonly options: RecordOptions;
}

type AnyEntry = ResourceRecord<Resource> & { readonly etag?: string };

/** `get`, `list`, `find`, `create`, `update`: the records of a running service, through its HTTP API. */
export function addRecordCommands(program: Command, context: CliContext): void {
  const add = (verb: string, description: string, argument: string, work: (call: Call) => Promise<void>) =>
    addConnection(
      program.command(verb).argument('<resource>', RESOURCE_HELP).argument('[words...]', argument),
    )
      .description(description)
      .option('--json', 'write JSON, one record per line')
      .action(async (word: string, words: string[], options: RecordOptions, command: Command) => {
        // These commands use no settings, but a misspelled environment variable must be reported.
        context.settingsOf(command);
        const resource = parseResourceName(word);
        const { directory, refusalOf } = connectBy(options, context.environmentOf(command));
        const records = directory[collectionOf(resource)] as unknown as Call['records'];
        try {
          await work({ resource, records, words, options });
        } catch (error) {
          throw refusalOf(error);
        }
      });

  add('get', 'show a record', 'the IDs in its path, realm first', get).option(
    '--include <RESOURCES>',
    'also show the records below a user-info: oidc-profile-info, password-profile-info, or both, separated by a comma',
  );
  add(
    'list',
    'list the records of a realm or of a user',
    'the IDs in the path of the list, realm first',
    list,
  )
    .option('--filter <FILTER>', 'only records that match, for example eq(name,Jane Doe)')
    .addOption(
      new Option('--sort <KEY>', 'sort key; a leading - sorts in descending order').choices(SORT_KEYS),
    )
    .option('--limit <N>', 'maximum number of records (default: all)', parseWholeNumber());
  add('find', 'find links in a realm by their values', 'the realm ID; then the values as name=value', find);
  add(
    'create',
    'create a record and show it',
    `the IDs of the records above it, realm first; then ${MEMBERS_HELP}`,
    create,
  )
    .option('--id', 'print only the ID of the record')
    .option('--body <FILE>', 'file with a JSON object of members; - for standard input')
    .option(
      '--included <FILE>',
      'file with a JSON array of links to create with a user-info, each with its type; - for standard input',
    )
    .option(
      '--idempotency-key <KEY>',
      'idempotency key: repeated with the same members, the command creates one record',
      visible,
    );
  add(
    'update',
    'change members of a record and show it',
    `the IDs in its path, realm first; then ${MEMBERS_HELP}`,
    update,
  )
    .option('--body <FILE>', 'file with a JSON object of members; - for standard input')
    .option('--if-match <ETAG>', 'only if the record still has this ETag', visible);
}

const SORT_KEYS = ['created_at', '-created_at', 'id', '-id'] as const satisfies readonly SortKey[];

const MEMBERS_HELP =
  'members as name=value; name=@FILE reads the value from a file, name=@- from standard input';

/** The collection of the client library for a resource. */
export function collectionOf(resource: Resource): CollectionName {
  const found = Object.entries(DESCRIPTIONS).find(([, described]) => described === resource);
  if (!found) throw new Error(`the client library has no ${resource.name}`);
  return found[0] as CollectionName;
}

async function get({ resource, records, words, options }: Call): Promise<void> {
  const key = identifiersIn(resource, words, keyColumns(resource).length);
  if (options.include === undefined) return show(resource, await records.get(key), options);
  const children = childrenNamed(resource, options.include.split(','));
  const found = await records.getIncluding(key, children.map(collectionOf) as never[]);
  await showIncluding(resource, found, children, options);
}

/** The resources that can be included with a resource. Throws a Refusal if there are none. */
function includable(resource: Resource, option: string): readonly Resource[] {
  const known = includableBelow(resource);
  if (known.length > 0) return known;
  throw new Refusal(`${option} does not apply to ${commandLineName(resource)}`, { isUsage: true });
}

/** The resources of these names among those that can be included. Throws a Refusal that lists them. */
function childrenNamed(resource: Resource, words: readonly string[]): readonly Resource[] {
  const known = includable(resource, '--include');
  const names = known.map(commandLineName);
  if (!words.every((word) => names.includes(word)))
    throw new Refusal(`--include must be a comma-separated list of ${names.join(', ')}`, { isUsage: true });
  return known.filter((child) => words.includes(commandLineName(child)));
}

async function list({ resource, records, words, options }: Call): Promise<void> {
  const { filter, sort, limit = LIMITS.pageRecordsMax } = options;
  if (!resource.filterables && (filter !== undefined || sort !== undefined)) {
    throw new Refusal('lists of this resource cannot be filtered or sorted', { isUsage: true });
  }
  const scope = identifiersIn(resource, words, keyColumns(resource).length - 1);
  const listed = records.list(scope, {
    filter: filter === undefined ? undefined : rawFilter(filter),
    sort,
    pageSize: Math.min(limit, LIMITS.pageRecordsMax),
  });
  await showAll(resource, listed, scope.length, options);
}

async function find({ resource, records, words, options }: Call): Promise<void> {
  if (!resource.reverseLookup) {
    const known = RESOURCES.filter(({ reverseLookup }) => reverseLookup !== undefined)
      .map(commandLineName)
      .join(', ');
    throw new Refusal(`find works for ${known}; for other resources use list --filter`, { isUsage: true });
  }
  const [realm = ''] = identifiersIn(resource, words.slice(0, 1), 1);
  const found = await records.find(realm, await readCriteria(resource, words.slice(1), openInputReader()));
  await showAll(resource, found, 1, options);
}

async function create({ resource, records, words, options }: Call): Promise<void> {
  const depth = keyColumns(resource).length - 1;
  const scope = identifiersIn(resource, words.slice(0, depth), depth);
  const { idempotencyKey, included, body } = options;
  const read = openInputReader();
  const members = await readMembers(resource, 'create', { words: words.slice(depth), body }, read);
  const children = included === undefined ? undefined : await readChildren(resource, included, read);
  const below = Array.from(children ?? [], ([child, inputs]) => [collectionOf(child), inputs] as const);
  const created = await (children
    ? records.createIncluding(scope, members, Object.fromEntries(below) as never, { idempotencyKey })
    : records.create(scope, members, { idempotencyKey }));
  if (options.id) return writeOut(`${printable(created.id)}\n`);
  if (!children) return show(resource, created, options);
  await showIncluding(resource, created as never, [...children.keys()], options);
}

/** The records of a file that can be created below a record, by the resource that their `type` names. */
async function readChildren(
  resource: Resource,
  path: string,
  read: ReadInput,
): Promise<ReadonlyMap<Resource, readonly MemberArguments[]>> {
  const known = includable(resource, '--included');
  const objects = await readObjects(path, read);
  const byType = Map.groupBy(objects, ({ type }) => known.find((child) => child.type === type));
  if (byType.has(undefined)) {
    const types = known.map(({ type }) => type).join(', ');
    throw new Refusal(`each object in --included needs a type, one of ${types}`, { isUsage: true });
  }
  return new Map(known.map((child) => [child, byType.get(child) ?? []]));
}

async function update({ resource, records, words, options }: Call): Promise<void> {
  const depth = keyColumns(resource).length;
  const key = identifiersIn(resource, words.slice(0, depth), depth);
  const memberInput = { words: words.slice(depth), body: options.body };
  const members = await readMembers(resource, 'update', memberInput, openInputReader());
  await show(resource, await records.update(key, members, { ifMatch: options.ifMatch }), options);
}

/** A record with its key members from `depth` on, and its other members in the order of the description. */
function entryOf(
  resource: Resource,
  { key, ...record }: AnyEntry,
  depth: number,
): Readonly<Record<string, unknown>> {
  const names = keyColumns(resource).map((name, index): [string, unknown] => [name, key[index]]);
  return { ...Object.fromEntries(names.slice(depth)), ...record };
}

/** Shows a record: one line for each member and link, or JSON. */
export async function show(
  resource: Resource,
  record: AnyEntry,
  { json }: Pick<RecordOptions, 'json'>,
): Promise<void> {
  const { links, ...entry } = entryOf(resource, record, 0);
  const addresses = Object.entries(links as object).map(([name, url]) => [`links.${name}`, url] as const);
  const text = json
    ? `${printableJson({ ...entry, links })}\n`
    : namesAndValues([...Object.entries(entry), ...addresses]);
  await writeOut(text);
}

/** Shows a record, then a table of each kind of records below it. */
async function showIncluding(
  resource: Resource,
  { included, ...record }: AnyEntry & { readonly included: Readonly<Record<string, readonly AnyEntry[]>> },
  children: readonly Resource[],
  options: RecordOptions,
): Promise<void> {
  const lists = children.map((child) => [child, included[collectionOf(child)] ?? []] as const);
  if (options.json) {
    const below = lists.map(([child, records]) => [
      child.includedAs,
      records.map((each) => entryOf(child, each, 0)),
    ]);
    const entry = { ...entryOf(resource, record, 0), included: Object.fromEntries(below) };
    await writeOut(`${printableJson(entry)}\n`);
    return;
  }
  await show(resource, record, options);
  for (const [child, records] of lists) {
    await writeOut(`\n${commandLineName(child)}: ${records.length}\n`);
    if (records.length > 0) await showAll(child, records, keyColumns(resource).length, options);
  }
}

/** A table leaves out the first `depth` key members, which the caller passed. */
async function showAll(
  resource: Resource,
  records: AsyncIterable<AnyEntry> | Iterable<AnyEntry>,
  depth: number,
  { json, limit }: RecordOptions,
): Promise<void> {
  const members = shownMembers(resource);
  const shown = members
    .filter(({ annotation }) => annotation.within !== 'relationships')
    .map(({ name }) => name);
  const table = openTable([...keyColumns(resource).slice(depth), ...shown, 'created_at'], writeOut);
  let count = 0;
  for await (const record of records) {
    if (json) await writeOut(`${printableJson(entryOf(resource, record, 0))}\n`);
    else await table.add(entryOf(resource, record, 0));
    count += 1;
    if (count === limit) break;
  }
  if (!json) await table.end();
  if (!json && count === 0) printNotice('authrealm: no records');
}

/** Text of an option that becomes a header. Throws InvalidArgumentError. */
export function visible(raw: string): string {
  if (!isVisibleAscii(raw)) throw new InvalidArgumentError(`Expected ${VISIBLE_ASCII_RULE}.`);
  return raw;
}
