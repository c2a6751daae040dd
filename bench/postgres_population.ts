import { oidcProfileInfo, passwordProfileInfo } from '../src/domain/resources.ts';
import { statementsOf } from '../src/store/postgres/dialect.ts';
import { numbered } from '../src/store/postgres/places.ts';
import { REALM, userAt } from './population.ts';

/** A lookup as the service asks it of the database. */
export interface LookupStatement {
  readonly text: string;
  readonly values: readonly string[];
}

/** `count` lookups, drawn evenly over all users, both kinds in turn. */
export function lookupStatements(users: number, count: number): readonly LookupStatement[] {
  return Array.from({ length: count }, (_, index) => {
    const { user, oidcLink, passwordLink } = userAt(Math.floor((index * users) / count));
    const isOidc = index % 2 === 0;
    const { select } = statementsOf(isOidc ? oidcProfileInfo : passwordProfileInfo);
    return { text: numbered(select).text, values: [REALM, user, isOidc ? oidcLink : passwordLink] };
  });
}

/** The same with the values in the text, for who takes no others. */
export function literalStatements(users: number, count: number): readonly string[] {
  return lookupStatements(users, count).map(({ text, values }) =>
    text.replace(/\$(\d)/g, (_, place: string) => `'${values[Number(place) - 1]}'`),
  );
}
