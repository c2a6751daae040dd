import { areGrantable, intersectRealms, type Realms, type Scopes } from '../../model/principal.ts';
import { isJsonObject, type JsonObject } from '../../model/text/json_object.ts';

/** A rule that maps a claim of an external token to rights. */
export interface ClaimRight {
  /** The path to the claim, outermost name first. */
  readonly claim: readonly string[];
  /** The value that the claim must equal or contain; `*` matches any value. */
  readonly value: string;
  readonly scopes: Scopes;
  readonly realms: Realms;
}

export const ANY_VALUE = '*';

export interface Rights {
  readonly scopes: Scopes;
  readonly realms: Realms;
}

/** Rights as the audit log has them. */
export function loggedRights({ scopes, realms }: Rights) {
  return { scope: [...scopes].join(' '), realms: realms === '*' ? realms : [...realms] };
}

/** Claims that are space-separated lists (RFC 8693, 4.2). */
const WORDS: ReadonlySet<string> = new Set(['scope', 'scp']);
const NOWHERE: Realms = new Set();

/** The rules that claims meet. */
export function metRights(claims: JsonObject, rights: readonly ClaimRight[]): readonly ClaimRight[] {
  return rights.filter((right) => isMet(right, claims));
}

/**
 * The rights of several rules together. No scope is granted in a realm where no single rule grants it: the realms
 * of rules with the same scopes are united, and rules with different scopes combine only in the realms that all
 * of them name.
 */
export function combineRights(met: readonly ClaimRight[]): Rights {
  const bySameScopes = Map.groupBy(met, ({ scopes }) => [...scopes].sort().join(' '));
  const added = [...bySameScopes.values()].map((same) => same.map(({ realms }) => realms).reduce(joinRealms));
  const realms = added.length === 0 ? NOWHERE : added.reduce(intersectRealms);
  const scopes = new Set(met.flatMap((right) => [...right.scopes]));
  if (areGrantable(scopes, realms)) return { scopes, realms };
  return { scopes: new Set([...scopes].filter((scope) => scope !== 'admin')), realms };
}

function joinRealms(left: Realms, right: Realms): Realms {
  return left === '*' || right === '*' ? '*' : new Set([...left, ...right]);
}

function isMet({ claim, value }: ClaimRight, claims: JsonObject): boolean {
  const found = claim.reduce<unknown>(
    (above, name) => (isJsonObject(above) && Object.hasOwn(above, name) ? above[name] : undefined),
    claims,
  );
  const isWords = typeof found === 'string' && WORDS.has(claim.at(-1) ?? '');
  const values: readonly unknown[] = isWords ? found.split(' ') : Array.isArray(found) ? found : [found];
  return value === ANY_VALUE ? found !== undefined && found !== null : values.includes(value);
}
