import type { ComponentChildren } from 'preact';
import type { Administered } from '../../api/administered.ts';
import { type Asked, useAsked } from '../../api/answers.ts';
import { readRealmNames } from '../../api/realm_names.ts';
import type { Tagged } from '../../api/records.ts';
import { PageHead } from '../../layout/head.tsx';
import { href } from '../../layout/router.ts';
import { Fact } from '../../parts/facts.tsx';
import { Instant } from '../../parts/instant.tsx';
import { Answered } from '../../parts/notices.tsx';
import { Said } from '../../parts/said.tsx';
import { ActButtons } from './controls.tsx';
import type { Kind } from './kind.ts';

interface AdministeredPageProps<Said, Created, Read> {
  readonly kind: Kind<Said, Created>;
  readonly asked: Asked<Read>;
  /** What only its kind has to tell, as facts. */
  readonly facts: (answer: Read) => ComponentChildren;
  /** What stands below the facts. */
  readonly rest?: (answer: Read) => ComponentChildren;
}

/** One of a kind: what is known of it, and what can be done with it. */
export function AdministeredPage<Said, Created extends Said, Read extends Tagged<Administered & Said>>(
  props: AdministeredPageProps<Said, Created, Read>,
) {
  const { kind, asked, facts, rest } = props;
  const { answer } = asked;
  return (
    <>
      <PageHead
        title={answer?.record.name ?? kind.title}
        heading={answer ? <Said text={answer.record.name} /> : undefined}
        above={[kind.home]}
        actions={answer && <ActButtons kind={kind} tagged={answer} onChanged={asked.again} />}
      />
      <Answered asked={asked}>
        {(known) => (
          <>
            <Facts kind={kind} record={known.record}>
              {facts(known)}
            </Facts>
            {rest?.(known)}
          </>
        )}
      </Answered>
    </>
  );
}

interface FactsProps<Said, Created> {
  readonly kind: Kind<Said, Created>;
  readonly record: Administered;
  readonly children: ComponentChildren;
}

function Facts<Said, Created>({ kind: { what, words }, record, children }: FactsProps<Said, Created>) {
  const { is_disabled: isOff, previous_secret_expires_at: previous, meta } = record;
  return (
    <section class="card" aria-label={`This ${what}`}>
      <dl class="facts">
        <Fact label="State">
          <span class={isOff ? 'badge badge-warn' : 'badge badge-good'}>
            {isOff ? words.isOff : words.isOn}
          </span>
        </Fact>
        {children}
        {previous !== null && (
          <Fact label="Old secret">
            {words.before} <Instant at={previous} />
          </Fact>
        )}
        <Fact label="Created">
          <Instant at={meta.created_at} />
        </Fact>
        <Fact label="Changed">
          <Instant at={meta.updated_at} />
        </Fact>
      </dl>
    </section>
  );
}

/** In which realms something holds. */
export function RealmsFact({ realms }: { readonly realms: '*' | readonly string[] }) {
  return <Fact label="Realms">{realms === '*' ? 'all' : <RealmLinks ids={realms} />}</Fact>;
}

/** By name where it is known, else by ID. */
function RealmLinks({ ids }: { readonly ids: readonly string[] }) {
  const { answer: known } = useAsked(readRealmNames, []);
  return (
    <ul>
      {ids.map((id) => {
        const realm = known?.find((each) => each.id === id);
        return (
          <li key={id}>
            <a href={href('realms', id)}>{realm ? <Said text={realm.name} /> : <code>{id}</code>}</a>
          </li>
        );
      })}
    </ul>
  );
}
