import { createHash } from 'node:crypto';
import { closeSync, openSync, readFileSync, readSync } from 'node:fs';
import { parseArgs } from 'node:util';

/**
 * What the converters in this folder share: they read an export of another system, and write lines of `authrealm import` to standard output
 * (docs/guides/moving-in.md).
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
  /** Without a hash, a username without a password. */
  readonly passwords: readonly { readonly username: string; readonly hash?: string | undefined }[];
  readonly links: readonly SourceLink[];
  /** Members that are not converted. Those that are not empty are counted by name. */
  readonly rest: object;
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

/** An export that cannot be converted. The message names the place, and has no value of the export. */
export class ExportError extends Error {}

/**
 * Runs a converter: `open` gets the value of the option that only this one has, and returns what reads a user. With `lists`, a file is one
 * JSON object with users in these arrays; otherwise each line has a user, or an array of users.
 */
export async function convert<T>(
  open: (value: string | undefined) => UserReader<T>,
  { lists, option }: { readonly lists?: readonly string[]; readonly option?: string } = {},
): Promise<void> {
  try {
    const { into, issuers, own, files } = readArguments(option);
    const target = readTarget(into, issuers);
    const readUser = open(own);
    const [converted, dropped]: [Counts, Counts] = [new Map(), new Map()];
    const linesOfUser = (source: T) => {
      const user = readUser(source, (kind) => add(dropped, kind));
      return user ? linesOf(user, target, converted, dropped) : [];
    };
    for (const file of files) await writeLines(objectsOf<T>(file, lists), linesOfUser);
    if (converted.size > 0) process.stderr.write(`converted: ${listed([...converted])}\n`);
    if (dropped.size > 0) process.stderr.write(`dropped: ${listed([...dropped].sort())}\n`);
    if (converted.size === 0) throw new ExportError('no user was converted');
  } catch (error) {
    // Errors with a code are of files and of the command line.
    if (!(error instanceof ExportError || (error instanceof Error && 'code' in error))) throw error;
    process.stderr.write(`${error.message}\n`);
    process.exitCode = 1;
  }
}

function readArguments(option: string | undefined) {
  const names = ['into', 'issuer', ...(option === undefined ? [] : [option])];
  const { values, positionals: files } = parseArgs({
    allowPositionals: true,
    options: Object.fromEntries(names.map((name) => [name, { type: 'string', multiple: true }] as const)),
  });
  const given = values as Readonly<Record<string, readonly string[] | undefined>>;
  const [into] = given.into ?? [];
  if (into === undefined || files.length === 0)
    throw new ExportError('pass --into with the lines of the realm, and the files of the export');
  return { into, issuers: given.issuer ?? [], own: given[option ?? '']?.[0], files };
}

type Counts = Map<string, number>;
const add = (to: Counts, kind: string, more = 1) => to.set(kind, (to.get(kind) ?? 0) + more);
const listed = (counts: readonly (readonly [string, number])[]) =>
  counts.map(([kind, number]) => `${kind} ${number}`).join(', ');

/** Where the users go: the realm and its profiles in a file of import lines, and the issuers by the names of providers. */
function readTarget(file: string, pairs: readonly string[]) {
  const [realms, passwordProfiles]: [string[], string[]] = [[], []];
  const oidcProfiles = new Map<string, string>();
  type Line = { readonly type: string; readonly id: string; readonly meta?: { readonly issuer?: string } };
  for (const [{ type, id, meta }] of objectsOf<Line>(file)) {
    if (type === 'authentication-realm') realms.push(id);
    if (type === 'password_profile') passwordProfiles.push(id);
    if (type === 'oidc-profile') oidcProfiles.set(meta?.issuer ?? '', id);
  }
  const [[realm], [passwordProfile]] = [realms, passwordProfiles];
  if (realm === undefined || passwordProfile === undefined || realms.length + passwordProfiles.length > 2)
    throw new ExportError(`${file} must have the lines of one realm and of one password profile`);
  const issuers = new Map(pairs.map((pair) => pair.split(/=(.*)/, 2) as [string, string]));
  for (const [name, issuer] of issuers)
    if (!issuer) throw new ExportError(`--issuer is ${name}: pass NAME=URL`);
  return { realm, passwordProfile, oidcProfiles, issuers };
}

type Target = ReturnType<typeof readTarget>;

/** The lines of a user, its usernames and its links. */
function linesOf(user: SourceUser, target: Target, converted: Counts, dropped: Counts): readonly object[] {
  const id = idOf(user.id);
  const owner = { realm_id: target.realm, user_authentication_info_id: id };
  const usernames = user.passwords.map(({ username, hash }) => ({
    ...{ type: 'user_authentication_password_profile_info', ...owner, id: idOf(`${id} ${username}`) },
    ...{ username, password_profile_id: target.passwordProfile, password_hash: hash },
  }));
  const links = user.links.flatMap(({ provider, subject, ...link }) => {
    const issuer = target.issuers.get(provider) ?? link.issuer ?? '';
    const oidc_profile_id = target.oidcProfiles.get(issuer);
    const problem = issuer === '' ? ' without --issuer' : `: no OIDC profile of ${issuer}`;
    if (oidc_profile_id === undefined) add(dropped, `link of ${provider}${problem}`);
    const own = { id: idOf(link.id ?? `${id} ${issuer} ${subject}`), subject, issuer, oidc_profile_id };
    return oidc_profile_id ? [{ type: 'user_authentication_oidc_profile_info', ...owner, ...own }] : [];
  });
  add(converted, 'users');
  add(converted, 'usernames', usernames.length);
  add(converted, 'passwords', user.passwords.filter(({ hash }) => hash !== undefined).length);
  add(converted, 'links', links.length);
  if (!user.email) add(converted, 'users without an e-mail address');
  for (const [name, value] of Object.entries(user.rest)) if (!isEmpty(value)) add(dropped, name);
  return [userLine(user, target.realm, id), ...usernames, ...links];
}

/** A user without an e-mail address gets one in a domain that cannot exist (RFC 6761, 6.4). */
function userLine(user: SourceUser, realm_id: string, id: string): object {
  const { createdAt, email = '', givenName, familyName } = user;
  const address = email || `${id}@no-address.invalid`;
  return {
    ...{ type: 'user_authentication_info', realm_id, id, email: address },
    name: user.names.find((name) => name?.trim()) ?? address,
    ...{ given_name: givenName || undefined, family_name: familyName || undefined },
    ...user.state,
    meta: {
      created_at: typeof createdAt === 'number' ? new Date(createdAt).toISOString() : createdAt,
      email_vouched: user.isEmailVerified && address === email,
    },
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

/** Writes the lines of users. An error of `read` is one of the format, and its message could have a value. */
async function writeLines<T>(objects: Iterable<readonly [T, string]>, read: (user: T) => readonly object[]) {
  for (const [user, where] of objects) {
    let text = '';
    try {
      for (const line of read(user)) text += `${JSON.stringify(line)}\n`;
    } catch (cause) {
      throw new ExportError(`${where} is no user in the format that this converter reads`, { cause });
    }
    if (text !== '') await writeOut(text);
  }
}

const writeOut = (text: string) =>
  new Promise<void>((resolve, reject) => {
    process.stdout.write(text, (error) => (error ? reject(error) : resolve()));
  });

/** The objects of a file as `convert` says, each with its place for a message. Throws ExportError. */
export function* objectsOf<T>(file: string, lists?: readonly string[]): Generator<readonly [T, string]> {
  if (lists) {
    const whole = parse(readFileSync(file), file) as Partial<Record<string, readonly T[]>> | null;
    const objects = lists.flatMap((name) => whole?.[name] ?? []);
    for (const [index, object] of objects.entries()) yield [object, `${file}, user ${index + 1}`];
    return;
  }
  let number = 0;
  for (const line of linesIn(file)) {
    number += 1;
    const where = `${file}, line ${number}`;
    for (const object of [parse(line, where)].flat()) yield [object as T, where];
  }
}

const CHUNK_BYTES = 1024 * 1024;

/** The lines of a file that may be larger than memory. */
function* linesIn(file: string): Generator<Uint8Array> {
  const descriptor = openSync(file, 'r');
  try {
    /** The beginning of a line whose end has not been read. */
    let parts: Uint8Array[] = [];
    for (;;) {
      const buffer = Buffer.allocUnsafe(CHUNK_BYTES);
      const chunk = buffer.subarray(0, readSync(descriptor, buffer));
      if (chunk.length === 0) break;
      let from = 0;
      for (let end = chunk.indexOf('\n'); end >= 0; end = chunk.indexOf('\n', from)) {
        yield Buffer.concat([...parts, chunk.subarray(from, end)]);
        parts = [];
        from = end + 1;
      }
      parts.push(chunk.subarray(from));
    }
    yield Buffer.concat(parts);
  } finally {
    closeSync(descriptor);
  }
}

const UTF8 = new TextDecoder('utf-8', { fatal: true });

/** JSON; an empty line has no object. */
function parse(bytes: Uint8Array, where: string): unknown {
  try {
    const text = UTF8.decode(bytes);
    return text.trim() === '' ? [] : JSON.parse(text);
  } catch (cause) {
    throw new ExportError(`${where} is not JSON in UTF-8, or was cut short`, { cause });
  }
}
