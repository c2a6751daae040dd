import { createHash } from 'node:crypto';
import { oidcProfileInfo, passwordProfileInfo } from '../src/model/resources.ts';
import { postgresStatements } from '../src/records/store/postgres/dialect.ts';
import { numberParameters } from '../src/sql/postgres/parameters.ts';
import { REALM, type User } from '../test/support/population.ts';

/** The IDs of a user are the MD5 of a prefix and the user's number. */
const ID_PREFIXES = { user: 'u', oidcLink: 'o', passwordLink: 'p' } as const;

/** The users of the population with IDs that pgbench can compute from a number as well: an MD5 as a UUID. */
export function hashedUserAt(number: number): User {
  const uuid = (prefix: string) =>
    createHash('md5')
      .update(`${prefix}${number}`)
      .digest('hex')
      .replace(/^(.{8})(.{4})(.{4})(.{4})/, '$1-$2-$3-$4-');
  return {
    user: uuid(ID_PREFIXES.user),
    oidcLink: uuid(ID_PREFIXES.oidcLink),
    passwordLink: uuid(ID_PREFIXES.passwordLink),
  };
}

/** The statement that the service runs for a lookup. */
export interface LookupStatement {
  readonly text: string;
  readonly values: readonly string[];
}

const LINK_KINDS = [
  { resource: oidcProfileInfo, link: 'oidcLink' },
  { resource: passwordProfileInfo, link: 'passwordLink' },
] as const;

/** `count` lookups, spread evenly over all users, with both link kinds in turn. */
export function lookupStatements(users: number, count: number): readonly LookupStatement[] {
  return Array.from({ length: count }, (_, index) => {
    const { resource, link } = LINK_KINDS[index % 2] as (typeof LINK_KINDS)[number];
    const user = hashedUserAt(Math.floor((index * users) / count));
    return {
      text: numberParameters(postgresStatements(resource).select).text,
      values: [REALM, user.user, user[link]],
    };
  });
}

/** One pgbench script for each link kind; each transaction runs one of those lookups, chosen at random. */
export function lookupScripts(users: number, count: number): readonly string[] {
  return LINK_KINDS.map(({ resource, link }, kind) => {
    const { text } = numberParameters(postgresStatements(resource).select);
    const uuidSql = (prefix: string) => `md5('${prefix}' || :number)::uuid`;
    const parameters = [`'${REALM}'`, uuidSql(ID_PREFIXES.user), uuidSql(ID_PREFIXES[link])];
    const select = text.replace(/\$(\d)/g, (_, position: string) => parameters[Number(position) - 1] ?? '');
    return [
      `\\set index 2 * random(0, ${Math.floor((count - 2) / 2)}) + ${kind}`,
      `\\set number :index * ${users} / ${count}`,
      `${select};`,
    ].join('\n');
  });
}
