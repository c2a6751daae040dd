import { createReadStream } from 'node:fs';
import { attempt } from '../model/attempt.ts';
import { Refusal } from '../model/fault.ts';
import { fileErrorText } from '../model/file_error.ts';
import { LIMITS } from '../model/limits.ts';
import { membersOf, type Resource } from '../model/resource.ts';
import { isJsonObject } from '../model/text/json_object.ts';
import { type InputVerb, type WritableMember, writableMembers } from '../model/writable_members.ts';
import { standardStreams } from '../ops/process/standard_streams.ts';

/** Values of a record's members as given on a command line. */
export type MemberArguments = Readonly<Record<string, unknown>>;

/** Reads a file, or standard input for `-`, which can be read only once. */
export type ReadInput = (path: string) => Promise<string>;

/**
 * Reads `name=value` words and an optional file with a JSON object; a word overrides the file. A value is text if the member
 * accepts text, else JSON; an empty value is null if the member accepts null. `@FILE` and `@-` read the value from a file or
 * from standard input; `@@` escapes a leading @. Throws a Refusal, which never repeats a value.
 */
export async function readMembers(
  resource: Resource,
  verb: InputVerb,
  { words, body }: { readonly words: readonly string[]; readonly body?: string | undefined },
  read: ReadInput,
): Promise<MemberArguments> {
  const given = body === undefined ? {} : parseJson(await read(body));
  if (!isJsonObject(given)) throw usageError('--body must contain a JSON object of members');
  const members: Record<string, unknown> = { ...given };
  for (const name of Object.keys(members)) writableMember(resource, verb, name);
  for (const [name, text] of pairsOf(words)) {
    const { schema, isPassword } = writableMember(resource, verb, name);
    const isSecret = membersOf(resource).some((each) => each.name === name && each.annotation.secret);
    if ((isPassword || isSecret) && !isReference(text)) {
      throw usageError(
        `${name} is a secret, and command lines are visible to other users of this machine: pass ${name}=@FILE, or ${name}=@- ` +
          'to read it from standard input',
      );
    }
    members[name] = parseValue(schema, await textOf(text, read));
  }
  if (Object.keys(members).length === 0) {
    throw usageError(
      `no members given: pass them as name=value (${namesOf(resource, verb)}), or as a JSON object with --body FILE`,
    );
  }
  return members;
}

/** A JSON array of objects in a file, or in standard input for `-`. Throws a Refusal, which never repeats a value. */
export async function readObjects(path: string, read: ReadInput): Promise<readonly MemberArguments[]> {
  const values = parseJson(await read(path));
  if (Array.isArray(values) && values.every(isJsonObject)) return values;
  throw usageError('--included must contain a JSON array of objects');
}

/** Reads `name=value` words, which must name exactly one of the sets of members by which records can be found. */
export async function readCriteria(
  resource: Resource,
  words: readonly string[],
  read: ReadInput,
): Promise<Readonly<Record<string, string>>> {
  const sets = resource.reverseLookup?.by ?? [];
  const criteria: Record<string, string> = {};
  for (const [name, text] of pairsOf(words)) criteria[name] = await textOf(text, read);
  const names = Object.keys(criteria).sort().join();
  if (!sets.some((set) => [...set].sort().join() === names)) {
    const ways = sets.map((set) => set.map((name) => `${name}=…`).join(' ')).join(', or by ');
    throw usageError(`find needs ${ways}`);
  }
  for (const [name, value] of Object.entries(criteria))
    if (value === '') throw usageError(`${name} has no value`);
  return criteria;
}

/** Reads files and standard input as UTF-8, each at most LIMITS.bodyBytesMax bytes. */
export function openInputReader(): ReadInput {
  let isStdinRead = false;
  return async (path) => {
    if (path === '-' && isStdinRead)
      throw usageError('standard input can be read only once: pass the other value as @FILE');
    isStdinRead ||= path === '-';
    const place = path === '-' ? 'standard input' : path;
    const bytes = await bytesOf(path === '-' ? standardStreams().stdin : createReadStream(path), place);
    try {
      return new TextDecoder('utf-8', { fatal: true }).decode(bytes);
    } catch (error) {
      // Decoded in another encoding it would silently be a different password or name.
      throw new Refusal(`${place} is not UTF-8`, { cause: error });
    }
  };
}

async function bytesOf(stream: AsyncIterable<Uint8Array>, place: string): Promise<Uint8Array> {
  const chunks: Uint8Array[] = [];
  let length = 0;
  try {
    for await (const chunk of stream) {
      chunks.push(chunk);
      length += chunk.length;
      if (length > LIMITS.bodyBytesMax) break;
    }
  } catch (error) {
    throw new Refusal(`${place} cannot be read: ${fileErrorText(error)}`, { cause: error });
  }
  if (length > LIMITS.bodyBytesMax) throw new Refusal(`${place} is larger than ${LIMITS.bodyBytesMax} bytes`);
  return Buffer.concat(chunks);
}

function writableMember(resource: Resource, verb: InputVerb, name: string): WritableMember {
  const found = writableMembers(resource, verb).find((each) => each.name === name);
  if (!found) throw usageError(`unknown member: ${verb} accepts ${namesOf(resource, verb)}`);
  return found;
}

function namesOf(resource: Resource, verb: InputVerb): string {
  return writableMembers(resource, verb)
    .map(({ name }) => name)
    .join(', ');
}

function pairsOf(words: readonly string[]): ReadonlyMap<string, string> {
  const pairs = new Map<string, string>();
  for (const word of words) {
    const sign = word.indexOf('=');
    if (sign < 1) throw usageError('a member must be written as name=value');
    const name = word.slice(0, sign);
    if (pairs.has(name)) throw usageError('a member is given twice');
    pairs.set(name, word.slice(sign + 1));
  }
  return pairs;
}

function isReference(text: string): boolean {
  return text.startsWith('@') && !text.startsWith('@@');
}

async function textOf(text: string, read: ReadInput): Promise<string> {
  if (text.startsWith('@@')) return text.slice(1);
  // Editors and `echo` add a final line break that is not part of the value.
  return isReference(text) ? (await read(text.slice(1))).replace(/\r?\n$/, '') : text;
}

/** An invalid value is sent as it is: the service answers which rule it breaks. */
function parseValue(schema: WritableMember['schema'], text: string): unknown {
  if (schema.safeParse(text).success) return text;
  if (text === '') return schema.safeParse(null).success ? null : text;
  const value = parseJson(text);
  return value !== undefined && schema.safeParse(value).success ? value : text;
}

function parseJson(text: string): unknown {
  return attempt(() => JSON.parse(text));
}

function usageError(message: string): Refusal {
  return new Refusal(message, { isUsage: true });
}
