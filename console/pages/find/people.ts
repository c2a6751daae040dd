import { type Problem, toProblem, unlessAbsent } from '../../api/problem.ts';
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
  readonly user: string;
  /** Undefined while it is unknown, or if this session cannot read it. */
  readonly record: ApiRecord | undefined;
  readonly isExact: boolean;
  /** The matching links. */
  readonly links: readonly Hit[];
}

/** Users of links that were read for the results; null for a user that no longer exists. */
export type ReadUsers = Map<string, ApiRecord | null>;

const { users } = RESOURCES;

/** One person for all matching records of a user, in their order. A user that was deleted meanwhile is left out. */
export function peopleOf(hits: readonly Hit[], known: ReadUsers): readonly Person[] {
  const groups = Map.groupBy(hits, ({ realm, user }) => `${realm}/${user}`);
  return [...groups].flatMap(([key, group]) => {
    const own = group.find(({ name }) => name === users.name)?.record;
    const read = known.get(key);
    if (!own && read === null) return [];
    const { realm, user } = group[0] as Hit;
    const links = new Map(group.filter(({ name }) => name !== users.name).map((hit) => [hit.record.id, hit]));
    const isExact = group.some((hit) => hit.isExact);
    return [{ realm, user, record: own ?? read ?? undefined, isExact, links: [...links.values()] }];
  });
}

/** Reads the users that are known by a link alone. Returns the problems. */
export async function readUsers(
  people: readonly Person[],
  known: ReadUsers,
  state: SessionState,
  signal: AbortSignal,
): Promise<readonly Problem[]> {
  if (!hasScope(state, `${users.scope}:read`)) return [];
  const unknown = people.filter(({ realm, user, record }) => !record && !known.has(`${realm}/${user}`));
  const problems = await Promise.all(
    unknown.map(async ({ realm, user }) => {
      try {
        known.set(`${realm}/${user}`, await readUser(realm, user, signal));
        return [];
      } catch (error) {
        signal.throwIfAborted();
        return [toProblem(error)];
      }
    }),
  );
  return problems.flat();
}

async function readUser(realm: string, user: string, signal: AbortSignal): Promise<ApiRecord | null> {
  return (await unlessAbsent(readRecord(users, [realm, user], signal)))?.record ?? null;
}
