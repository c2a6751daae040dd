import { useEffect, useId, useState } from 'preact/hooks';
import { RESOURCES } from '../../api/records.ts';
import { useObservable } from '../../observable.ts';
import { Icon } from '../../parts/icon.tsx';
import { ProblemNote } from '../../parts/notices.tsx';
import { resourceLabel } from '../../parts/resource_labels.ts';
import { UntrustedText } from '../../parts/untrusted_text.tsx';
import { hasAllRealms, hasScope, type SessionState, session } from '../../session/session.ts';
import { formatCount, Progress, RealmChoice, RejectedLines, WaitingNote } from './controls.tsx';
import { type Contents, currentImport, type ImportState, inspectFile, startImport } from './import_run.ts';
import { IMPORT_ORDER } from './line_format.ts';
import type { TransferRun } from './retry.ts';

/** Imports a file line by line through the API. */
export function ImportCard() {
  const run = useObservable(currentImport);
  return (
    <section class="card" aria-label="Import">
      <div class="card-head">
        <h2>Import</h2>
      </div>
      {run ? <ImportProgress run={run} /> : <ImportForm />}
    </section>
  );
}

function ImportNotes() {
  return (
    <details class="promises">
      <summary>Limits of an import in the browser</summary>
      <ul>
        <li>
          Records are created through the API: each gets a new ID, and references are mapped to the new IDs.
        </li>
        <li>A link whose issuer and subject, or username, already exists is rejected and listed by line.</li>
        <li>Users cannot be matched to existing ones: importing the same file twice creates them twice.</li>
        <li>If you choose a realm, its existing profiles are reused.</li>
        <li>Creation times are not kept.</li>
        <li>
          An OIDC profile needs its <code>client_secret</code> in the line, a password link its{' '}
          <code>password</code>: an export has neither, so such lines are rejected. Create the profiles by
          hand first, then import into their realm.
        </li>
      </ul>
      <p>
        To keep IDs, times and password hashes, or to move hundreds of thousands of records, use{' '}
        <code>authrealm import</code> at the command line.
      </p>
    </details>
  );
}

function ImportForm() {
  const id = useId();
  const [file, setFile] = useState<File>();
  const [contents, setContents] = useState<Contents>();
  const [failure, setFailure] = useState<string>();
  const [target, setTarget] = useState('');
  const choose = (chosen: File | undefined) => {
    setFile(chosen);
    setContents(undefined);
    setFailure(undefined);
    if (!chosen) return;
    inspectFile(chosen).then(setContents, () => setFailure('The file cannot be read.'));
  };
  return (
    <div class="form">
      <ImportNotes />
      <div class="field">
        <label for={id}>File written by authrealm export</label>
        <input
          id={id}
          type="file"
          accept=".ndjson,.jsonl,.json,.txt"
          onChange={({ currentTarget }) => choose(currentTarget.files?.[0])}
        />
      </div>
      {failure !== undefined && (
        <p class="field-error" role="alert">
          {failure}
        </p>
      )}
      {file && !contents && failure === undefined && <p class="faint">Reading…</p>}
      {file && contents && (
        <>
          <ContentsFacts contents={contents} />
          <RealmChoice
            label="Into"
            realm={target}
            otherwise="new realms, as in the file"
            onRealm={setTarget}
          />
          <Start file={file} contents={contents} target={target === '' ? undefined : target} />
        </>
      )}
    </div>
  );
}

function ContentsFacts({ contents: { lines, counts, refused } }: { readonly contents: Contents }) {
  return (
    <div role="status">
      <p>
        {formatCount(lines)} {lines === 1 ? 'line' : 'lines'}
        {refused.length > 0 && `, ${formatCount(refused.length)} of them invalid`}
      </p>
      <ul class="words">
        {IMPORT_ORDER.flatMap(({ name }) => {
          const count = counts.get(name) ?? 0;
          return count === 0
            ? []
            : [
                <li key={name} class="badge">
                  {wordsFor(name, count)}
                </li>,
              ];
        })}
      </ul>
    </div>
  );
}

interface StartProps {
  readonly file: File;
  readonly contents: Contents;
  readonly target: string | undefined;
}

function Start({ file, contents, target }: StartProps) {
  const blocked = blockedBy(contents, target, useObservable(session));
  if (blocked !== undefined) {
    return (
      <>
        <p class="note note-warn">
          <Icon name="warning" /> <span>{blocked}</span>
        </p>
        <RejectedLines refused={contents.refused} name={contents.name} />
      </>
    );
  }
  return (
    <>
      <MissingSecrets contents={contents} target={target} />
      <div class="actions">
        <button type="button" class="button button-main" onClick={() => startImport(file, contents, target)}>
          Import
        </button>
      </div>
    </>
  );
}

/** Records that will be rejected because they lack a secret. */
function MissingSecrets({ contents: { withoutSecret }, target }: Omit<StartProps, 'file'>) {
  const { oidcProfiles, passwordProfileInfos } = RESOURCES;
  const profiles = target === undefined ? (withoutSecret.get(oidcProfiles.name) ?? 0) : 0;
  const links = withoutSecret.get(passwordProfileInfos.name) ?? 0;
  if (profiles + links === 0) return null;
  return (
    <div class="note note-warn">
      <Icon name="warning" />
      <div>
        {profiles > 0 && (
          <p>
            {wordsFor(oidcProfiles.name, profiles)} without <code>client_secret</code>: rejected, with every
            link to them. Create them by hand first, and choose their realm here.
          </p>
        )}
        {links > 0 && (
          <p>
            {wordsFor(passwordProfileInfos.name, links)} without <code>password</code>: rejected. Only the
            command line imports hashes.
          </p>
        )}
      </div>
    </div>
  );
}

function wordsFor(name: string, count: number): string {
  const { one, many } = resourceLabel(name);
  return `${formatCount(count)} ${count === 1 ? one : many}`;
}

/** Why this file cannot be imported, if so. */
function blockedBy(
  { lines, counts, realms }: Contents,
  target: string | undefined,
  state: SessionState,
): string | undefined {
  if (lines === 0) return 'This file is empty.';
  if (counts.size === 0) return 'No line of this file is a valid export line.';
  if (target !== undefined && realms.size > 1) {
    return 'This file contains several realms: import them as new realms, or export them one by one with --realm.';
  }
  const missingScopes = IMPORT_ORDER.filter(
    ({ name, parent }) => counts.has(name) && !(target !== undefined && !parent),
  )
    .map(({ scope }) => `${scope}:write`)
    .filter((scope) => !hasScope(state, scope));
  if (missingScopes.length === 0 && target === undefined && !hasAllRealms(state)) {
    return 'This session is limited to some realms and cannot create one: choose an existing realm.';
  }
  if (missingScopes.length === 0) return undefined;
  return `This session lacks the scopes to create these records: ${[...new Set(missingScopes)].join(', ')}.`;
}

const IMPORT_RESULTS = {
  done: 'Import complete.',
  cancelled: 'Import cancelled: records created so far remain.',
  failed: 'Import failed: records created so far remain.',
} as const;

function ImportProgress({ run }: { readonly run: TransferRun<ImportState> }) {
  const state = useObservable(run.state);
  const { contents, created, found, refused, end, waiting, problem } = state;
  const done = created + found + refused.length;
  useConfirmLeave(end === undefined);
  return (
    <div class="stack">
      <p>
        <UntrustedText text={contents.name} />
      </p>
      <Progress label="Processed lines" done={done} total={contents.lines} />
      <p class="tally">
        <span>
          {formatCount(done)} of {formatCount(contents.lines)} lines
        </span>
        <span class="faint">{paceText(state, done)}</span>
      </p>
      <p role="status">
        {end !== undefined && `${IMPORT_RESULTS[end]} `}
        {formatCount(created)} created{found > 0 && `, ${formatCount(found)} existing`},{' '}
        {formatCount(refused.length)} rejected.
      </p>
      <WaitingNote waiting={waiting} resume={run.resume} />
      {problem && <ProblemNote problem={problem} />}
      {end !== undefined && <RejectedLines refused={refused} name={contents.name} />}
      <div class="actions">
        {end === undefined ? (
          <button type="button" class="button" onClick={run.cancel}>
            Cancel
          </button>
        ) : (
          <button type="button" class="button" onClick={() => currentImport.set(undefined)}>
            Import another file
          </button>
        )}
      </div>
    </div>
  );
}

const SECOND_MS = 1_000;
const MINUTE_SECONDS = 60;

/** Rate and remaining time; empty while unknown. */
function paceText({ contents, end, elapsedMs }: ImportState, done: number): string {
  const seconds = elapsedMs / SECOND_MS;
  const rate = done / Math.max(seconds, 1);
  if (rate === 0 || end !== undefined) return '';
  const left = Math.ceil((contents.lines - done) / rate);
  const words = left < MINUTE_SECONDS ? `${left} s` : `${Math.ceil(left / MINUTE_SECONDS)} min`;
  return `${formatCount(Math.round(rate))} per second, ${words} left`;
}

/** Asks for confirmation before the page is closed. */
function useConfirmLeave(isNeeded: boolean): void {
  useEffect(() => {
    if (!isNeeded) return;
    const preventClose = (event: Event) => event.preventDefault();
    addEventListener('beforeunload', preventClose);
    return () => removeEventListener('beforeunload', preventClose);
  }, [isNeeded]);
}
