import { createHash } from 'node:crypto';
import { oidcProfileInfo, passwordProfileInfo } from '../src/domain/resources.ts';
import { postgresStatements } from '../src/store/postgres/dialect.ts';
import { numberParameters } from '../src/store/postgres/parameters.ts';
import { REALM, type User } from '../test/support/population.ts';

/** What the identifiers of a user are made from, with the user's number behind it. */
const SALTS = { user: 'u', oidcLink: 'o', passwordLink: 'p' } as const;

/** The same users with identifiers that pgbench, too, can make from a number: `md5` of it, as a UUID. */
export function hashedUserAt(number: number): User {
  const uuid = (salt: string) =>
    createHash('md5')
      .update(`${salt}${number}`)
      .digest('hex')
      .replace(/^(.{8})(.{4})(.{4})(.{4})/, '$1-$2-$3-$4-');
  return { user: uuid(SALTS.user), oidcLink: uuid(SALTS.oidcLink), passwordLink: uuid(SALTS.passwordLink) };
}

/** A lookup as the service asks it of the database. */
export interface LookupStatement {
  readonly text: string;
  readonly values: readonly string[];
}

const KINDS = [
  { resource: oidcProfileInfo, link: 'oidcLink' },
  { resource: passwordProfileInfo, link: 'passwordLink' },
] as const;

/** `count` lookups, drawn evenly over all users, both kinds in turn. */
export function lookupStatements(users: number, count: number): readonly LookupStatement[] {
  return Array.from({ length: count }, (_, index) => {
    const { resource, link } = KINDS[index % 2] as (typeof KINDS)[number];
    const user = hashedUserAt(Math.floor((index * users) / count));
    return {
      text: numberParameters(postgresStatements(resource).select).text,
      values: [REALM, user.user, user[link]],
    };
  });
}

/** A script for pgbench that draws one of those lookups each time, one script for each kind. */
export function lookupScripts(users: number, count: number): readonly string[] {
  return KINDS.map(({ resource, link }, kind) => {
    const { text } = numberParameters(postgresStatements(resource).select);
    const made = (salt: string) => `md5('${salt}' || :number)::uuid`;
    const places = [`'${REALM}'`, made(SALTS.user), made(SALTS[link])];
    const select = text.replace(/\$(\d)/g, (_, place: string) => places[Number(place) - 1] ?? '');
    return [
      `\\set index 2 * random(0, ${Math.floor((count - 2) / 2)}) + ${kind}`,
      `\\set number :index * ${users} / ${count}`,
      `${select};`,
    ].join('\n');
  });
}
