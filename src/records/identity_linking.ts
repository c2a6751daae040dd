import { z } from 'zod';
import type { OidcIdentity } from '../access/issuers/identity_providers.ts';
import { Fault, type FaultCode } from '../model/fault.ts';
import type { ComparableValue, FilterCondition } from '../model/filter/filter.ts';
import type { Revision, Uuid } from '../model/id.ts';
import type { AnyRecord } from '../model/resource.ts';
import { oidcProfileInfo, user } from '../model/resources.ts';
import type { KeyedRecord, Store } from '../model/store.ts';
import { foldedKey } from '../model/text/folded_key.ts';
import type { WriteRecords } from './directory.ts';
import type { CreateRequest, WriteContext } from './write_request.ts';

/** `known`: the link existed. `infoId` and `revision` are of the link. */
export type LinkedIdentity = {
  readonly outcome: 'known' | 'linked' | 'created';
  readonly userId: Uuid;
  readonly infoId: Uuid;
  readonly revision: Revision;
};

/**
 * `email_not_verified`: by the provider, or nobody vouched for the address of the user. `taken`: the identity is of another user, the
 * user does not exist, or other writes came first twice.
 */
export type LinkRefusal = 'no_email' | 'email_not_verified' | 'email_ambiguous' | 'may_not_create' | 'taken';

/** `profileId`: the profile of a new link. */
interface LinkPlace {
  readonly realm: AnyRecord;
  readonly profileId: Uuid;
}

type Comparison = Extract<FilterCondition, { readonly kind: 'one_of' }>['compared'];

/** Links identities to users, so that no e-mail address gives one person the user of another. */
export function openIdentityLinking({ store, writeRecords }: { store: Store; writeRecords: WriteRecords }) {
  /** Finds the link whichever profile it belongs to. */
  async function findKnown({ issuer, subject }: OidcIdentity, realmId: Uuid) {
    const members = oidcProfileInfo.reverseLookup.by[0];
    const found = await store.find(oidcProfileInfo, realmId, { members, values: [issuer, subject] });
    return found && linkedBy('known', found);
  }

  /** Returns at most two users that have all these values. */
  async function findUsers(realmId: Uuid, ...values: readonly [string, Comparison, ComparableValue][]) {
    const filter = values.map(([member, compared, value]) => [
      { kind: 'one_of', member, compared, values: [value] } as const,
    ]);
    const sort = { by: 'created_at', isDescending: false } as const;
    const page = { kind: 'after', after: undefined, limit: 2 } as const;
    return (await store.list(user, [realmId], { filter, sort, page }))?.items ?? [];
  }

  /** The user to whom an address belongs without doubt; undefined if no user has one like it. */
  async function findOwner(email: string, isVerified: boolean, realmId: Uuid) {
    const [found, other] = await findUsers(realmId, ['email', 'folded', foldedKey(email)]);
    if (!found) return undefined;
    const { id, email: stored } = found.record;
    if (other || inLowerCase(String(stored)) !== inLowerCase(email)) return 'email_ambiguous';
    if (!isVerified) return 'email_not_verified';
    // No record has this hidden member. It is read last: the write fails if the revision is another by then.
    const vouched = await findUsers(realmId, ['id', 'identifier', id], ['email_vouched', 'exact', 1]);
    return vouched.length === 1 ? found.record : 'email_not_verified';
  }

  /** Writes a link, and its user where the request is for one, in one commit. */
  async function write(outcome: 'linked' | 'created', request: CreateRequest, by: WriteContext) {
    const written = await writeRecords([request], by);
    const link = written && [...written.created, ...written.included].at(-1);
    if (!link) throw new Error('the commit has no link');
    return linkedBy(outcome, link);
  }

  /** Links to the user with the verified address, or to a new one. */
  async function linkByEmail(identity: OidcIdentity, email: string, place: LinkPlace, by: WriteContext) {
    const { realm } = place;
    const isShared = realm.duplicate_email_policy === 'allowed';
    const owner = isShared ? undefined : await findOwner(email, identity.isEmailVerified, realm.id);
    if (typeof owner === 'string') return owner;
    if (!owner) return write('created', userRequest(identity, email, place), by);
    const request = linkRequest(identity, place, owner.id);
    return write('linked', { ...request, expectedParentRevision: owner.revision }, by);
  }

  return {
    /** Finds the user of an identity; else links it by its address. */
    link(identity: OidcIdentity, place: LinkPlace & { readonly mayCreate: boolean }, by: WriteContext) {
      return attemptTwice(async () => {
        const known = await findKnown(identity, place.realm.id);
        if (known) return known;
        if (!place.mayCreate) return 'may_not_create';
        const { email } = identity;
        return email === undefined ? 'no_email' : linkByEmail(identity, email, place, by);
      });
    },
    /** Links an identity to the user whom the caller has authenticated. */
    linkTo(identity: OidcIdentity, place: LinkPlace & { readonly userId: Uuid }, by: WriteContext) {
      return attemptTwice(async () => {
        const { realm, userId } = place;
        const known = await findKnown(identity, realm.id);
        if (known) return known.userId === userId ? known : 'taken';
        return write('linked', linkRequest(identity, place, userId), by);
      });
    },
  };
}

/** How a commit fails after another write came first. */
const OVERTAKEN: readonly FaultCode[] = ['conflict', 'precondition_failed', 'not_found'];

async function attemptTwice(
  attempt: () => Promise<LinkedIdentity | LinkRefusal>,
  isLast = false,
): Promise<LinkedIdentity | LinkRefusal> {
  try {
    return await attempt();
  } catch (error) {
    if (!(error instanceof Fault && OVERTAKEN.includes(error.code))) throw error;
    return isLast ? 'taken' : attemptTwice(attempt, true);
  }
}

function linkedBy(outcome: LinkedIdentity['outcome'], { key, record }: KeyedRecord): LinkedIdentity {
  return { outcome, userId: key[1] as Uuid, infoId: record.id, revision: record.revision };
}

/** Changes `A` to `Z` alone: any other difference may be that of two mailboxes. */
function inLowerCase(email: string): string {
  return email.replace(/[A-Z]/g, (letter) => letter.toLowerCase());
}

function linkData({ issuer, subject }: OidcIdentity, { profileId }: LinkPlace) {
  return { type: oidcProfileInfo.type, issuer, subject, oidc_profile_id: profileId };
}

function linkRequest(identity: OidcIdentity, place: LinkPlace, userId: Uuid): CreateRequest {
  const scope = [place.realm.id, userId];
  return { verb: 'create', resource: oidcProfileInfo, scope, body: { data: linkData(identity, place) } };
}

/** The names of an identity. One that a user cannot have counts as absent. */
const NAMES = z.object({
  name: user.members.name.optional().catch(undefined),
  given_name: user.members.given_name.catch(null),
  middle_name: user.members.middle_name.catch(null),
  family_name: user.members.family_name.catch(null),
});

/** A new user and its link. */
function userRequest(identity: OidcIdentity, email: string, place: LinkPlace): CreateRequest {
  const { name, ...parts } = NAMES.parse(identity.names);
  const full = [parts.given_name, parts.family_name].filter((part) => part !== null).join(' ');
  // An address may be longer than a name.
  const usable = user.members.name.safeParse(full).data ?? [...email].slice(0, 255).join('');
  const data = { type: user.type, email, name: name ?? usable, ...parts };
  const body = { data, included: [linkData(identity, place)] };
  const fixed = { email_vouched: identity.isEmailVerified };
  return { verb: 'create', resource: user, scope: [place.realm.id], body, fixed };
}
