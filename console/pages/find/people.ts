import { type Problem, toProblem, unlessAbsent } from '../../api/problem.ts';
import { type RealmNames, readNamesOfRealms } from '../../api/realm_names.ts';
import { type ApiRecord, RESOURCES, readRecord } from '../../api/records.ts';
import type { FoundRecord } from '../../api/search_realms.ts';
import { hasScope, type SessionState } from '../../session/session.ts';

/** A matching record: a user, or a link. */
export interface Hit extends FoundRecord {
  /** The resource name. */
  readonly name: string;
  /** Whether the text is its whole ID, e-mail address, username or subject. */
  readonly isExact: boolean;
}

/** A user with the matching records. */
export interface Person {
  readonly realm: string;
  /** Undefined while it is unknown, or if this session cannot read it. */
  readonly realmName: string | undefined;
  readonly user: string;
  /** Undefined while it is unknown, or if this session cannot read it. */
  readonly record: ApiRecord | undefined;
  readonly isExact: boolean;
  /** The matching links. */
  readonly links: readonly Hit[];
}

/** Users of links and names of realms that were read for the results; null for a user that no longer exists. */
export interface Details {
  readonly users: Map<string, ApiRecord | null>;
  readonly realms: RealmNames;
}

const { users } = RESOURCES;

/** One person for all matching records of a user, in their order. A user that was deleted meanwhile is left out. */
export function peopleOf(hits: readonly Hit[], details: Details): readonly Person[] {
  const groups = Map.groupBy(hits, ({ realm, user }) => `${realm}/${user}`);
  return [...groups].flatMap(([key, group]) => {
    const own = group.find(({ name }) => name === users.name)?.record;
    const read = details.users.get(key);
    if (!own && read === null) return [];
    const { realm, user } = group[0] as Hit;
    const links = new Map(group.filter(({ name }) => name !== users.name).map((hit) => [hit.record.id, hit]));
    const isExact = group.some((hit) => hit.isExact);
    const realmName = details.realms.get(realm);
    return [
      { realm, realmName, user, record: own ?? read ?? undefined, isExact, links: [...links.values()] },
    ];
  });
}

/** Reads the users that are known by a link alone, and the names of the realms. Returns the problems. */
export async function readDetails(
  people: readonly Person[],
  { users: read, realms }: Details,
  state: SessionState,
  signal: AbortSignal,
): Promise<readonly Problem[]> {
  const problems: Problem[] = [];
  const attempt = (work: Promise<void>) =>
    work.catch((error: unknown) => {
      signal.throwIfAborted();
      problems.push(toProblem(error));
    });
  const unknown = people.filter(
    ({ realm, user, record }) =>
      !record && !read.has(`${realm}/${user}`) && hasScope(state, `${users.scope}:read`),
  );
  await Promise.all([
    ...unknown.map(({ realm, user }) =>
      attempt(readUser(realm, user, signal).then((record) => void read.set(`${realm}/${user}`, record))),
    ),
    attempt(
      readNamesOfRealms(
        people.map(({ realm }) => realm),
        realms,
        signal,
      ),
    ),
  ]);
  return problems;
}

async function readUser(realm: string, user: string, signal: AbortSignal): Promise<ApiRecord | null> {
  return (await unlessAbsent(readRecord(users, [realm, user], signal)))?.record ?? null;
}
