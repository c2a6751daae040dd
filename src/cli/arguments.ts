import { createReadStream } from 'node:fs';
import { Refusal } from '../domain/fault.ts';
import { LIMITS } from '../domain/limits.ts';
import { membersOf, type Resource } from '../domain/resource.ts';
import { type InputVerb, type Sayable, sayableOf } from '../domain/text/visible_text.ts';

/** What is said about a record on a command line, by member. */
export type Said = Readonly<Record<string, unknown>>;

/** Reads what a file holds, or standard input for `-`; the latter once. */
export type ReadInput = (path: string) => Promise<string>;

/**
 * Reads `name=value` words and, where one is named, a file with a JSON object; a word wins over the file. A value is text
 * where the member takes text, else JSON. Nothing after the sign is null where the member takes it. `@FILE` and `@-` stand
 * for what is read there; `@@` begins a text with an @. Throws a Refusal that never repeats a value.
 */
export async function readSaid(
  resource: Resource,
  verb: InputVerb,
  { words, body }: { readonly words: readonly string[]; readonly body?: string | undefined },
  read: ReadInput,
): Promise<Said> {
  const said: Record<string, unknown> = body === undefined ? {} : objectIn(await read(body));
  for (const name of Object.keys(said)) sayable(resource, verb, name);
  for (const [name, text] of pairsOf(words)) {
    const { schema, isPassword } = sayable(resource, verb, name);
    if ((isPassword || isSecret(resource, name)) && !isElsewhere(text)) throw wrong(SECRET(name));
    said[name] = meant(schema, await textOf(text, read));
  }
  if (Object.keys(said).length === 0) {
    throw wrong(`nothing is said: give members as name=value (${namesOf(resource, verb)}), or --body FILE`);
  }
  return said;
}

const SECRET = (name: string): string =>
  `${name} is a secret, and others on this machine can read a command line: give ${name}=@FILE, or ${name}=@- to read ` +
  'it from standard input';

/** Reads `name=value` words that are to name one of the sets of members by which records are found. */
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
    throw wrong(`these records are found by ${ways}`);
  }
  for (const [name, value] of Object.entries(criteria)) if (value === '') throw wrong(`${name} has no value`);
  return criteria;
}

/** A reader of files and of standard input, each UTF-8 and at most as long as a body may be. */
export function inputReader(): ReadInput {
  let isTaken = false;
  return async (path) => {
    if (path === '-' && isTaken) throw wrong('standard input is read once: give the other value in a file');
    isTaken ||= path === '-';
    const place = path === '-' ? 'standard input' : path;
    const bytes = await bytesOf(path === '-' ? process.stdin : createReadStream(path), place);
    try {
      return new TextDecoder('utf-8', { fatal: true }).decode(bytes);
    } catch (error) {
      // Read as anything else it would be another password, another name.
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
    throw new Refusal(`${place}: ${(error as Error).message}`, { cause: error });
  }
  if (length > LIMITS.bodyBytesMax)
    throw new Refusal(`${place} holds more than ${LIMITS.bodyBytesMax} bytes`);
  return Buffer.concat(chunks);
}

function isSecret(resource: Resource, name: string): boolean {
  return membersOf(resource).some((each) => each.name === name && each.placement.secret !== undefined);
}

function sayable(resource: Resource, verb: InputVerb, name: string): Sayable {
  const found = sayableOf(resource, verb).find((each) => each.name === name);
  if (!found) throw wrong(`${verb} takes the members ${namesOf(resource, verb)}, and no other`);
  return found;
}

function namesOf(resource: Resource, verb: InputVerb): string {
  return sayableOf(resource, verb)
    .map(({ name }) => name)
    .join(', ');
}

function pairsOf(words: readonly string[]): ReadonlyMap<string, string> {
  const pairs = new Map<string, string>();
  for (const word of words) {
    const sign = word.indexOf('=');
    if (sign < 1) throw wrong('members are written name=value');
    const name = word.slice(0, sign);
    if (pairs.has(name)) throw wrong('a member is given twice');
    pairs.set(name, word.slice(sign + 1));
  }
  return pairs;
}

function isElsewhere(text: string): boolean {
  return text.startsWith('@') && !text.startsWith('@@');
}

async function textOf(text: string, read: ReadInput): Promise<string> {
  if (text.startsWith('@@')) return text.slice(1);
  // Editors and `echo` end a file with a line break that nobody means.
  return isElsewhere(text) ? (await read(text.slice(1))).replace(/\r?\n$/, '') : text;
}

/** What breaks the member's rules goes to the service as it is: it says which rule. */
function meant(schema: Sayable['schema'], text: string): unknown {
  if (schema.safeParse(text).success) return text;
  if (text === '') return schema.safeParse(null).success ? null : text;
  const value = jsonIn(text);
  return value !== undefined && schema.safeParse(value).success ? value : text;
}

function jsonIn(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

function objectIn(text: string): Record<string, unknown> {
  const value = jsonIn(text);
  if (typeof value === 'object' && value !== null && !Array.isArray(value)) return { ...value };
  throw wrong('--body must hold a JSON object of members');
}

function wrong(message: string): Refusal {
  return new Refusal(message, { isUsage: true });
}
