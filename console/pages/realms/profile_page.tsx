import { callApi } from '../../api/call_api.ts';
import { type Key, pathOf, RESOURCES, readRecord } from '../../api/records.ts';
import { type Fetched, useFetch } from '../../api/use_fetch.ts';
import type { Description } from '../../description.ts';
import { PageHead, type PageProps } from '../../layout/page.tsx';
import { href } from '../../layout/router.ts';
import { Fact, RecordFacts } from '../../parts/facts.tsx';
import { Icon } from '../../parts/icon.tsx';
import { Loaded } from '../../parts/notices.tsx';
import { resourceLabel } from '../../parts/resource_labels.ts';
import { UntrustedText } from '../../parts/untrusted_text.tsx';
import { RecordActions, realmBreadcrumbs } from './record_views.tsx';

export function OidcProfilePage({ parameters }: PageProps) {
  return <ProfileView description={RESOURCES.oidcProfiles} parameters={parameters} />;
}

export function PasswordProfilePage({ parameters }: PageProps) {
  return <ProfileView description={RESOURCES.passwordProfiles} parameters={parameters} />;
}

/** A profile that users sign in through. */
function ProfileView({
  description,
  parameters: { realm = '', profile = '' },
}: PageProps & { readonly description: Description }) {
  const fetched = useFetch((signal) => readRecord(description, [realm, profile], signal), [realm, profile]);
  const { one } = resourceLabel(description.name);
  const name = fetched.answer ? String(fetched.answer.record.name) : one;
  return (
    <>
      <PageHead
        title={name}
        heading={fetched.answer ? <UntrustedText text={name} /> : undefined}
        breadcrumbs={realmBreadcrumbs(realm)}
        actions={
          fetched.answer && (
            <RecordActions
              description={description}
              recordKey={[realm, profile]}
              loaded={fetched.answer}
              consequence="User links to it are deleted as well."
              after={href('realms', realm)}
              onChanged={fetched.reload}
            />
          )
        }
      />
      <Loaded fetched={fetched}>
        {({ record }) => (
          <>
            <section class="card" aria-label={`This ${one}`}>
              <RecordFacts description={description} record={record} />
            </section>
            {description.name === RESOURCES.oidcProfiles.name && (
              <ProviderCard
                recordKey={[realm, profile]}
                issuer={String(record.issuer)}
                discoveryUrl={String(record.discovery_url)}
              />
            )}
          </>
        )}
      </Loaded>
    </>
  );
}

const OIDC_PROFILE = RESOURCES.oidcProfiles;

/** The current discovery result of a provider. */
interface Discovery {
  readonly asked: boolean;
  readonly answers: boolean;
  readonly took_ms: number | null;
  readonly issuer_agrees: boolean | null;
  readonly document: Readonly<Record<string, string | readonly string[] | null>> | null;
}

const DISCOVERY_FACTS = [
  ['issuer', 'Issuer'],
  ['authorization_endpoint', 'Authorization endpoint'],
  ['token_endpoint', 'Token endpoint'],
  ['jwks_uri', 'Key set'],
  ['scopes_supported', 'Scopes'],
  ['response_types_supported', 'Response types'],
] as const;

interface CardProps {
  readonly recordKey: Key;
  /** Issuer of the profile, compared with the discovery document. */
  readonly issuer: string;
  readonly discoveryUrl: string;
}

/** Whether the provider of a profile responds, and its discovery document; fetched on mount. */
function ProviderCard({ recordKey, issuer, discoveryUrl }: CardProps) {
  const fetched = useFetch(
    async (signal) => {
      const path = `${pathOf(OIDC_PROFILE, recordKey)}/discovery`;
      return (await callApi<{ data: Discovery }>({ path, signal, scope: `${OIDC_PROFILE.scope}:read` })).body
        .data;
    },
    [...recordKey, issuer, discoveryUrl],
  );
  return (
    <section class="card" aria-labelledby="provider">
      <div class="card-head">
        <h2 id="provider">Provider status</h2>
        <CheckAgain fetched={fetched} />
      </div>
      {fetched.isWaiting && (
        <p class="waiting" role="status">
          Contacting the provider…
        </p>
      )}
      {(!fetched.isWaiting || fetched.problem) && (
        <Loaded fetched={fetched}>
          {(discovery) => (
            <DiscoveryResult discovery={discovery} issuer={issuer} discoveryUrl={discoveryUrl} />
          )}
        </Loaded>
      )}
    </section>
  );
}

function CheckAgain({ fetched: { answer, isWaiting, reload } }: { readonly fetched: Fetched<Discovery> }) {
  if (answer?.asked === false) return null;
  return (
    <button type="button" class="button" disabled={isWaiting} onClick={reload}>
      Check again
    </button>
  );
}

type DiscoveryResultProps = Omit<CardProps, 'recordKey'> & { readonly discovery: Discovery };

function DiscoveryResult({ discovery, issuer, discoveryUrl }: DiscoveryResultProps) {
  const { asked, answers, document } = discovery;
  if (!asked) return <NotRequested discoveryUrl={discoveryUrl} />;
  if (!answers || !document) {
    return (
      <div class="note note-warn" role="status">
        <Icon name="warning" />
        <div>
          <p>The provider does not respond.</p>
          <p class="small">
            No discovery document was received. The reason is withheld, because it could reveal the internal
            network. Open the discovery URL yourself, and check that the service can reach it on port 443.
          </p>
        </div>
      </div>
    );
  }
  return (
    <>
      <IssuerCheck discovery={discovery} issuer={issuer} />
      <dl class="facts">
        {DISCOVERY_FACTS.map(([name, label]) => (
          <Fact key={name} label={label}>
            <DiscoveryValue value={document[name] ?? null} />
          </Fact>
        ))}
      </dl>
    </>
  );
}

function NotRequested({ discoveryUrl }: Pick<CardProps, 'discoveryUrl'>) {
  const isOffline = discoveryUrl.endsWith('/.well-known/openid-configuration');
  return (
    <p class="note" role="status">
      {isOffline
        ? 'This service runs with --offline and contacts no provider.'
        : 'The discovery URL does not end in /.well-known/openid-configuration, so no provider is contacted.'}
    </p>
  );
}

function IssuerCheck({ discovery, issuer }: Pick<DiscoveryResultProps, 'discovery' | 'issuer'>) {
  return (
    <div class="stack" role="status">
      <p>
        <span class="badge badge-good">Responding</span> in {discovery.took_ms} ms
      </p>
      {discovery.issuer_agrees ? (
        <p>Its issuer matches this profile.</p>
      ) : (
        <div class="note note-danger">
          <Icon name="warning" />
          <p>
            {discovery.document?.issuer
              ? 'It names a different issuer. This profile has '
              : 'It names no issuer. This profile has '}
            <UntrustedText text={issuer} />. Its tokens match no link that has the issuer of this profile.
          </p>
        </div>
      )}
    </div>
  );
}

function DiscoveryValue({ value }: { readonly value: string | readonly string[] | null }) {
  if (value === null || value.length === 0) return <span class="faint">not given</span>;
  if (typeof value === 'string') return <UntrustedText text={value} />;
  return (
    <ul>
      {[...new Set(value)].map((each) => (
        <li key={each}>
          <UntrustedText text={each} />
        </li>
      ))}
    </ul>
  );
}
