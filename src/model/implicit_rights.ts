import { parseUuid, type Uuid } from './id.ts';
import { type Network, parseNetwork } from './ip_address.ts';
import type { Realms, Scopes } from './principal.ts';
import { parseRate, type Rate, rateText } from './token_buckets.ts';

/** What the ID of a client gives without its secret, to any caller (docs/guides/clients-and-tokens.md#storefronts). */
export interface ImplicitRights {
  /** None by default. */
  readonly implicitScopes?: Scopes | undefined;
  /** All that the client reaches by default. */
  readonly implicitRealms?: Realms | undefined;
  readonly ratePerAddress?: Rate | undefined;
  readonly storefronts?: readonly Network[] | undefined;
}

/** The same as members of the API, valid by its schema. */
interface ImplicitMembers {
  readonly implicit_scopes?: readonly string[] | undefined;
  readonly implicit_realms?: '*' | readonly string[] | undefined;
  readonly rate_per_address?: string | null | undefined;
  readonly storefronts?: readonly string[] | undefined;
}

/** The rights of those members that are present. */
export function parseImplicit(members: ImplicitMembers): ImplicitRights {
  const { implicit_scopes: scopes, implicit_realms: realms, rate_per_address: rate, storefronts } = members;
  return {
    ...(scopes && { implicitScopes: new Set(scopes) }),
    ...(realms && {
      implicitRealms: realms === '*' ? realms : new Set(realms.map((id) => parseUuid(id) as Uuid)),
    }),
    ...(rate !== undefined && { ratePerAddress: parseRate(rate ?? '') }),
    ...(storefronts && { storefronts: storefronts.map((cidr) => parseNetwork(cidr) as Network) }),
  };
}

/** All members; also for the row of a client and the audit log. */
export function describeImplicit({
  implicitScopes = new Set(),
  implicitRealms = '*',
  ratePerAddress,
  storefronts = [],
}: ImplicitRights) {
  return {
    implicit_scopes: [...implicitScopes],
    implicit_realms: implicitRealms === '*' ? implicitRealms : [...implicitRealms],
    rate_per_address: ratePerAddress ? rateText(ratePerAddress) : null,
    storefronts: storefronts.map(({ cidr }) => cidr),
  };
}
