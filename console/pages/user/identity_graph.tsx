import type { ComponentChildren } from 'preact';
import { type ApiRecord, RESOURCES } from '../../api/records.ts';
import { href } from '../../layout/router.ts';
import { useObservable } from '../../observable.ts';
import { plainText } from '../../parts/confusables.ts';
import { CopyButton } from '../../parts/copy.tsx';
import { Icon } from '../../parts/icon.tsx';
import { resourceLabel } from '../../parts/resource_labels.ts';
import { Timestamp } from '../../parts/timestamp.tsx';
import { UntrustedText } from '../../parts/untrusted_text.tsx';
import { hasScope, session } from '../../session/session.ts';
import type { Action } from './dialogs.tsx';
import { type Link, nameOf, type Profile } from './load_user.ts';

interface IdentityGraphProps {
  readonly realm: string;
  readonly user: ApiRecord;
  readonly links: readonly Link[];
  /** How a link came into being, if that is known. */
  readonly originOf: (link: Link) => string | undefined;
  /** The buttons of a link. */
  readonly controls: (link: Link) => ComponentChildren;
}

/** A graph of a user, its links, their profiles and issuers. */
export function IdentityGraph({ realm, user, links, originOf, controls }: IdentityGraphProps) {
  return (
    <figure class="picture" aria-label="How this user signs in">
      <div class="picture-user">
        <div class="tile tile-user">
          <Icon name="user" />
          <div>
            <p class="tile-name">
              <UntrustedText text={String(user.name)} />
            </p>
            <p class="faint small">
              <UntrustedText text={String(user.email)} />
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
                        <LinkTile link={link} origin={originOf(link)} controls={controls(link)} />
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

/** Passwords have no issuer: the service itself verifies them. */
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

interface LinkTileProps {
  readonly link: Link;
  readonly origin: string | undefined;
  readonly controls: ComponentChildren;
}

function LinkTile({ link, origin, controls }: LinkTileProps) {
  const { description, record, profile } = link;
  const hasOtherIssuer = profile.record?.issuer !== undefined && record.issuer !== profile.record.issuer;
  return (
    <article class="tile" aria-label={`${resourceLabel(description.name).one} ${plainText(nameOf(link))}`}>
      <Icon name="link" />
      <div class="tile-body">
        <p class="tile-kind">{resourceLabel(description.name).one}</p>
        <p class="tile-name">
          <UntrustedText text={nameOf(link)} />
        </p>
        {hasOtherIssuer && (
          <p class="badge badge-warn">
            issuer differs: <UntrustedText text={String(record.issuer)} />
          </p>
        )}
        <p class="faint small">
          since <Timestamp at={record.created_at} />
          {origin !== undefined && (
            <>
              , <UntrustedText text={origin} />
            </>
          )}
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
        <p class="tile-kind">{resourceLabel(description.name).one}</p>
        <p class="tile-name">
          <a href={href('realms', realm, kind, id)}>
            {record ? <UntrustedText text={String(record.name)} /> : <code>{id}</code>}
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
        <p class="tile-name">{issuer === OWN ? 'This service' : <UntrustedText text={issuer} />}</p>
      </div>
    </div>
  );
}

/** The buttons of a link, depending on the scopes of the session. */
export function LinkControls({
  link,
  onAction,
}: {
  readonly link: Link;
  readonly onAction: (action: Action) => void;
}) {
  const state = useObservable(session);
  const isWriter = hasScope(state, `${link.description.scope}:write`);
  const name = plainText(nameOf(link));
  const button = (
    kind: 'history' | 'editLink' | 'removeLink',
    icon: 'history' | 'edit' | 'remove',
    label: string,
  ) => (
    <button
      type="button"
      class="icon-button"
      aria-label={`${label} ${name}`}
      title={label}
      onClick={() => onAction({ kind, link })}
    >
      <Icon name={icon} />
    </button>
  );
  return (
    <>
      <CopyButton text={link.record.id} what="the ID of the link" />
      {hasScope(state, 'changes:read') && button('history', 'history', 'History of')}
      {isWriter && button('editLink', 'edit', 'Edit')}
      {isWriter && button('removeLink', 'remove', 'Remove')}
    </>
  );
}
