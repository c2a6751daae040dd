import { type Asked, useAsked } from '../../api/answers.ts';
import { ask } from '../../api/caller.ts';
import { type Key, pathOf, RESOURCES } from '../../api/records.ts';
import { Fact } from '../../parts/facts.tsx';
import { Icon } from '../../parts/icon.tsx';
import { Answered } from '../../parts/notices.tsx';
import { Said } from '../../parts/said.tsx';

const DESCRIPTION = RESOURCES.oidcProfiles;

/** What the service has heard of the provider just now. */
interface Discovery {
  readonly asked: boolean;
  readonly answers: boolean;
  readonly took_ms: number | null;
  readonly issuer_agrees: boolean | null;
  readonly document: Readonly<Record<string, string | readonly string[] | null>> | null;
}

const FACTS = [
  ['issuer', 'Issuer'],
  ['authorization_endpoint', 'Authorization endpoint'],
  ['token_endpoint', 'Token endpoint'],
  ['jwks_uri', 'Key set'],
  ['scopes_supported', 'Scopes'],
  ['response_types_supported', 'Response types'],
] as const;

interface CardProps {
  readonly recordKey: Key;
  /** Of the profile: what the answer of its provider is compared with. */
  readonly issuer: string;
  readonly discoveryUrl: string;
}

/** What the provider of a profile says of itself, asked when the page comes up, and whether it answers. */
export function ProviderCard({ recordKey, issuer, discoveryUrl }: CardProps) {
  const asked = useAsked(
    async (signal) => {
      const path = `${pathOf(DESCRIPTION, recordKey)}/discovery`;
      return (await ask<{ data: Discovery }>({ path, signal, scope: `${DESCRIPTION.scope}:read` })).body.data;
    },
    [...recordKey, issuer, discoveryUrl],
  );
  return (
    <section class="card" aria-labelledby="provider">
      <div class="card-head">
        <h2 id="provider">The provider now</h2>
        <AskAgain asked={asked} />
      </div>
      {asked.isWaiting && (
        <p class="waiting" role="status">
          The provider is being asked…
        </p>
      )}
      {(!asked.isWaiting || asked.problem) && (
        <Answered asked={asked}>
          {(discovery) => <Told discovery={discovery} issuer={issuer} discoveryUrl={discoveryUrl} />}
        </Answered>
      )}
    </section>
  );
}

function AskAgain({ asked: { answer, isWaiting, again } }: { readonly asked: Asked<Discovery> }) {
  if (answer?.asked === false) return null;
  return (
    <button type="button" class="button" disabled={isWaiting} onClick={again}>
      Ask again
    </button>
  );
}

type ToldProps = Omit<CardProps, 'recordKey'> & { readonly discovery: Discovery };

function Told({ discovery, issuer, discoveryUrl }: ToldProps) {
  const { asked, answers, document } = discovery;
  if (!asked) return <Unasked discoveryUrl={discoveryUrl} />;
  if (!answers || !document) {
    return (
      <div class="note note-warn" role="status">
        <Icon name="warning" />
        <div>
          <p>The provider does not answer.</p>
          <p class="small">
            No discovery document came. Why is not told, so that nobody learns about the network by it. Open
            the discovery URL yourself, and see that the service may reach it on port 443.
          </p>
        </div>
      </div>
    );
  }
  return (
    <>
      <Verdict discovery={discovery} issuer={issuer} />
      <dl class="facts">
        {FACTS.map(([name, label]) => (
          <Fact key={name} label={label}>
            <Value value={document[name] ?? null} />
          </Fact>
        ))}
      </dl>
    </>
  );
}

function Unasked({ discoveryUrl }: Pick<CardProps, 'discoveryUrl'>) {
  const isOffline = discoveryUrl.endsWith('/.well-known/openid-configuration');
  return (
    <p class="note" role="status">
      {isOffline
        ? 'This service runs with --offline: it asks no provider.'
        : 'The discovery URL does not end in /.well-known/openid-configuration: no provider is asked there.'}
    </p>
  );
}

function Verdict({ discovery, issuer }: Pick<ToldProps, 'discovery' | 'issuer'>) {
  return (
    <div class="stack" role="status">
      <p>
        <span class="badge badge-good">Answers</span> in {discovery.took_ms} ms
      </p>
      {discovery.issuer_agrees ? (
        <p>Its issuer is that of this profile.</p>
      ) : (
        <div class="note note-danger">
          <Icon name="warning" />
          <p>
            {discovery.document?.issuer
              ? 'It names another issuer than this profile has, which is '
              : 'It names no issuer. That of this profile is '}
            <Said text={issuer} />. Its tokens match no link that was made with the issuer of this profile.
          </p>
        </div>
      )}
    </div>
  );
}

function Value({ value }: { readonly value: string | readonly string[] | null }) {
  if (value === null || value.length === 0) return <span class="faint">not said</span>;
  if (typeof value === 'string') return <Said text={value} />;
  return (
    <ul>
      {[...new Set(value)].map((each) => (
        <li key={each}>
          <Said text={each} />
        </li>
      ))}
    </ul>
  );
}
