import { useState } from 'preact/hooks';
import { RESOURCES } from '../../api/records.ts';
import { keepQuery, place } from '../../layout/router.ts';
import { useObserved } from '../../observable.ts';
import { Icon } from '../../parts/icon.tsx';
import { ProblemNote } from '../../parts/notices.tsx';
import { nounOf } from '../../parts/nouns.ts';
import { may, type SessionState, session } from '../../session/session.ts';
import { beginExport, currentExport, type ExportRun, LINKS } from './export_run.ts';
import { RealmChoice } from './realm_choice.tsx';
import { numbered } from './refusals.tsx';
import { saveFile } from './saving.ts';
import { Progress, WorkNotes } from './work_notes.tsx';

/** Writes a realm into a file, as far as the API shows it. */
export function ExportCard() {
  const run = useObserved(currentExport);
  return (
    <section class="card" aria-label="Export">
      <div class="card-head">
        <h2>Export</h2>
      </div>
      {run ? <Running run={run} /> : <Beginning />}
    </section>
  );
}

function Beginning() {
  const [realm, setRealm] = useState(place.get().query.get('realm') ?? '');
  const unseen = unseenBy(useObserved(session));
  return (
    <div class="form">
      <p>
        A realm, its profiles, users and links, one a line, as <code>authrealm import</code> and the import
        here read them.
      </p>
      <details class="promises">
        <summary>What an export here does, and does not</summary>
        <ul>
          <li>Client secrets and password hashes are shown by no answer, so they are not in the file.</li>
          <li>
            It reads one list after the other: what is changed meanwhile may be in it or not. Links are listed
            user by user, so a large realm takes its time.
          </li>
        </ul>
        <p>
          For one moment of everything, with secrets or for hundreds of thousands of users, use{' '}
          <code>authrealm export</code> at the command line.
        </p>
      </details>
      <RealmChoice
        label="Realm"
        realm={realm}
        onRealm={(chosen) => {
          setRealm(chosen);
          keepQuery({ realm: chosen });
        }}
      />
      {unseen.length > 0 && (
        <p class="hint">This session may not read: {unseen.join(', ')}. They are left out.</p>
      )}
      <div class="actions">
        <button
          type="button"
          class="button button-main"
          disabled={realm === ''}
          onClick={() => beginExport(realm)}
        >
          Export
        </button>
      </div>
    </div>
  );
}

/** What a session may not read of a realm. */
function unseenBy(state: SessionState): readonly string[] {
  const { oidcProfiles, passwordProfiles, users } = RESOURCES;
  return [oidcProfiles, passwordProfiles, users, ...LINKS]
    .filter(({ scope }) => !may(state, `${scope}:read`))
    .map(({ name }) => nounOf(name).many);
}

const ENDS = {
  done: 'The export is done.',
  cancelled: 'The export was cancelled.',
  failed: 'The export ended before its time.',
} as const;

function Running({ run }: { readonly run: ExportRun }) {
  const { realm, records, users, usersTotal, waiting, end, problem, file } = useObserved(run.state);
  return (
    <div class="stack">
      {end === undefined && <Progress label="Users that are written" done={users} total={usersTotal} />}
      <p role="status">
        {end !== undefined && `${ENDS[end]} `}
        {numbered(records)} {records === 1 ? 'record' : 'records'}
        {usersTotal !== undefined &&
          end === undefined &&
          `, ${numbered(users)} of ${numbered(usersTotal)} users`}
        .
      </p>
      <WorkNotes waiting={waiting} goOn={run.goOn} />
      {problem && <ProblemNote problem={problem} />}
      <div class="actions">
        {file && (
          <button
            type="button"
            class="button button-main"
            onClick={() => saveFile(`realm-${realm}.ndjson`, file)}
          >
            <Icon name="transfer" /> Save the file
          </button>
        )}
        {end === undefined ? (
          <button type="button" class="button" onClick={run.cancel}>
            Cancel
          </button>
        ) : (
          <button type="button" class="button" onClick={() => currentExport.set(undefined)}>
            Export another realm
          </button>
        )}
      </div>
    </div>
  );
}
