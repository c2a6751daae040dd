import { Fault } from '../domain/fault.ts';
import type { Uuid } from '../domain/id.ts';
import { type Key, membersOf, type Resource } from '../domain/resource.ts';
import { email } from '../domain/text/folding.ts';
import type { TraceContext } from '../domain/trace_context.ts';
import { type RecordSecretLocation, secretLocation } from './format.ts';
import type { Input, InputVerb } from './input.ts';
import type { Guard } from './store.ts';

/**
 * The issuer of an identity provider, or the reason for the failure in one of a few fixed phrases. `isPassing`: a later
 * attempt may succeed.
 */
export type DiscoveryOutcome =
  | { readonly issuer: string }
  | { readonly refusal: string; readonly isPassing: boolean };

/** Functions of other modules that the directory needs. */
export interface DirectoryDeps {
  /** Encrypts a secret for its location. */
  seal(location: RecordSecretLocation, plain: string): Uint8Array;
  /** Throws Fault `overloaded` if too many passwords wait. */
  hashPassword(password: string): Promise<{ readonly hash: string; readonly isNormalised: boolean }>;
  /**
   * Reads the issuer from a provider's discovery document. Throws Fault `overloaded` if too many requests are running, for
   * this realm or for all.
   */
  discoverIssuer(
    discoveryUrl: string,
    realm: Uuid,
    trace: TraceContext | undefined,
  ): Promise<DiscoveryOutcome>;
}

export interface DirectorySettings {
  /** The ID of this installation: the origin of a realm that names none (docs/wire.md#realms). */
  readonly installation: string;
  /** A link must have the issuer of its profile. */
  readonly issuersMatch: boolean;
}

type Members = Record<string, unknown>;

/** The input of a record. */
interface FinishInput {
  readonly key: Key;
  readonly input: Input;
  /** The place of its members in the body of the request. */
  readonly at: string;
  /** The trace of the request. */
  readonly trace: TraceContext | undefined;
}

/** Adds members that callers do not write. */
type Step = (members: Members, input: FinishInput) => void | Promise<void>;

/** Completes the members of a record. Throws Fault `conflict`, `overloaded`. */
export type Finish = (input: FinishInput) => Promise<Members>;

/** The members to add for a resource and verb; for most links there are none. */
export function finisherFor(
  resource: Resource,
  verb: InputVerb,
  makers: DirectoryDeps,
  { installation }: DirectorySettings,
): Finish {
  const steps: readonly Step[] = [
    ...(verb === 'create' ? defaultSteps(resource, installation) : []),
    ...discoverySteps(resource, makers),
    ...hashSteps(resource, makers),
    ...sealSteps(resource, makers),
  ];
  return async (finishInput) => {
    const members: Members = { ...finishInput.input.members };
    for (const step of steps) await step(members, finishInput);
    return members;
  };
}

/** Gives a new record its origin, and the defaults of members that callers cannot write. */
function defaultSteps(resource: Resource, id: string): readonly Step[] {
  return membersOf(resource).flatMap(({ name, schema, annotation }): Step[] => {
    const value = annotation.installation
      ? { data: { id, type: annotation.installation } }
      : schema.safeParse(undefined).data;
    if (value === undefined) return [];
    return [
      (members) => {
        if (members[name] === undefined) members[name] = value;
      },
    ];
  });
}

function discoverySteps(resource: Resource, { discoverIssuer }: DirectoryDeps): readonly Step[] {
  return membersOf(resource).flatMap(({ name, annotation: { discoveredFrom } }): Step[] => {
    if (!discoveredFrom) return [];
    return [
      async (members, { key, at, trace }) => {
        const url = members[discoveredFrom];
        if (typeof url !== 'string') return;
        const discovered = await discoverIssuer(url, key[0], trace);
        if ('refusal' in discovered) {
          const { refusal: rule, isPassing } = discovered;
          throw new Fault('conflict', [{ field: `${at}.${discoveredFrom}`, rule }], undefined, isPassing);
        }
        members[name] = discovered.issuer;
      },
    ];
  });
}

function hashSteps({ inputs = {} }: Resource, { hashPassword }: DirectoryDeps): readonly Step[] {
  return Object.entries(inputs).map(
    ([name, into]): Step =>
      async (members, { input }) => {
        const password = input.passwords[name];
        if (password === undefined) return;
        const { hash, isNormalised } = await hashPassword(password);
        members[into.hash] = hash;
        members[into.isNormalised] = isNormalised;
      },
  );
}

function sealSteps(resource: Resource, { seal }: DirectoryDeps): readonly Step[] {
  return membersOf(resource)
    .filter(({ annotation }) => annotation.secret === 'sealed')
    .map(
      ({ name }): Step =>
        (members, { key }) => {
          const plain = members[name];
          if (typeof plain === 'string') members[name] = seal(secretLocation(resource, name, key), plain);
        },
    );
}

const EMAIL = email();

/** The guards of written members. */
export type GuardsOf = (members: Readonly<Record<string, unknown>>) => readonly Guard[];

const NO_GUARDS: readonly Guard[] = Object.freeze([]);

/** The guards of a resource's members. */
export function guardsFor(resource: Resource, { issuersMatch }: DirectorySettings): GuardsOf {
  const guarded = membersOf(resource).filter(
    ({ annotation: { emailIf, sameAs, immutableWhileReferenced } }) =>
      emailIf || (sameAs && issuersMatch) || immutableWhileReferenced,
  );
  if (guarded.length === 0) return () => NO_GUARDS;
  return (members) =>
    guarded.flatMap(({ name: member, annotation }): Guard[] => {
      const { emailIf, sameAs, immutableWhileReferenced, discoveredFrom = member } = annotation;
      if (members[member] === undefined) return [];
      if (emailIf && !EMAIL.safeParse(members[member]).success) {
        return [{ kind: 'unless', member, condition: emailIf }];
      }
      if (sameAs && issuersMatch)
        return [{ kind: 'same', member, reference: sameAs.reference, of: sameAs.member }];
      return immutableWhileReferenced ? [{ kind: 'unreferenced', member, input: discoveredFrom }] : [];
    });
}
