import type { OidcIdentity } from '../access/issuers/identity_providers.ts';
import { Fault, type FaultCode } from '../model/fault.ts';
import type { Revision, Uuid } from '../model/id.ts';
import type { AnyRecord } from '../model/resource.ts';
import { oidcProfileInfo, user } from '../model/resources.ts';
import type { KeyedRecord, Loader, Store } from '../model/store.ts';
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
 * `disabled`: the identity, its address or the caller names a disabled user. `email_not_verified`: by the provider, or nobody vouched
 * for the address of the user. `taken`: the identity is of another user, the user does not exist, or other writes came first twice.
 */
export type LinkRefusal =
  | 'disabled'
  | 'no_email'
  | 'email_not_verified'
  | 'email_ambiguous'
  | 'may_not_create'
  | 'taken';

/** `profileId`: of a new link. */
type LinkPlace = { readonly realm: AnyRecord; readonly profileId: Uuid };

type LinkingDeps = { readonly store: Store & Pick<Loader, 'getStored'>; readonly writeRecords: WriteRecords };

/** Links identities to users, so that no e-mail address gives one person the user of another. */
export function openIdentityLinking({ store, writeRecords }: LinkingDeps) {
  /** Finds the link whichever profile it belongs to. The user is read last: disabling it changes the revision of the link. */
  async function findKnown({ issuer, subject }: OidcIdentity, realmId: Uuid) {
    const members = oidcProfileInfo.reverseLookup.by[0];
    const found = await store.find(oidcProfileInfo, realmId, { members, values: [issuer, subject] });
    const known = found && linkedBy('known', found);
    const owner = known && (await store.get(user, [realmId, known.userId]));
    return owner?.enabled === false ? 'disabled' : known;
  }

  /** The user to whom an address belongs without doubt; undefined if no user has one like it, or users may share it. */
  async function findOwner(email: string, isVerified: boolean, realm: AnyRecord) {
    if (realm.duplicate_email_policy === 'allowed') return undefined;
    const values = [foldedKey(email)];
    const page = await store.list(user, [realm.id], {
      filter: [[{ kind: 'one_of', member: 'email', compared: 'folded', values }]],
      sort: { by: 'created_at', isDescending: false },
      page: { kind: 'after', after: undefined, limit: 2 },
    });
    const [found, other] = page?.items ?? [];
    if (!found) return undefined;
    if (other || inLowerCase(String(found.record.email)) !== inLowerCase(email)) return 'email_ambiguous';
    if (found.record.enabled === false) return 'disabled';
    if (!isVerified) return 'email_not_verified';
    // The hidden member is read last: the write fails if the revision is another by then.
    const stored = await store.getStored(user, found.key);
    return stored?.email_vouched === true ? found.record : 'email_not_verified';
  }

  /** Writes a link, and its user where the request is for one, in one commit. */
  async function write(outcome: 'linked' | 'created', request: CreateRequest, by: WriteContext) {
    const written = await writeRecords([request], by);
    const link = written && [...written.created, ...written.included].at(-1);
    if (!link) throw new Error('the commit has no link');
    return linkedBy(outcome, link);
  }

  return {
    /** Finds the user of an identity; else links it to the user with its verified address, or to a new one. */
    link(identity: OidcIdentity, place: LinkPlace & { readonly mayCreate: boolean }, by: WriteContext) {
      return attemptTwice(async () => {
        const { realm, mayCreate } = place;
        const known = await findKnown(identity, realm.id);
        if (known) return known;
        if (!mayCreate) return 'may_not_create';
        const { email, isEmailVerified } = identity;
        if (email === undefined) return 'no_email';
        const owner = await findOwner(email, isEmailVerified, realm);
        if (typeof owner === 'string') return owner;
        if (!owner) return write('created', userRequest(identity, email, place), by);
        const request = linkRequest(identity, place, owner.id);
        return write('linked', { ...request, expectedParentRevision: owner.revision }, by);
      });
    },
    /** Links an identity to the user whom the caller has authenticated. */
    linkTo(identity: OidcIdentity, place: LinkPlace & { readonly userId: Uuid }, by: WriteContext) {
      return attemptTwice(async () => {
        const { realm, userId } = place;
        const known = await findKnown(identity, realm.id);
        if (known) return known === 'disabled' || known.userId === userId ? known : 'taken';
        const owner = await store.get(user, [realm.id, userId]);
        if (owner?.enabled === false) return 'disabled';
        const request = linkRequest(identity, place, userId);
        return write('linked', { ...request, expectedParentRevision: owner?.revision }, by);
      });
    },
  };
}

/** How a commit fails after another write came first. */
const OVERTAKEN: readonly FaultCode[] = ['conflict', 'precondition_failed', 'not_found'];

type Attempt = () => Promise<LinkedIdentity | LinkRefusal>;

async function attemptTwice(attempt: Attempt, isLast = false): ReturnType<Attempt> {
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
const inLowerCase = (email: string) => email.replace(/[A-Z]/g, (letter) => letter.toLowerCase());

function linkData({ issuer, subject }: OidcIdentity, { profileId }: LinkPlace) {
  return { type: oidcProfileInfo.type, issuer, subject, oidc_profile_id: profileId };
}

function linkRequest(identity: OidcIdentity, place: LinkPlace, userId: Uuid): CreateRequest {
  const scope = [place.realm.id, userId];
  return { verb: 'create', resource: oidcProfileInfo, scope, body: { data: linkData(identity, place) } };
}

/** A new user and its link. */
function userRequest(identity: OidcIdentity, email: string, place: LinkPlace): CreateRequest {
  const { names, isEmailVerified } = identity;
  const full = [names.given_name, names.family_name].filter(Boolean).join(' ');
  // An address may be longer than a name.
  const name = user.members.name.safeParse(full).data ?? [...email].slice(0, 255).join('');
  const data = { type: user.type, email, name, ...names };
  const body = { data, included: [linkData(identity, place)] };
  const fixed = { email_vouched: isEmailVerified };
  return { verb: 'create', resource: user, scope: [place.realm.id], body, fixed };
}
