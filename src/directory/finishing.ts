import { Fault } from '../domain/fault.ts';
import { email } from '../domain/folding.ts';
import type { Uuid } from '../domain/id.ts';
import { type Key, membersOf, type Resource } from '../domain/resource.ts';
import type { TraceContext } from '../domain/trace_context.ts';
import { placeOf, type SealedPlace } from './format.ts';
import type { Input, InputVerb } from './input.ts';
import type { Guard } from './store.ts';

/**
 * What is learned from an identity provider about itself; else why not, in one of a few fixed phrases. `isPassing`: it may
 * tell another time.
 */
export type Learned = { readonly issuer: string } | { readonly refusal: string; readonly isPassing: boolean };

/** What others do for the directory before a record can be stored. */
export interface Makers {
  /** Encrypts a secret for the one place it belongs to. */
  seal(place: SealedPlace, plain: string): Uint8Array;
  /** Throws Fault `overloaded` where too many passwords wait. */
  hash(password: string): Promise<{ readonly hash: string; readonly isNormalised: boolean }>;
  /** Asks a provider who it is. Throws Fault `overloaded` where too many are being asked, for this realm or for all. */
  learn(discoveryUrl: string, realm: Uuid, trace: TraceContext | undefined): Promise<Learned>;
}

export interface DirectorySettings {
  /** This installation: the origin of a realm that names none (contract 8, row 31). */
  readonly installation: string;
  /** A link must have the issuer of its profile. */
  readonly issuersMatch: boolean;
}

type Members = Record<string, unknown>;

/** Turns what was said about a record into what is stored of it. Throws Fault `conflict`, `overloaded`. */
export type Finisher = (resource: Resource, key: Key, input: Input, asked: Asked) => Promise<Members>;

/** What is being done, and in which trace, if its caller named one. */
interface Asked {
  readonly verb: InputVerb;
  readonly trace: TraceContext | undefined;
}

export function openFinisher(makers: Makers, { installation }: DirectorySettings): Finisher {
  async function hash(resource: Resource, passwords: Input['passwords'], members: Members): Promise<void> {
    for (const [name, input] of Object.entries(resource.inputs ?? {})) {
      const said = passwords[name];
      if (said === undefined) continue;
      const made = await makers.hash(said);
      members[input.hash] = made.hash;
      members[input.isNormalised] = made.isNormalised;
    }
  }

  async function learn(
    resource: Resource,
    [realm]: Key,
    members: Members,
    trace: TraceContext | undefined,
  ): Promise<void> {
    for (const { name, placement } of membersOf(resource)) {
      const url = placement.learnedFrom && members[placement.learnedFrom];
      if (typeof url !== 'string') continue;
      const learned = await makers.learn(url, realm, trace);
      if ('refusal' in learned) {
        const { refusal: rule, isPassing } = learned;
        throw new Fault('conflict', [{ field: `data.${placement.learnedFrom}`, rule }], undefined, isPassing);
      }
      members[name] = learned.issuer;
    }
  }

  function seal(resource: Resource, key: Key, members: Members): void {
    for (const { name, placement } of membersOf(resource)) {
      const plain = members[name];
      if (placement.secret === 'sealed' && typeof plain === 'string') {
        members[name] = makers.seal(placeOf(resource, name, key), plain);
      }
    }
  }

  return async (resource, key, input, { verb, trace }) => {
    const members: Members = { ...input.members };
    if (verb === 'create') fill(resource, members, installation);
    await learn(resource, key, members, trace);
    await hash(resource, input.passwords, members);
    seal(resource, key, members);
    return members;
  };
}

/** Gives a new record what nobody said of it: its origin, and the defaults of members that are nobody's to say. */
function fill(resource: Resource, members: Members, id: string): void {
  for (const { name, schema, placement } of membersOf(resource)) {
    if (members[name] !== undefined) continue;
    const standard = placement.installation
      ? { data: { id, type: placement.installation } }
      : schema.safeParse(undefined).data;
    if (standard !== undefined) members[name] = standard;
  }
}

const EMAIL = email();

/** What the members that are written must hold together with other records. */
export function guardsOf(
  resource: Resource,
  members: Readonly<Record<string, unknown>>,
  { issuersMatch }: DirectorySettings,
): readonly Guard[] {
  return membersOf(resource).flatMap(
    ({ name: member, placement: { emailWhere, sameAs, settled, learnedFrom = member } }): Guard[] => {
      if (members[member] === undefined) return [];
      if (emailWhere && !EMAIL.safeParse(members[member]).success) {
        return [{ kind: 'unless', member, saying: emailWhere }];
      }
      if (sameAs && issuersMatch)
        return [{ kind: 'same', member, reference: sameAs.reference, of: sameAs.member }];
      return settled ? [{ kind: 'settled', member, saidAs: learnedFrom }] : [];
    },
  );
}
