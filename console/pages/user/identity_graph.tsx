import type { ComponentChildren } from 'preact';
import { RESOURCES, type Shown } from '../../api/records.ts';
import { href } from '../../layout/router.ts';
import { useObserved } from '../../observable.ts';
import { plainText } from '../../parts/confusables.ts';
import { Copy } from '../../parts/copy.tsx';
import { Icon } from '../../parts/icon.tsx';
import { nounOf } from '../../parts/resource_labels.ts';
import { Instant } from '../../parts/timestamp.tsx';
import { Said } from '../../parts/untrusted_text.tsx';
import { may, session } from '../../session/session.ts';
import type { Act } from './dialogs.tsx';
import { type Link, nameOf, type Profile } from './load_user.ts';

interface PictureProps {
  readonly realm: string;
  readonly user: Shown;
  readonly links: readonly Link[];
  /** What can be done with a link. */
  readonly controls: (link: Link) => ComponentChildren;
}

/** A user, and from there to every profile and issuer that leads to them. */
export function Picture({ realm, user, links, controls }: PictureProps) {
  return (
    <figure class="picture" aria-label="How this user signs in">
      <div class="picture-user">
        <div class="tile tile-user">
          <Icon name="user" />
          <div>
            <p class="tile-name">
              <Said text={String(user.name)} />
            </p>
            <p class="faint small">
              <Said text={String(user.email)} />
            </p>
          </div>
        </div>
      </div>
      <ul class="picture-issuers">
        {groupsBy(links, issuerOf).map(([issuer, ofIssuer]) => (
          <li key={issuer} class="picture-branch">
            <ul class="picture-profiles">
              {groupsBy(ofIssuer, ({ profile }) => profile.id).map(([id, ofProfile]) => (
                <li key={id} class="picture-branch">
                  <ul class="picture-links">
                    {ofProfile.map((link) => (
                      <li key={link.record.id}>
                        <LinkTile link={link} controls={controls(link)} />
                      </li>
                    ))}
                  </ul>
                  {ofProfile[0] && <ProfileTile realm={realm} profile={ofProfile[0].profile} />}
                </li>
              ))}
            </ul>
            <IssuerTile issuer={issuer} />
          </li>
        ))}
      </ul>
    </figure>
  );
}

/** Issuers of passwords are none: this service itself knows them. */
const OWN = '';

function issuerOf({ record, profile }: Link): string {
  return String(profile.record?.issuer ?? record.issuer ?? OWN);
}

function groupsBy(
  links: readonly Link[],
  by: (link: Link) => string,
): readonly (readonly [string, readonly Link[]])[] {
  return [...Map.groupBy(links, by)];
}

function LinkTile({ link, controls }: { readonly link: Link; readonly controls: ComponentChildren }) {
  const { description, record, profile } = link;
  const isAstray = profile.record?.issuer !== undefined && record.issuer !== profile.record.issuer;
  return (
    <article class="tile" aria-label={`${nounOf(description.name).one} ${plainText(nameOf(link))}`}>
      <Icon name="link" />
      <div class="tile-body">
        <p class="tile-kind">{nounOf(description.name).one}</p>
        <p class="tile-name">
          <Said text={nameOf(link)} />
        </p>
        {isAstray && (
          <p class="badge badge-warn">
            issuer differs: <Said text={String(record.issuer)} />
          </p>
        )}
        <p class="faint small">
          since <Instant at={record.created_at} />
        </p>
        <div class="tile-controls">{controls}</div>
      </div>
    </article>
  );
}

function ProfileTile({ realm, profile }: { readonly realm: string; readonly profile: Profile }) {
  const { id, description, record } = profile;
  const kind = description === RESOURCES.oidcProfiles ? 'oidc-profiles' : 'password-profiles';
  return (
    <div class="tile tile-profile">
      <Icon name="profile" />
      <div class="tile-body">
        <p class="tile-kind">{nounOf(description.name).one}</p>
        <p class="tile-name">
          <a href={href('realms', realm, kind, id)}>
            {record ? <Said text={String(record.name)} /> : <code>{id}</code>}
          </a>
        </p>
        {!record && <p class="faint small">Deleted, or not visible to this session.</p>}
      </div>
    </div>
  );
}

function IssuerTile({ issuer }: { readonly issuer: string }) {
  return (
    <div class="tile tile-issuer">
      <Icon name="issuer" />
      <div class="tile-body">
        <p class="tile-kind">issuer</p>
        <p class="tile-name">{issuer === OWN ? 'This service' : <Said text={issuer} />}</p>
      </div>
    </div>
  );
}

/** What can be done with a link: its history for who may read changes, the rest for who may write. */
export function LinkControls({ link, onAct }: { readonly link: Link; readonly onAct: (act: Act) => void }) {
  const state = useObserved(session);
  const isWriter = may(state, `${link.description.scope}:write`);
  const name = plainText(nameOf(link));
  const button = (
    kind: 'history' | 'editLink' | 'removeLink',
    icon: 'history' | 'edit' | 'remove',
    words: string,
  ) => (
    <button
      type="button"
      class="icon-button"
      aria-label={`${words} ${name}`}
      title={words}
      onClick={() => onAct({ kind, link })}
    >
      <Icon name={icon} />
    </button>
  );
  return (
    <>
      <Copy text={link.record.id} what="the ID of the link" />
      {may(state, 'changes:read') && button('history', 'history', 'History of')}
      {isWriter && button('editLink', 'edit', 'Edit')}
      {isWriter && button('removeLink', 'remove', 'Remove')}
    </>
  );
}
