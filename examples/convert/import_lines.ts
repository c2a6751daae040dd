import { createHash } from 'node:crypto';
import { createReadStream } from 'node:fs';
import { parseArgs } from 'node:util';

/**
 * What the converters in this folder share: they read the export of another system and write the lines of `authrealm import` to standard
 * output (docs/guides/moving-in.md). They run on Bun, and on Node.js from 22.18, without network.
 */

/** A user of another system. */
export interface SourceUser {
  /** Stays if it is a UUID; another one is derived from it otherwise. */
  readonly id: string;
  /** The first that is not blank becomes the name. */
  readonly names: readonly (string | null | undefined)[];
  readonly givenName?: string | null | undefined;
  readonly familyName?: string | null | undefined;
  readonly email: string | null | undefined;
  readonly isEmailVerified: boolean;
  /** RFC 3339, or milliseconds since the epoch. */
  readonly createdAt: string | number | undefined;
  /** The members that say whether the user may sign in, as the source has them: import maps them. */
  readonly state: object;
  readonly passwords: readonly SourcePassword[];
  readonly links: readonly SourceLink[];
  /** Members that are not converted. Those that are not empty are counted by name. */
  readonly rest: object;
}

export interface SourcePassword {
  readonly username: string;
  /** Undefined for a username without a password. */
  readonly hash?: string | undefined;
}

export interface SourceLink {
  /** As that of a user; without it, derived from user, issuer and subject. */
  readonly id?: string | undefined;
  /** The name of the provider at the source, which `--issuer` maps. */
  readonly provider: string;
  readonly subject: string;
  /** Where the export states it. `--issuer` takes precedence. */
  readonly issuer?: string | undefined;
}

/** Reads a user of an export; undefined for one that is dropped. `drop` counts what is not converted. */
export type UserReader<T> = (user: T, drop: (kind: string) => void) => SourceUser | undefined;

interface Format {
  /** The names of the arrays with users in an object; without any the file has only users. */
  readonly lists?: readonly string[];
  /** The options that only this converter has. */
  readonly options?: readonly string[];
}

/** An export that cannot be converted. The message names the file, and never has a value of it. */
export class ExportError extends Error {}

/** Runs a converter: `open` gets the values of its own options, and returns what reads a user. */
export async function convert<T>(
  open: (option: (name: string) => string | undefined) => UserReader<T> | Promise<UserReader<T>>,
  { lists = [], options = [] }: Format = {},
): Promise<void> {
  try {
    const { values, files } = readArguments(['into', 'issuer', ...options]);
    const [into] = values.into ?? [];
    if (into === undefined || files.length === 0)
      throw new ExportError('pass --into with the lines of the realm, and the files of the export');
    const output = openOutput(await readTarget(into), readIssuers(values.issuer ?? []));
    const readUser = await open((name) => values[name]?.[0]);
    for (const file of files)
      for await (const user of objectsOf<T>(file, ...lists)) {
        const source = readUser(user, output.drop);
        if (source) await output.write(source);
      }
    await output.end();
  } catch (error) {
    if (!isExpected(error)) throw error;
    process.stderr.write(`${error.message}\n`);
    process.exitCode = 1;
  }
}

/** Errors with a code are of files and of the command line. */
const isExpected = (error: unknown): error is Error =>
  error instanceof ExportError || (error instanceof Error && 'code' in error);

function readArguments(names: readonly string[]) {
  const options = names.map((name) => [name, { type: 'string', multiple: true }] as const);
  const { values, positionals } = parseArgs({
    allowPositionals: true,
    options: Object.fromEntries(options),
  });
  return { values: values as Readonly<Record<string, readonly string[] | undefined>>, files: positionals };
}

/** The issuers by the names that the source has for providers. */
function readIssuers(pairs: readonly string[]): ReadonlyMap<string, string> {
  return new Map(
    pairs.map((pair) => {
      const at = pair.indexOf('=');
      if (at <= 0) throw new ExportError(`--issuer is ${pair}: pass NAME=URL`);
      return [pair.slice(0, at), pair.slice(at + 1)];
    }),
  );
}

/** Where the users go. */
interface Target {
  readonly realm: string;
  /** The profile of their usernames. */
  readonly passwordProfile: string;
  /** The OIDC profiles by issuer: of two with the same one the first. */
  readonly oidcProfiles: ReadonlyMap<string, string>;
}

interface TargetLine {
  readonly type: string;
  readonly id: string;
  readonly meta?: { readonly issuer?: string };
}

/** Reads the lines of a realm and its profiles, as they were imported or as `authrealm export --realm` writes them. */
async function readTarget(file: string): Promise<Target> {
  const realms: string[] = [];
  const passwordProfiles: string[] = [];
  const oidcProfiles = new Map<string, string>();
  for await (const { type, id, meta } of objectsOf<TargetLine>(file)) {
    if (type === 'authentication-realm') realms.push(id);
    if (type === 'password_profile') passwordProfiles.push(id);
    if (type === 'oidc-profile' && meta?.issuer !== undefined && !oidcProfiles.has(meta.issuer))
      oidcProfiles.set(meta.issuer, id);
  }
  const [[realm], [passwordProfile]] = [realms, passwordProfiles];
  if (realm === undefined || passwordProfile === undefined || realms.length + passwordProfiles.length > 2) {
    const found = `it has ${realms.length} realms and ${passwordProfiles.length} password profiles`;
    throw new ExportError(`${file} must have the lines of one realm and one password profile: ${found}`);
  }
  return { realm, passwordProfile, oidcProfiles };
}

/** A domain that cannot exist (RFC 6761, 6.4). */
const NO_ADDRESS = 'no-address.invalid';
const WRITTEN_CHARACTERS = 65_536;

/** Writes the lines of users to standard output, and the counts to standard error. */
function openOutput(target: Target, issuers: ReadonlyMap<string, string>) {
  const converted = { users: 0, usernames: 0, passwords: 0, links: 0 };
  const dropped = new Map<string, number>();
  let withoutAddress = 0;
  let text = '';

  function drop(kind: string): void {
    dropped.set(kind, (dropped.get(kind) ?? 0) + 1);
  }

  function add(kind: keyof typeof converted, line: object): void {
    converted[kind] += 1;
    text += `${JSON.stringify(line)}\n`;
  }

  function addLink(user: string, link: SourceLink): void {
    const { provider } = link;
    const issuer = issuers.get(provider) ?? link.issuer;
    const profile = issuer && target.oidcProfiles.get(issuer);
    if (!issuer) drop(`link of ${provider} without --issuer`);
    else if (!profile) drop(`link of ${provider}: no OIDC profile of ${issuer}`);
    else add('links', linkLine(target, user, { ...link, issuer, profile }));
  }

  async function flush(): Promise<void> {
    if (text !== '') await writeText(process.stdout, text);
    text = '';
  }

  return {
    drop,
    async write(user: SourceUser): Promise<void> {
      const id = idOf(user.id);
      if (!user.email) withoutAddress += 1;
      add('users', userLine(target, id, user));
      for (const password of user.passwords) {
        if (password.hash !== undefined) converted.passwords += 1;
        add('usernames', usernameLine(target, id, password));
      }
      for (const link of user.links) addLink(id, link);
      for (const [name, value] of Object.entries(user.rest)) if (!isEmpty(value)) drop(name);
      if (text.length > WRITTEN_CHARACTERS) await flush();
    },
    async end(): Promise<void> {
      await flush();
      const lines = [`converted: ${listed(Object.entries(converted))}`];
      if (withoutAddress > 0)
        lines.push(`without an e-mail address, now ID@${NO_ADDRESS}: ${withoutAddress}`);
      if (dropped.size > 0) lines.push(`dropped: ${listed([...dropped].sort())}`);
      await writeText(process.stderr, `${lines.join('\n')}\n`);
      if (converted.users === 0) throw new ExportError('no user was converted');
    },
  };
}

const listed = (counts: readonly (readonly [string, number])[]) =>
  counts.map(([what, count]) => `${what} ${count}`).join(', ');

const writeText = (stream: NodeJS.WriteStream, text: string) =>
  new Promise<void>((resolve, reject) => {
    stream.write(text, (error) => (error ? reject(error) : resolve()));
  });

function userLine({ realm }: Target, id: string, user: SourceUser): object {
  const { createdAt } = user;
  const email = user.email || `${id}@${NO_ADDRESS}`;
  return {
    ...{ type: 'user_authentication_info', realm_id: realm, id },
    ...{ name: user.names.find((name) => name?.trim()) ?? email, email },
    ...{ given_name: user.givenName || undefined, family_name: user.familyName || undefined },
    ...user.state,
    meta: {
      created_at: typeof createdAt === 'number' ? new Date(createdAt).toISOString() : createdAt,
      email_vouched: user.isEmailVerified && Boolean(user.email),
    },
  };
}

function usernameLine({ realm, passwordProfile }: Target, user: string, password: SourcePassword): object {
  const { username, hash } = password;
  return {
    ...{ type: 'user_authentication_password_profile_info', realm_id: realm },
    ...{ user_authentication_info_id: user, id: deriveId(`${user} ${username}`), username },
    ...{ password_profile_id: passwordProfile, password_hash: hash },
  };
}

function linkLine(
  { realm }: Target,
  user: string,
  link: SourceLink & { readonly issuer: string; readonly profile: string },
): object {
  const { issuer, subject, profile, id = `${user} ${issuer} ${subject}` } = link;
  return {
    ...{ type: 'user_authentication_oidc_profile_info', realm_id: realm },
    ...{ user_authentication_info_id: user, id: idOf(id), subject, issuer, oidc_profile_id: profile },
  };
}

const isEmpty = (value: unknown) => !value || (typeof value === 'object' && Object.keys(value).length === 0);

const UUID = /^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i;
const idOf = (id: string) => (UUID.test(id) ? id.toLowerCase() : deriveId(id));
const NAMESPACE = Buffer.from('652d285b6c5e49b0946cbd082b59c19c', 'hex');

/** The UUID of version 5 of a name (RFC 9562, 5.5): the same at every run. */
export function deriveId(name: string): string {
  const digest = createHash('sha1').update(NAMESPACE).update(name).digest();
  digest.writeUInt8((digest.readUInt8(6) & 0x0f) | 0x50, 6);
  digest.writeUInt8((digest.readUInt8(8) & 0x3f) | 0x80, 8);
  return digest.toString('hex', 0, 16).replace(/^(.{8})(.{4})(.{4})(.{4})/, '$1-$2-$3-$4-');
}

const READ_BYTES = 262_144;
const UTF8 = new TextDecoder('utf-8', { fatal: true });
const [NEWLINE, QUOTE, COMMA, BACKSLASH] = [0x0a, 0x22, 0x2c, 0x5c];
const [ARRAY, ARRAY_END, OBJECT, OBJECT_END] = [0x5b, 0x5d, 0x7b, 0x7d];
const BYTE_ORDER_MARK = [0xef, 0xbb, 0xbf];
const BETWEEN_OBJECTS: ReadonlySet<number> = new Set([0x09, NEWLINE, 0x0d, 0x20, COMMA, ...BYTE_ORDER_MARK]);

/**
 * The objects of a file: of NDJSON and of JSON arrays or, where `lists` are given, those in the arrays of these names in one object. One
 * of them is in memory at a time. Throws ExportError.
 */
export async function* objectsOf<T>(file: string, ...lists: readonly string[]): AsyncGenerator<T> {
  const scan = openScan(file, lists);
  const chunks: AsyncIterable<Uint8Array> = createReadStream(file, { highWaterMark: READ_BYTES });
  for await (const chunk of chunks) yield* scan.read(chunk) as Generator<T>;
  scan.end();
}

/** Finds objects by their brackets. */
function openScan(file: string, lists: readonly string[]) {
  /** The number of open brackets, and the number with which the object began that is read. */
  const depth = { now: 0, ofObject: 0 };
  const string = { isOpen: false, isEscaped: false, text: '' };
  let line = 1;
  let firstLine = 1;
  let isEmptyFile = true;
  let isInList = lists.length === 0;
  let pieces: Uint8Array[] = [];

  function fail(problem: string): never {
    throw new ExportError(`${file}, line ${line}: ${problem}`);
  }

  function readString(byte: number): void {
    if (string.isEscaped) string.isEscaped = false;
    else if (byte === BACKSLASH) string.isEscaped = true;
    else if (byte === QUOTE) string.isOpen = false;
    else if (depth.ofObject === 0) string.text += String.fromCharCode(byte);
  }

  function open(byte: number): 'begin' | undefined {
    isEmptyFile = false;
    depth.now += 1;
    if (depth.ofObject > 0) return undefined;
    if (depth.now === 1 && byte === ARRAY && lists.length > 0)
      fail(`an array where an object with ${lists.join(' or ')} is expected`);
    // The last string before an array is its name.
    if (depth.now === 2 && byte === ARRAY && lists.includes(string.text)) isInList = true;
    if (byte === ARRAY || !isInList) return undefined;
    depth.ofObject = depth.now;
    firstLine = line;
    return 'begin';
  }

  function close(): 'end' | undefined {
    const isEnd = depth.now === depth.ofObject;
    if (isEnd) depth.ofObject = 0;
    depth.now -= 1;
    if (depth.now < 0) fail('is not JSON');
    if (depth.now === 1 && lists.length > 0) isInList = false;
    return isEnd ? 'end' : undefined;
  }

  function readOther(byte: number): void {
    const isOutside = depth.ofObject === 0 && (lists.length === 0 || depth.now === 0);
    if (isOutside && !BETWEEN_OBJECTS.has(byte)) fail('is not JSON in UTF-8');
    if (byte !== QUOTE) return;
    string.isOpen = true;
    string.text = '';
  }

  /** Whether an object begins or ends that is returned. */
  function step(byte: number): 'begin' | 'end' | undefined {
    if (byte === NEWLINE) line += 1;
    if (string.isOpen) readString(byte);
    else if (byte === OBJECT || byte === ARRAY) return open(byte);
    else if (byte === OBJECT_END || byte === ARRAY_END) return close();
    else readOther(byte);
    return undefined;
  }

  function parse(bytes: Uint8Array): unknown {
    try {
      return JSON.parse(UTF8.decode(bytes));
    } catch (error) {
      line = firstLine;
      return fail(error instanceof SyntaxError ? 'is not JSON' : 'is not UTF-8: save it as UTF-8');
    }
  }

  return {
    *read(chunk: Uint8Array): Generator<unknown> {
      let from = 0;
      for (let at = 0; at < chunk.length; at += 1) {
        const found = step(chunk[at] as number);
        if (found === 'begin') from = at;
        if (found !== 'end') continue;
        const object = parse(Buffer.concat([...pieces, chunk.subarray(from, at + 1)]));
        pieces = [];
        yield object;
      }
      if (depth.ofObject > 0) pieces.push(chunk.subarray(from));
    },
    end(): void {
      if (isEmptyFile) fail('the file is empty');
      if (depth.now > 0) fail('the export ends here, within an object or an array: it is not complete');
    },
  };
}
