import { RESOURCES } from '../../api/records.ts';
import { href } from '../../layout/router.ts';
import { Icon } from '../../parts/icon.tsx';
import { nounOf } from '../../parts/nouns.ts';
import { Said } from '../../parts/said.tsx';
import type { Found } from './seeking.ts';

/** Users, each with what they were found by. */
export function FoundList({
  found,
  hasMore,
  isWhole,
}: {
  readonly found: readonly Found[];
  readonly hasMore: boolean;
  readonly isWhole: boolean;
}) {
  const soFar = isWhole ? '' : ' so far';
  return (
    <>
      <p class="faint small">
        {hasMore
          ? `The first ${found.length}. Type more to narrow it down.`
          : `${found.length} found${soFar}`}
      </p>
      <ul class="rows found">
        {found.map((each) => (
          <li key={each.record.id}>
            <FoundRow {...each} />
          </li>
        ))}
      </ul>
    </>
  );
}

function FoundRow({ realm, user, record, name }: Found) {
  const isUser = name === RESOURCES.users.name;
  const { main, more } = wordsOf(record);
  return (
    <a class="row" href={href('realms', realm, 'users', user)}>
      <Icon name={isUser ? 'user' : 'link'} />
      <span class="row-main">
        <Said text={main} />
        {more !== '' && (
          <span class="faint">
            <Said text={more} />
          </span>
        )}
      </span>
      <span class="row-side faint small">{nounOf(name).one}</span>
    </a>
  );
}

/** A user by name and address; a link by what the user signs in with, and where. */
function wordsOf({ name, email, username, subject, issuer }: Found['record']) {
  const said = [name, username, subject].find((each) => typeof each === 'string');
  const beside = [email, issuer].find((each) => typeof each === 'string');
  return { main: String(said ?? ''), more: String(beside ?? '') };
}
