import { SCHEMA } from 'authrealm:schema';
import { useMemo, useState } from 'preact/hooks';
import { callApi } from '../../api/call_api.ts';
import { Problem, toProblem } from '../../api/problem.ts';
import { bodyOf, pathOf, RESOURCES, readRecord } from '../../api/records.ts';
import { useFetch } from '../../api/use_fetch.ts';
import type { Field } from '../../description.ts';
import { Control } from '../../form/fields.tsx';
import { idempotencyKeyFor } from '../../form/record_dialogs.tsx';
import { brokenRule } from '../../form/rules.ts';
import { ActionError, useAction } from '../../form/use_action.tsx';
import { href, navigate } from '../../layout/router.ts';
import { announce } from '../../parts/announcer.tsx';
import { plainText } from '../../parts/confusables.ts';
import { Confirmation, confirmationWord, Dialog } from '../../parts/dialog.tsx';
import { Fact } from '../../parts/facts.tsx';
import { Loaded } from '../../parts/notices.tsx';
import { Timestamp } from '../../parts/timestamp.tsx';
import { UntrustedText } from '../../parts/untrusted_text.tsx';
import { session } from '../../session/session.ts';
import { PersonSearch } from '../find/find_page.tsx';
import { type Link, loadUser, nameOf, providerName } from './load_user.ts';

const { users, passwordProfileInfos } = RESOURCES;
const LINKS_MAX = 40;
const USERNAMES_MAX = SCHEMA.limits.passwordsPerRequestMax;
const PASSWORD = passwordProfileInfos.fields.find(({ kind }) => kind === 'password') as Field;
const TOO_MANY = `At most ${LINKS_MAX} links and usernames move at once, ${USERNAMES_MAX} of them usernames. Move some by themselves first.`;
const USER_MERGES =
  'All links and usernames get new IDs. The first user is deleted with its name and e-mail address. Either all of this happens, or nothing.';
const GONE = 'Nothing was moved: one of the two users, or a link or username, no longer exists.';

interface MoveProps {
  readonly realm: string;
  readonly user: string;
  /** The link to move. Without it, all links move and the user is deleted. */
  readonly link: Link | undefined;
  readonly onClose: () => void;
}

/** Moves links to another user of the realm, who is searched first. */
export function MoveDialog(props: MoveProps) {
  const { realm, user, link, onClose } = props;
  const [target, onTarget] = useState<string>();
  const [passwords, onPasswords] = useState<MoveConfirmationProps['passwords']>({});
  if (target) return <MoveConfirmation {...{ ...props, target, onTarget, passwords, onPasswords }} />;
  return (
    <Dialog title={titleOf(link)} onClose={onClose}>
      <PersonSearch otherThan={{ realm, user }} onPerson={(person) => onTarget(person.user)} />
    </Dialog>
  );
}

function titleOf(link: Link | undefined): string {
  return link ? `Move this ${link.description.words[0]} to another user` : 'Merge this user into another';
}

/** Both users and what moves as they are now, and the request that deletes it. */
async function readMove({ realm, user, link }: MoveProps, target: string, signal: AbortSignal) {
  const [from, to] = await Promise.all([
    loadUser([realm, user], 1, session.get(), signal),
    readRecord(users, [realm, target], signal),
  ]);
  const description = link?.description ?? users;
  const key = link ? [realm, user, link.record.id] : [realm, user];
  const { record, etag } = link ? await readRecord(description, key, signal) : from.user;
  const links = link ? [{ ...link, record }] : from.links;
  const removal = { method: 'DELETE', path: `/${pathOf(description, key)}`, if_match: etag };
  const usernames = links.filter((each) => each.description === passwordProfileInfos);
  const isWhole = !from.hasMore && from.forbidden.length === 0;
  const isTooMany = links.length > LINKS_MAX || usernames.length > USERNAMES_MAX || !(link || isWhole);
  return { people: [from.user.record, to.record], links, usernames, isTooMany, removal };
}

type Move = Awaited<ReturnType<typeof readMove>>;

interface MoveConfirmationProps extends MoveProps {
  readonly target: string;
  readonly passwords: Readonly<Record<string, string>>;
  readonly onPasswords: (passwords: MoveConfirmationProps['passwords']) => void;
  readonly onTarget: (target: undefined) => void;
}

/** Shows both users, asks for new passwords of usernames, and moves. */
function MoveConfirmation(props: MoveConfirmationProps) {
  const { realm, user, link, target, onTarget, passwords, onPasswords, onClose } = props;
  const keys = useMemo(() => new Map<string, string>(), []);
  const noun = link?.description.words[0];
  const fetched = useFetch((signal) => readMove(props, target, signal), []);
  const { run, isBusy, problem } = useAction(() => {
    announce(link ? `The ${noun} was moved.` : 'The users were merged.');
    if (link) onClose();
    else navigate(href('realms', realm, 'users', target));
  }, fetched.reload);
  const move = fetched.answer;
  const brokenRuleOf = ({ record }: Link) => brokenRule(PASSWORD, passwords[record.id] ?? '', true);
  const isMovable = move && !move.isTooMany && move.usernames.every((each) => !brokenRuleOf(each));
  const send = async ({ links, removal }: Move) => {
    const creations = links.map(({ description, record }) => ({
      method: 'POST',
      path: `/${pathOf(description, [realm, target])}`,
      body: bodyOf(description, { ...record, password: passwords[record.id] }),
    }));
    const body = { requests: [removal, ...creations] };
    await callApi({
      method: 'POST',
      path: `${pathOf(RESOURCES.realms, [realm])}/batch`,
      headers: { 'Idempotency-Key': idempotencyKeyFor(JSON.stringify(body), keys) },
      body,
      scope: `${(link?.description ?? users).scope}:write`,
    }).catch((error) => {
      throw toProblem(error).kind === 'absent' ? new Problem('absent', GONE) : error;
    });
  };
  return (
    <Confirmation
      title={titleOf(link)}
      confirmation={link ? undefined : confirmationWord('merge', user)}
      verb={link ? 'Move' : 'Merge'}
      isBusy={isBusy || fetched.isWaiting || !isMovable}
      onConfirm={() => move && run(() => send(move))}
      onClose={onClose}
    >
      <Loaded fetched={fetched}>{(now) => <Summary {...now} />}</Loaded>
      {move && <p>{move.isTooMany ? TOO_MANY : link ? `The ${noun} gets a new ID.` : USER_MERGES}</p>}
      {!move?.isTooMany &&
        move?.usernames.map((each) => (
          <Control
            key={each.record.id}
            field={PASSWORD}
            label={`New password of ${plainText(nameOf(each))}`}
            verb="create"
            value={passwords[each.record.id] ?? ''}
            error={(passwords[each.record.id] && brokenRuleOf(each)) || ''}
            onValue={(value) => onPasswords({ ...passwords, [each.record.id]: String(value) })}
          />
        ))}
      <ActionError problem={problem} />
      <div class="actions">
        <button type="button" class="text-button" onClick={() => onTarget(undefined)}>
          Choose another user
        </button>
      </div>
    </Confirmation>
  );
}

function Summary({ people, links }: Pick<Move, 'people' | 'links'>) {
  return (
    <dl class="facts">
      {people.map(({ id, name, email, created_at }, index) => (
        <Fact key={id} label={index === 0 ? 'From' : 'To'}>
          <strong>
            <UntrustedText text={String(name)} />
          </strong>{' '}
          <UntrustedText text={String(email)} isIdentifier /> since <Timestamp at={created_at} />
        </Fact>
      ))}
      <Fact label="Moves">
        {links.map((link) => (
          <p key={link.record.id}>
            <UntrustedText text={providerName(link)} />: <UntrustedText text={nameOf(link)} isIdentifier />
          </p>
        ))}
      </Fact>
    </dl>
  );
}
