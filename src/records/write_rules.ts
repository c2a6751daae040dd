import type { SecretLocation } from '../access/store/sealed.ts';
import { conflict } from '../model/fault.ts';
import type { Uuid } from '../model/id.ts';
import { type Key, type Member, membersOf, type Resource } from '../model/resource.ts';
import type { Store } from '../model/store.ts';
import type { InputVerb } from '../model/writable_members.ts';
import { secretLocation } from './format.ts';
import { type Input, inputReaderFor } from './input.ts';
import type { CreateRequest, UpdateRequest, WriteContext } from './write_request.ts';

/** The issuer of an identity provider, or the reason for the failure. `isPassing`: a later attempt may succeed. */
export type DiscoveryOutcome =
  | { readonly issuer: string }
  | { readonly refusal: string; readonly isPassing: boolean };

export interface DirectoryDeps {
  /** Encrypts a secret for its location. */
  seal(location: SecretLocation, plain: string): Uint8Array;
  /** Throws Fault `overloaded` if too many passwords wait. */
  hashPassword(password: string): Promise<{ readonly hash: string; readonly isNormalised: boolean }>;
  /**
   * Reads the issuer from a provider's discovery document: `expected`, except for one final slash. Undefined where the
   * service is offline. Throws Fault `overloaded` if too many requests are running, for this realm or for all.
   */
  readonly discoverIssuer:
    | ((discoveryUrl: string, expected: string, realm: Uuid, by: WriteContext) => Promise<DiscoveryOutcome>)
    | undefined;
  /** The stored record; undefined if there is none. */
  readonly get: Store['get'];
}

export interface DirectorySettings {
  /** The ID of this installation: the origin of a realm that names none (docs/wire.md#realms). */
  readonly installation: string;
  /** A link must have the issuer of its profile. */
  readonly issuersMatch: boolean;
}

export interface WriteRules {
  readonly resource: Resource;
  readonly read: ReturnType<typeof inputReaderFor>;
  /** None for most links. */
  readonly steps: readonly Step[];
  readonly guarded: ReturnType<typeof guardedMembers>;
  /** The inputs whose hash an answer has to wait for. */
  readonly passwords: readonly string[];
  /** The members with a URL whose provider an answer has to wait for. */
  readonly discoveryUrls: readonly string[];
  /** A write below a user updates the user as well (docs/wire.md#users); a write directly below a realm does not. */
  readonly touched: Resource | undefined;
}

/** A record that a request creates or updates. */
export interface RequestedRecord {
  readonly rules: WriteRules;
  readonly request: CreateRequest | UpdateRequest;
  readonly key: Key;
  readonly input: Input;
  /** The members to write: those of the input, and those that the steps add. */
  readonly members: MemberValues;
  /** Where the request has its members. */
  readonly at: string;
}

type MemberValues = Record<string, unknown>;

/** Adds members that callers do not write. Throws Fault `conflict`, `overloaded`. */
type Step = (record: RequestedRecord, by: WriteContext) => void | Promise<void>;

export function rulesFor(
  resource: Resource,
  verb: InputVerb,
  deps: DirectoryDeps,
  { installation, issuersMatch }: DirectorySettings,
): WriteRules {
  return {
    resource,
    read: inputReaderFor(resource, verb),
    steps: [
      ...(verb === 'create' ? defaultSteps(resource, installation) : resetSteps(resource)),
      ...discoverySteps(resource, deps),
      ...hashSteps(resource, deps),
      ...sealSteps(resource, deps),
    ],
    guarded: guardedMembers(resource, verb, issuersMatch),
    passwords: Object.keys(resource.inputs ?? {}),
    discoveryUrls: membersOf(resource).flatMap(({ annotation }) => annotation.discoveredFrom?.member ?? []),
    touched: resource.parent?.parent && resource.parent,
  };
}

/** The members whose values may need guards, with the annotations that apply to this verb and these settings. */
function guardedMembers(resource: Resource, verb: InputVerb, issuersMatch: boolean) {
  return membersOf(resource)
    .map(({ name, annotation: { emailIf, sameAs, immutableWhileReferenced, discoveredFrom } }) => ({
      name,
      emailIf,
      sameAs: issuersMatch ? sameAs : undefined,
      isFixedWhileReferenced: immutableWhileReferenced && verb === 'update',
      /** The member that a request may write to change this one, and the secret that it then writes as well. */
      from: discoveredFrom?.member ?? name,
      secret: discoveredFrom?.secret ?? name,
    }))
    .filter(({ emailIf, sameAs, isFixedWhileReferenced }) => emailIf || sameAs || isFixedWhileReferenced);
}

/** Gives a new record its origin, and the defaults of members that callers cannot write. */
function defaultSteps(resource: Resource, id: string): readonly Step[] {
  return membersOf(resource).flatMap(({ name, schema, annotation }): Step[] => {
    const value = annotation.installation
      ? { data: { id, type: annotation.installation } }
      : schema.safeParse(undefined).data;
    if (value === undefined) return [];
    return [
      ({ members }) => {
        if (members[name] === undefined) members[name] = value;
      },
    ];
  });
}

function resetSteps(resource: Resource): readonly Step[] {
  return membersOf(resource).flatMap(({ name, schema, annotation: { resetBy } }): Step[] => {
    if (resetBy === undefined) return [];
    const value = schema.parse(undefined);
    return [
      ({ members }) => {
        if (members[resetBy] !== undefined) members[name] = value;
      },
    ];
  });
}

function discoverySteps(resource: Resource, { discoverIssuer, get }: DirectoryDeps): readonly Step[] {
  return membersOf(resource)
    .filter(({ annotation }) => annotation.discoveredFrom)
    .map((member) => (discoverIssuer ? discoveryStep(member, discoverIssuer) : statementStep(member, get)));
}

function discoveryStep(member: Member, discoverIssuer: NonNullable<DirectoryDeps['discoverIssuer']>): Step {
  const { name, annotation } = member;
  const from = annotation.discoveredFrom?.member ?? '';
  return async ({ members, key, at }, by) => {
    delete members[name];
    const url = members[from];
    if (typeof url !== 'string') return;
    const discovered = await discoverIssuer(url, issuerOfUrl(url, at, member), key[0], by);
    if ('refusal' in discovered) throw conflict(`${at}.${from}`, discovered.refusal, discovered.isPassing);
    members[name] = discovered.issuer;
  };
}

/** The part of a URL before its suffix. Throws Fault `conflict` if that is no issuer. */
function issuerOfUrl(url: string, at: string, { schema, annotation: { discoveredFrom } }: Member): string {
  const { member: from, suffix } = discoveredFrom ?? { member: '', suffix: '' };
  const issuer = url.slice(0, -suffix.length);
  if (url.endsWith(suffix) && schema.safeParse(issuer).success) return issuer;
  throw conflict(`${at}.${from}`, `must be an issuer followed by ${suffix}`);
}

/** The rule that an issuer breaks which does not belong to the discovery URL next to it. */
export function issuerProblem(
  members: Readonly<Record<string, unknown>>,
  { name, annotation }: Member,
): string | undefined {
  if (!annotation.discoveredFrom) return undefined;
  const { member: from, suffix } = annotation.discoveredFrom;
  const issuer = String(members[name]);
  if ([issuer, issuer.replace(/\/$/, '')].some((base) => members[from] === base + suffix)) return undefined;
  return `must be ${from} without ${suffix}, with or without a final slash`;
}

/**
 * Takes the issuer that the caller states, else the stored one if it fits the URL, else the URL without its suffix
 * (docs/wire.md#oidc-profiles). The URL is written along, so that a concurrent update leaves no pair that does not fit.
 */
function statementStep(member: Member, get: Store['get']): Step {
  const { name, annotation } = member;
  const from = annotation.discoveredFrom?.member ?? '';
  return async ({ rules, request, members, key, at }) => {
    if (members[name] === undefined && members[from] === undefined) return;
    const stored = request.verb === 'update' ? await get(rules.resource, key) : undefined;
    const url = members[from] ?? stored?.[from];
    // There is no such record: the write is refused.
    if (typeof url !== 'string') return;
    const derived = issuerOfUrl(url, at, member);
    const problem = issuerProblem({ [name]: members[name] ?? derived, [from]: url }, member);
    if (problem !== undefined) throw conflict(`${at}.${name}`, problem);
    members[name] ??= [derived, `${derived}/`].find((issuer) => issuer === stored?.[name]) ?? derived;
    members[from] = url;
  };
}

function hashSteps({ inputs = {} }: Resource, { hashPassword }: DirectoryDeps): readonly Step[] {
  return Object.entries(inputs).map(
    ([name, into]): Step =>
      async ({ members, input }) => {
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
        ({ members, key }) => {
          const plain = members[name];
          if (typeof plain === 'string') members[name] = seal(secretLocation(resource, name, key), plain);
        },
    );
}
