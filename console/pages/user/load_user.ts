import { type ListPage, pagesOf, readPages } from '../../api/list_page.ts';
import { toProblem } from '../../api/problem.ts';
import {
  type ApiRecord,
  RESOURCES,
  readRecord,
  readRecordIncluding,
  recordPages,
  type WithEtag,
} from '../../api/records.ts';
import type { Description } from '../../description.ts';
import { hasScope, type SessionState } from '../../session/session.ts';

/** A link or a username of a user. */
export interface Link {
  readonly description: Description;
  readonly record: ApiRecord;
  /** Its provider or password profile. */
  readonly profile: Profile;
}

export interface Profile {
  readonly id: string;
  readonly description: Description;
  /** Undefined if it is deleted or not visible to this session. */
  readonly record: ApiRecord | undefined;
}

/** A user with its links and their profiles. */
export interface UserWithLinks {
  readonly user: WithEtag;
  readonly links: readonly Link[];
  /** Link resources that this session cannot read. */
  readonly forbidden: readonly Description[];
  /** Whether there are more links. */
  readonly hasMore: boolean;
}

/** The link resources, with their profiles and references. */
export const LINK_KINDS = [
  {
    description: RESOURCES.oidcProfileInfos,
    profiles: RESOURCES.oidcProfiles,
    reference: 'oidc_profile_id',
    /** The member that identifies the user at sign-in. */
    name: 'subject',
  },
  {
    description: RESOURCES.passwordProfileInfos,
    profiles: RESOURCES.passwordProfiles,
    reference: 'password_profile_id',
    name: 'username',
  },
] as const;

export type LinkKind = (typeof LINK_KINDS)[number];

/**
 * Loads the user with the first page of its links, then further pages and the profiles of the links. Throws
 * Problem if the user cannot be read.
 */
export async function loadUser(
  [realm, id]: readonly [realm: string, user: string],
  pagesMax: number,
  state: SessionState,
  signal: AbortSignal,
): Promise<UserWithLinks> {
  const readable = LINK_KINDS.filter(({ description }) => hasScope(state, `${description.scope}:read`));
  const kinds = readable.map(({ description }) => description);
  const { included, ...user } = await readRecordIncluding(RESOURCES.users, [realm, id], kinds, signal);
  const lists = await Promise.all(
    kinds.map(async (description): Promise<ListPage<ApiRecord>> => {
      const { items = [], next } = included.get(description) ?? {};
      if (next === undefined || pagesMax === 1) return { items, next };
      const pages = pagesOf(recordPages(description, [realm, id]), signal, next);
      const older = await readPages(pages, pagesMax - 1);
      return { items: [...items, ...older.items], next: older.next };
    }),
  );
  const links = await Promise.all(
    readable.flatMap((kind, index) => {
      const profiles = new Map<string, Promise<Profile>>();
      return (lists[index]?.items ?? []).map(async (record): Promise<Link> => {
        const profileId = String(record[kind.reference]);
        const profile = profiles.get(profileId) ?? readProfile(kind, [realm, profileId], signal);
        profiles.set(profileId, profile);
        return { description: kind.description, record, profile: await profile };
      });
    }),
  );
  return {
    user,
    links,
    forbidden: LINK_KINDS.filter((kind) => !readable.includes(kind)).map(({ description }) => description),
    hasMore: lists.some(({ next }) => next !== undefined),
  };
}

async function readProfile(
  { profiles: description }: LinkKind,
  key: readonly [string, string],
  signal: AbortSignal,
): Promise<Profile> {
  const [, id] = key;
  try {
    return { id, description, record: (await readRecord(description, key, signal)).record };
  } catch (error) {
    signal.throwIfAborted();
    const { kind } = toProblem(error);
    if (kind !== 'forbidden' && kind !== 'absent') throw error;
    return { id, description, record: undefined };
  }
}

/** The member that identifies the user at sign-in. */
export function nameMember({ description }: Link): string {
  return LINK_KINDS.find((each) => each.description === description)?.name ?? 'id';
}

/** The subject or username of a link. */
export function nameOf(link: Link): string {
  return String(link.record[nameMember(link)]);
}

/** The name of the profile of a link, or its ID. */
export function providerName({ profile }: Link): string {
  return String(profile.record?.name ?? profile.id);
}
