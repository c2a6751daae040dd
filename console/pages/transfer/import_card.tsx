import { useEffect, useId, useState } from 'preact/hooks';
import { RESOURCES } from '../../api/records.ts';
import { useObserved } from '../../observable.ts';
import { Icon } from '../../parts/icon.tsx';
import { ProblemNote } from '../../parts/notices.tsx';
import { nounOf } from '../../parts/resource_labels.ts';
import { Said } from '../../parts/untrusted_text.tsx';
import { may, type SessionState, session } from '../../session/session.ts';
import { numbered, Progress, RealmChoice, Refusals, WorkNotes } from './controls.tsx';
import {
  beginImport,
  type Contents,
  currentImport,
  type ImportRun,
  type ImportState,
  lookInto,
} from './import_run.ts';
import { ORDER } from './line_format.ts';

/** Reads a file into this service, line by line, over the API. */
export function ImportCard() {
  const run = useObserved(currentImport);
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
      <summary>What an import here does, and does not</summary>
      <ul>
        <li>
          Records are made over the API: each gets a new ID, and what names another one is led to its new ID.
        </li>
        <li>
          What is there already by its issuer and subject, or its username, is refused, and told line by line.
        </li>
        <li>Users have nothing by which they are known again: the same file twice makes them twice.</li>
        <li>In a realm that you choose, profiles that are there already are used, and not made again.</li>
        <li>The time of creation is now.</li>
        <li>
          An OIDC profile needs its <code>client_secret</code> in the line, a password link its{' '}
          <code>password</code>: an export has neither, so such lines are refused. Make the profiles by hand
          first, then import into their realm.
        </li>
      </ul>
      <p>
        To move records with their IDs, times and password hashes, or hundreds of thousands of them, use{' '}
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
    lookInto(chosen).then(setContents, () => setFailure('The file cannot be read.'));
  };
  return (
    <div class="form">
      <ImportNotes />
      <div class="field">
        <label for={id}>File, as authrealm export writes it</label>
        <input
          id={id}
          type="file"
          accept=".ndjson,.jsonl,.json,.txt"
          onChange={({ currentTarget }) => choose(currentTarget.files?.[0])}
        />
      </div>
      {failure !== undefined && (
        <p class="complaint" role="alert">
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
            otherwise="realms as the file has them, made anew"
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
        {numbered(lines)} {lines === 1 ? 'line' : 'lines'}
        {refused.length > 0 && `, ${numbered(refused.length)} of them no line of an export`}
      </p>
      <ul class="words">
        {ORDER.flatMap(({ name }) => {
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
  const hindrance = hindranceOf(contents, target, useObserved(session));
  if (hindrance !== undefined) {
    return (
      <>
        <p class="note note-warn">
          <Icon name="warning" /> <span>{hindrance}</span>
        </p>
        <Refusals refused={contents.refused} name={contents.name} />
      </>
    );
  }
  return (
    <>
      <Lacking contents={contents} target={target} />
      <div class="actions">
        <button type="button" class="button button-main" onClick={() => beginImport(file, contents, target)}>
          Import
        </button>
      </div>
    </>
  );
}

/** What will be refused for want of a secret. */
function Lacking({ contents: { withoutSecret }, target }: Omit<StartProps, 'file'>) {
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
            {wordsFor(oidcProfiles.name, profiles)} without <code>client_secret</code>: refused, and every
            link to them. Make them by hand first, and choose their realm here.
          </p>
        )}
        {links > 0 && (
          <p>
            {wordsFor(passwordProfileInfos.name, links)} without <code>password</code>: refused. Hashes come
            along at the command line alone.
          </p>
        )}
      </div>
    </div>
  );
}

function wordsFor(name: string, count: number): string {
  const { one, many } = nounOf(name);
  return `${numbered(count)} ${count === 1 ? one : many}`;
}

/** Why this file cannot go there, in words. */
function hindranceOf(
  { lines, counts, realms }: Contents,
  target: string | undefined,
  state: SessionState,
): string | undefined {
  if (lines === 0) return 'This file is empty.';
  if (counts.size === 0) return 'Not one line of this file is a line of an export.';
  if (target !== undefined && realms.size > 1) {
    return 'This file holds several realms: they are made anew, or exported one by one with --realm.';
  }
  const lacking = ORDER.filter(({ name, parent }) => counts.has(name) && !(target !== undefined && !parent))
    .map(({ scope }) => `${scope}:write`)
    .filter((scope) => !may(state, scope));
  if (lacking.length === 0 && target === undefined && state.open?.realms !== '*') {
    return 'This session is limited to some realms, and makes none: choose one that is there.';
  }
  if (lacking.length === 0) return undefined;
  return `This session does not have the right to make what is in it: ${[...new Set(lacking)].join(', ')}.`;
}

const IMPORT_RESULTS = {
  done: 'The import is done.',
  cancelled: 'The import was cancelled: what it had made is there, the rest is not.',
  failed: 'The import ended before its time: what it had made is there, the rest is not.',
} as const;

function ImportProgress({ run }: { readonly run: ImportRun }) {
  const state = useObserved(run.state);
  const { contents, made, found, refused, end, waiting, problem } = state;
  const done = made + found + refused.length;
  useStaying(end === undefined);
  return (
    <div class="stack">
      <p>
        <Said text={contents.name} />
      </p>
      <Progress label="Lines that are done" done={done} total={contents.lines} />
      <p class="tally">
        <span>
          {numbered(done)} of {numbered(contents.lines)} lines
        </span>
        <span class="faint">{paceOf(state, done)}</span>
      </p>
      <p role="status">
        {end !== undefined && `${IMPORT_RESULTS[end]} `}
        {numbered(made)} made{found > 0 && `, ${numbered(found)} there already`}, {numbered(refused.length)}{' '}
        refused.
      </p>
      <WorkNotes waiting={waiting} goOn={run.goOn} />
      {problem && <ProblemNote problem={problem} />}
      {end !== undefined && <Refusals refused={refused} name={contents.name} />}
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

/** How fast, and how long still; nothing where that is not known yet. */
function paceOf({ contents, end, elapsedMs }: ImportState, done: number): string {
  const seconds = elapsedMs / SECOND_MS;
  const rate = done / Math.max(seconds, 1);
  if (rate === 0 || end !== undefined) return '';
  const left = Math.ceil((contents.lines - done) / rate);
  const words = left < MINUTE_SECONDS ? `${left} s` : `${Math.ceil(left / MINUTE_SECONDS)} min`;
  return `${numbered(Math.round(rate))} a second, ${words} left`;
}

/** Asks before the page is left, while something would end with it. */
function useStaying(isNeeded: boolean): void {
  useEffect(() => {
    if (!isNeeded) return;
    const ask = (event: Event) => event.preventDefault();
    addEventListener('beforeunload', ask);
    return () => removeEventListener('beforeunload', ask);
  }, [isNeeded]);
}
