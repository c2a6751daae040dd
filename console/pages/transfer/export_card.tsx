import { useState } from 'preact/hooks';
import { type Problem, problemOf } from '../../api/problem.ts';
import { countOf, type Key, pagesOf, RESOURCES, readRecord, type Shown } from '../../api/records.ts';
import type { Description } from '../../description.ts';
import { keepQuery, place } from '../../layout/router.ts';
import { type Observable, observable, useObserved } from '../../observable.ts';
import { Icon } from '../../parts/icon.tsx';
import { ProblemNote } from '../../parts/notices.tsx';
import { nounOf } from '../../parts/resource_labels.ts';
import { belonging, may, type SessionState, session } from '../../session/session.ts';
import { numbered, Progress, RealmChoice, saveFile, WorkNotes } from './controls.tsx';
import { lineOf } from './line_format.ts';
import { eachOf, type Patience, patience } from './retry.ts';

/** Writes a realm into a file, as far as the API shows it. */
export function ExportCard() {
  const run = useObserved(currentExport);
  return (
    <section class="card" aria-label="Export">
      <div class="card-head">
        <h2>Export</h2>
      </div>
      {run ? <ExportProgress run={run} /> : <ExportForm />}
    </section>
  );
}

function ExportForm() {
  const [realm, setRealm] = useState(place.get().query.get('realm') ?? '');
  const unseen = unseenBy(useObserved(session));
  return (
    <div class="form">
      <p>
        Writes a realm with its profiles, users and links, one record per line, in the format of{' '}
        <code>authrealm import</code>.
      </p>
      <details class="promises">
        <summary>Limits of an export in the browser</summary>
        <ul>
          <li>The API never returns client secrets or password hashes, so the file contains none.</li>
          <li>
            Lists are read one after another, so concurrent changes may or may not be included. Links are read
            user by user, so a large realm takes a while.
          </li>
        </ul>
        <p>
          For a consistent snapshot, with secrets, or for hundreds of thousands of users, use{' '}
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
        <p class="hint">This session cannot read: {unseen.join(', ')}. They are left out.</p>
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

const EXPORT_RESULTS = {
  done: 'Export complete.',
  cancelled: 'Export cancelled.',
  failed: 'Export failed.',
} as const;

function ExportProgress({ run }: { readonly run: ExportRun }) {
  const { realm, records, users, usersTotal, waiting, end, problem, file } = useObserved(run.state);
  return (
    <div class="stack">
      {end === undefined && <Progress label="Exported users" done={users} total={usersTotal} />}
      <p role="status">
        {end !== undefined && `${EXPORT_RESULTS[end]} `}
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
            <Icon name="transfer" /> Save file
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

interface ExportState {
  readonly realm: string;
  readonly records: number;
  readonly users: number;
  /** Undefined where it is not told. */
  readonly usersTotal: number | undefined;
  readonly waiting: Problem | undefined;
  readonly end: 'done' | 'cancelled' | 'failed' | undefined;
  readonly problem: Problem | undefined;
  readonly file: Blob | undefined;
}

interface ExportRun {
  readonly state: Observable<ExportState>;
  cancel(): void;
  goOn(): void;
}

/** The export of whoever is signed in: it goes on while another page is shown, and outlives a session that expired. */
const currentExport = belonging<ExportRun>();

/** Browsers open six connections to a service: one is left for the reader. */
const AT_ONCE = 5;

/** Below a user. */
const LINKS: readonly Description[] = [RESOURCES.oidcProfileInfos, RESOURCES.passwordProfileInfos];

interface Work {
  readonly realm: string;
  /** As it was at the beginning: one that has ended since leaves nothing out, what it may not read is asked for and refused. */
  readonly began: SessionState;
  readonly signal: AbortSignal;
  readonly patience: Patience;
  readonly tell: (what: Partial<ExportState>) => void;
  records: number;
  users: number;
}

function beginExport(realm: string): void {
  const controller = new AbortController();
  const state = observable<ExportState>({
    ...{ realm, records: 0, users: 0, usersTotal: undefined },
    ...{ waiting: undefined, end: undefined, problem: undefined, file: undefined },
  });
  const tell = (what: Partial<ExportState>) => state.set({ ...state.get(), ...what });
  const { signal } = controller;
  const waiting = patience({ signal, onWaiting: (problem) => tell({ waiting: problem }) });
  const work: Work = { realm, began: session.get(), signal, tell, patience: waiting, records: 0, users: 0 };
  currentExport.set({ state, cancel: () => controller.abort(), goOn: waiting.goOn });
  perform(work).then(
    (file) => tell({ ...talliesOf(work), end: 'done', file }),
    (error: unknown) =>
      tell({
        ...talliesOf(work),
        ...(signal.aborted ? { end: 'cancelled' } : { end: 'failed', problem: problemOf(error) }),
        waiting: undefined,
      }),
  );
}

function talliesOf({ records, users }: Work) {
  return { records, users };
}

/** Parents first, as `authrealm export` has them; of links what the session may read. */
async function perform(work: Work): Promise<Blob> {
  const { realm, patience: waiting, signal } = work;
  const parts: Blob[] = [];
  const keep = (lines: readonly string[]) => {
    parts.push(new Blob([lines.join('')]));
    work.records += lines.length;
    work.tell(talliesOf(work));
  };
  const { record } = await waiting.ask(() => readRecord(RESOURCES.realms, [realm], signal));
  keep([lineOf(RESOURCES.realms, [], record)]);
  for (const description of [RESOURCES.oidcProfiles, RESOURCES.passwordProfiles]) {
    if (!may(work.began, `${description.scope}:read`)) continue;
    for await (const page of pages(work, description, [realm])) {
      keep(page.map((each) => lineOf(description, [realm], each)));
    }
  }
  return may(work.began, `${RESOURCES.users.scope}:read`) ? withUsers(work, parts, keep) : new Blob(parts);
}

async function withUsers(
  work: Work,
  parts: readonly Blob[],
  keep: (lines: readonly string[]) => void,
): Promise<Blob> {
  const { realm, patience: waiting, signal } = work;
  const { users } = RESOURCES;
  const links = new Map<Description, Blob[]>(LINKS.map((description) => [description, []]));
  work.tell({ usersTotal: await waiting.ask(() => countOf(users, [realm], signal)) });
  for await (const page of pages(work, users, [realm])) {
    keep(page.map((each) => lineOf(users, [realm], each)));
    await linksOf(work, page, links);
    work.users += page.length;
    work.tell(talliesOf(work));
  }
  return new Blob([...parts, ...LINKS.flatMap((description) => links.get(description) ?? [])]);
}

/** The API lists links below their user alone. */
async function linksOf(work: Work, users: readonly Shown[], into: ReadonlyMap<Description, Blob[]>) {
  for (const description of LINKS) {
    if (!may(work.began, `${description.scope}:read`)) continue;
    const lines: string[][] = users.map(() => []);
    await eachOf(users.entries(), AT_ONCE, async ([index, { id }]) => {
      const key = [work.realm, id];
      for await (const page of pages(work, description, key)) {
        lines[index]?.push(...page.map((each) => lineOf(description, key, each)));
      }
    });
    const all = lines.flat();
    work.records += all.length;
    if (all.length > 0) into.get(description)?.push(new Blob([all.join('')]));
  }
}

/** The pages of a collection, the oldest records first. */
async function* pages(
  { patience: waiting, signal }: Work,
  description: Description,
  above: Key,
): AsyncGenerator<readonly Shown[]> {
  const read = pagesOf(description, above, 'created_at');
  for (let cursor: string | undefined = ''; cursor !== undefined; ) {
    const from: string = cursor;
    const { items, next } = await waiting.ask(() => read(from, signal));
    yield items;
    cursor = next;
  }
}
