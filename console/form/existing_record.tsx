import { allOf, eq } from '../../src/client/filter.ts';
import { callApi } from '../api/call_api.ts';
import type { Problem } from '../api/problem.ts';
import { type Key, RESOURCES, readRecord } from '../api/records.ts';
import { type OwnedItem, ownerOf } from '../api/search_realms.ts';
import { useFetch } from '../api/use_fetch.ts';
import type { Description } from '../description.ts';
import { href } from '../layout/router.ts';
import { Icon } from '../parts/icon.tsx';
import { inSentence, memberLabel } from '../parts/resource_labels.ts';
import { UntrustedText } from '../parts/untrusted_text.tsx';
import { hasScope, session } from '../session/session.ts';

interface ExistingRecordProps {
  readonly description: Description;
  /** Realm and user of the record that was refused. */
  readonly parentKey: Key;
  readonly values: Readonly<Record<string, unknown>>;
  /** The answer of the service. It reveals nothing about another record. */
  readonly refused: Problem;
}

/**
 * The record that already has the values that must be unique, if this session can find it: it is looked up with the scopes and
 * realms of the session.
 */
export function ExistingRecord(props: ExistingRecordProps) {
  const { description, parentKey, values, refused } = props;
  const { answer: owner } = useFetch(
    (signal) => readOwner(props, signal).catch(() => undefined),
    [refused.message, JSON.stringify(values)],
  );
  if (!owner) return null;
  const [one] = description.words;
  const [realm = '', user] = parentKey;
  return (
    <p class="note" role="status">
      <Icon name="user" />
      <span>
        {owner.id === user ? (
          `This user already has this ${namesOf(owner.members)}.`
        ) : (
          <>
            <a href={href('realms', realm, 'users', owner.id)}>
              <UntrustedText text={owner.name ?? owner.id} />
            </a>{' '}
            already has this {namesOf(owner.members)}. Remove that {one} first if it belongs to this user.
          </>
        )}
      </span>
    </p>
  );
}

function namesOf(members: readonly string[]): string {
  return members.map((member) => inSentence(memberLabel(member))).join(' and ');
}

interface Owner {
  readonly id: string;
  /** Undefined if this session cannot read users. */
  readonly name: string | undefined;
  /** The members that the two records share. */
  readonly members: readonly string[];
}

/** The user of the existing record; undefined if the refusal has another reason, or the record is not visible. */
async function readOwner(
  { description, parentKey: [realm = ''], values, refused: { errors } }: ExistingRecordProps,
  signal: AbortSignal,
): Promise<Owner | undefined> {
  const members = description.unique.find((set) =>
    errors.some(({ member, detail }) => set.includes(member ?? '') && /\bunique\b/.test(detail)),
  );
  if (!members || !hasScope(session.get(), `${description.scope}:read`)) return undefined;
  const [first, ...others] = members.map((member) => eq(member, String(values[member])));
  if (!first) return undefined;
  const path = `v2/authentication-realms/${encodeURIComponent(realm)}/${description.collections.at(-1)}/search`;
  const { body } = await callApi<{ data: readonly OwnedItem[] }>({
    ...{ method: 'POST', path, body: { filter: allOf(first, ...others).text } },
    ...{ signal, scope: `${description.scope}:read` },
  });
  const id = body.data[0] && ownerOf(body.data[0]);
  if (id === undefined) return undefined;
  return { id, name: await readName([realm, id], signal), members };
}

async function readName(key: Key, signal: AbortSignal): Promise<string | undefined> {
  if (!hasScope(session.get(), `${RESOURCES.users.scope}:read`)) return undefined;
  return String((await readRecord(RESOURCES.users, key, signal)).record.name);
}
