import { href } from '../../layout/router.ts';
import { useObservable } from '../../observable.ts';
import { plainText } from '../../parts/confusables.ts';
import { CopyButton } from '../../parts/copy.tsx';
import { inSentence, memberLabel } from '../../parts/resource_labels.ts';
import { Timestamp } from '../../parts/timestamp.tsx';
import { UntrustedText } from '../../parts/untrusted_text.tsx';
import { hasScope, session } from '../../session/session.ts';
import type { Action } from './dialogs.tsx';
import { type Link, nameMember, nameOf } from './load_user.ts';

interface RowProps {
  readonly realm: string;
  /** How a link came into being, if that is known. */
  readonly originOf: (link: Link) => string | undefined;
  readonly onAction: (action: Action) => void;
}

/** The links and usernames of a user. */
export function LinksTable({ links, ...row }: RowProps & { readonly links: readonly Link[] }) {
  return (
    <div class="table-frame">
      <table class="links stacked">
        <thead>
          <tr>
            <th scope="col">Sign-in through</th>
            <th scope="col">Subject or username</th>
            <th scope="col">Since</th>
            <th scope="col">Changed</th>
            <th scope="col">Actions</th>
          </tr>
        </thead>
        <tbody>
          {links.map((link) => (
            <LinkRow key={link.record.id} link={link} {...row} />
          ))}
        </tbody>
      </table>
    </div>
  );
}

function LinkRow({ link, realm, originOf, onAction }: RowProps & { readonly link: Link }) {
  const state = useObservable(session);
  const { description, record } = link;
  const isWriter = hasScope(state, `${description.scope}:write`);
  const name = nameOf(link);
  const origin = originOf(link);
  const button = (kind: 'history' | 'editLink' | 'moveLink' | 'removeLink', verb: string, label = verb) => (
    <button
      type="button"
      class="text-button"
      aria-label={`${label} ${plainText(name)}`}
      onClick={() => onAction({ kind, link })}
    >
      {verb}
    </button>
  );
  return (
    <tr aria-label={`${description.words[0]} ${plainText(name)}`}>
      <td>
        <Provider realm={realm} link={link} />
      </td>
      <th scope="row">
        <UntrustedText text={name} isIdentifier />{' '}
        <CopyButton text={name} what={`the ${inSentence(memberLabel(nameMember(link)))}`} />
      </th>
      <td data-label="Since">
        <Timestamp at={record.created_at} />
        <p class="faint small">{origin !== undefined && <UntrustedText text={origin} />}</p>
      </td>
      <td data-label="Changed">
        <Timestamp at={record.updated_at} />
      </td>
      <td>
        {hasScope(state, 'changes:read') && button('history', 'History', 'History of')}
        {isWriter && button('editLink', 'Edit')}
        {isWriter && button('moveLink', 'Move')}
        {isWriter && button('removeLink', 'Remove')}
      </td>
    </tr>
  );
}

/** The profile of a link, with the issuer of the link. */
function Provider({ realm, link: { record, profile } }: { readonly realm: string; readonly link: Link }) {
  const isOther = profile.record?.issuer !== undefined && record.issuer !== profile.record.issuer;
  return (
    <>
      <a href={href('realms', realm, profile.description.collections.at(-1) ?? '', profile.id)}>
        {profile.record ? <UntrustedText text={String(profile.record.name)} /> : <code>{profile.id}</code>}
      </a>
      {!profile.record && <p class="faint small">Deleted, or not visible to this session.</p>}
      <p class={isOther ? 'badge badge-warn' : 'faint small'}>
        {isOther && 'issuer differs: '}
        <UntrustedText text={String(record.issuer ?? '')} />
      </p>
    </>
  );
}
