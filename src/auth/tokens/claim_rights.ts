import {
  areGrantable,
  INSTANCE_WIDE,
  intersectRealms,
  type Realms,
  type Scopes,
} from '../../domain/principal.ts';
import type { JsonObject } from './unique_key_json.ts';

/** What a claim of a token is worth here. */
export interface ClaimRight {
  /** The names that lead to the claim, from the outside in. */
  readonly claim: readonly string[];
  /** What the claim must say, or hold; `*` is whatever it says. */
  readonly value: string;
  readonly scopes: Scopes;
  readonly realms: Realms;
}

export const ANY_VALUE = '*';

interface Rights {
  readonly scopes: Scopes;
  readonly realms: Realms;
}

/** Claims that are words in one text (RFC 8693, 4.2). */
const WORDS: ReadonlySet<string> = new Set(['scope', 'scp']);
const NOWHERE: Realms = new Set();

/**
 * What these claims come to. Nobody gets a scope in a realm that no right names together: rights of the same scopes add
 * their realms, and different scopes go together in those realms alone that all of them name.
 */
export function rightsFromClaims(claims: JsonObject, rights: readonly ClaimRight[]): Rights {
  const met = rights.filter((right) => isMet(right, claims));
  const bySameScopes = Map.groupBy(met, ({ scopes }) => [...scopes].sort().join(' '));
  const added = [...bySameScopes.values()].map((same) => same.map(({ realms }) => realms).reduce(joinRealms));
  const realms = added.length === 0 ? NOWHERE : added.reduce(intersectRealms);
  const scopes = new Set(met.flatMap((right) => [...right.scopes]));
  if (areGrantable(scopes, realms)) return { scopes, realms };
  return { scopes: new Set([...scopes].filter((scope) => !INSTANCE_WIDE.has(scope))), realms };
}

function joinRealms(left: Realms, right: Realms): Realms {
  return left === '*' || right === '*' ? '*' : new Set([...left, ...right]);
}

function isMet({ claim, value }: ClaimRight, claims: JsonObject): boolean {
  const found = claim.reduce<unknown>(
    (above, name) => (isObject(above) && Object.hasOwn(above, name) ? above[name] : undefined),
    claims,
  );
  const isWords = typeof found === 'string' && WORDS.has(claim.at(-1) ?? '');
  const values: readonly unknown[] = isWords ? found.split(' ') : Array.isArray(found) ? found : [found];
  return value === ANY_VALUE ? found !== undefined && found !== null : values.includes(value);
}

function isObject(value: unknown): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
