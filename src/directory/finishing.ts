import { Fault } from '../domain/fault.ts';
import type { Uuid } from '../domain/id.ts';
import { type Key, membersOf, type Resource } from '../domain/resource.ts';
import { email } from '../domain/text/folding.ts';
import type { TraceContext } from '../domain/trace_context.ts';
import { type RecordSecretLocation, secretLocation } from './format.ts';
import type { Input, InputVerb } from './input.ts';
import type { Guard } from './store.ts';

/**
 * What is learned from an identity provider about itself; else why not, in one of a few fixed phrases. `isPassing`: it may
 * tell another time.
 */
export type DiscoveryOutcome =
  | { readonly issuer: string }
  | { readonly refusal: string; readonly isPassing: boolean };

/** What others do for the directory before a record can be stored. */
export interface DirectoryDeps {
  /** Encrypts a secret for the one place it belongs to. */
  seal(place: RecordSecretLocation, plain: string): Uint8Array;
  /** Throws Fault `overloaded` where too many passwords wait. */
  hashPassword(password: string): Promise<{ readonly hash: string; readonly isNormalised: boolean }>;
  /**
   * Reads the issuer from a provider's discovery document. Throws Fault `overloaded` where too many requests are running,
   * for this realm or for all.
   */
  discoverIssuer(
    discoveryUrl: string,
    realm: Uuid,
    trace: TraceContext | undefined,
  ): Promise<DiscoveryOutcome>;
}

export interface DirectorySettings {
  /** This installation: the origin of a realm that names none (contract 8, row 31). */
  readonly installation: string;
  /** A link must have the issuer of its profile. */
  readonly issuersMatch: boolean;
}

type Members = Record<string, unknown>;

/** A record that is being finished, and what it takes. */
interface Finishing {
  readonly key: Key;
  readonly input: Input;
  /** The trace that the caller named. */
  readonly trace: TraceContext | undefined;
}

/** Adds members that callers do not write. */
type Step = (members: Members, by: Finishing) => void | Promise<void>;

/** Turns input into what is stored of a record. Throws Fault `conflict`, `overloaded`. */
export type Finish = (by: Finishing) => Promise<Members>;

/** Decides once for a resource and verb which members are added; for most links there are none. */
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
  return async (by) => {
    const members: Members = { ...by.input.members };
    for (const step of steps) await step(members, by);
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

function discoverySteps(resource: Resource, { discoverIssuer: learn }: DirectoryDeps): readonly Step[] {
  return membersOf(resource).flatMap(({ name, annotation: { discoveredFrom } }): Step[] => {
    if (!discoveredFrom) return [];
    return [
      async (members, { key, trace }) => {
        const url = members[discoveredFrom];
        if (typeof url !== 'string') return;
        const learned = await learn(url, key[0], trace);
        if ('refusal' in learned) {
          const { refusal: rule, isPassing } = learned;
          throw new Fault('conflict', [{ field: `data.${discoveredFrom}`, rule }], undefined, isPassing);
        }
        members[name] = learned.issuer;
      },
    ];
  });
}

function hashSteps({ inputs = {} }: Resource, { hashPassword: hash }: DirectoryDeps): readonly Step[] {
  return Object.entries(inputs).map(
    ([name, into]): Step =>
      async (members, { input }) => {
        const password = input.passwords[name];
        if (password === undefined) return;
        const made = await hash(password);
        members[into.hash] = made.hash;
        members[into.isNormalised] = made.isNormalised;
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

/** What the members that are written must hold together with other records. */
export type GuardsOf = (members: Readonly<Record<string, unknown>>) => readonly Guard[];

const NO_GUARDS: readonly Guard[] = Object.freeze([]);

/** Decides once for a resource which of its members are guarded. */
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
        return [{ kind: 'unless', member, saying: emailIf }];
      }
      if (sameAs && issuersMatch)
        return [{ kind: 'same', member, reference: sameAs.reference, of: sameAs.member }];
      return immutableWhileReferenced ? [{ kind: 'settled', member, saidAs: discoveredFrom }] : [];
    });
}
