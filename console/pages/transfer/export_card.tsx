import { useState } from 'preact/hooks';
import { pagesOf } from '../../api/list_page.ts';
import { type Problem, toProblem } from '../../api/problem.ts';
import {
  type ApiRecord,
  countRecords,
  type Key,
  RESOURCES,
  readRecord,
  recordPages,
} from '../../api/records.ts';
import type { Description } from '../../description.ts';
import { currentRoute, replaceQuery } from '../../layout/router.ts';
import { observable, useObservable } from '../../observable.ts';
import { Icon } from '../../parts/icon.tsx';
import { ProblemNote } from '../../parts/notices.tsx';
import { resourceLabel } from '../../parts/resource_labels.ts';
import { hasScope, type SessionState, session, sessionOwned } from '../../session/session.ts';
import { formatCount, Progress, RealmChoice, saveFile, WaitingNote } from './controls.tsx';
import { lineOf } from './line_format.ts';
import { forEachLimited, type RetryGate, retryGate, type TransferRun } from './retry.ts';

/** Exports a realm into a file, as far as the API returns it. */
export function ExportCard() {
  const run = useObservable(currentExport);
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
  const [realm, setRealm] = useState(currentRoute.get().query.get('realm') ?? '');
  const forbidden = forbiddenBy(useObservable(session));
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
          replaceQuery({ realm: chosen });
        }}
      />
      {forbidden.length > 0 && (
        <p class="hint">This session cannot read: {forbidden.join(', ')}. They are left out.</p>
      )}
      <div class="actions">
        <button
          type="button"
          class="button button-main"
          disabled={realm === ''}
          onClick={() => startExport(realm)}
        >
          Export
        </button>
      </div>
    </div>
  );
}

/** Resources of a realm that the session cannot read. */
function forbiddenBy(state: SessionState): readonly string[] {
  const { oidcProfiles, passwordProfiles, users } = RESOURCES;
  return [oidcProfiles, passwordProfiles, users, ...LINK_RESOURCES]
    .filter(({ scope }) => !hasScope(state, `${scope}:read`))
    .map(({ name }) => resourceLabel(name).many);
}

const EXPORT_RESULTS = {
  done: 'Export complete.',
  cancelled: 'Export cancelled.',
  failed: 'Export failed.',
} as const;

function ExportProgress({ run }: { readonly run: TransferRun<ExportState> }) {
  const { realm, records, users, usersTotal, waiting, end, problem, file } = useObservable(run.state);
  return (
    <div class="stack">
      {end === undefined && <Progress label="Exported users" done={users} total={usersTotal} />}
      <p role="status">
        {end !== undefined && `${EXPORT_RESULTS[end]} `}
        {formatCount(records)} {records === 1 ? 'record' : 'records'}
        {usersTotal !== undefined &&
          end === undefined &&
          `, ${formatCount(users)} of ${formatCount(usersTotal)} users`}
        .
      </p>
      <WaitingNote waiting={waiting} resume={run.resume} />
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
  /** Undefined if the API returns no total. */
  readonly usersTotal: number | undefined;
  readonly waiting: Problem | undefined;
  readonly end: 'done' | 'cancelled' | 'failed' | undefined;
  readonly problem: Problem | undefined;
  readonly file: Blob | undefined;
}

/** The running export of the signed-in user; it continues on other pages and survives an expired session. */
const currentExport = sessionOwned<TransferRun<ExportState>>();

/** Below a user. */
const LINK_RESOURCES: readonly Description[] = [RESOURCES.oidcProfileInfos, RESOURCES.passwordProfileInfos];

interface ExportContext {
  readonly realm: string;
  /** The session at the start: an expired session must not silently leave records out. */
  readonly sessionAtStart: SessionState;
  readonly signal: AbortSignal;
  readonly retryGate: RetryGate;
  readonly report: (what: Partial<ExportState>) => void;
  records: number;
  users: number;
}

function startExport(realm: string): void {
  const controller = new AbortController();
  const state = observable<ExportState>({
    ...{ realm, records: 0, users: 0, usersTotal: undefined },
    ...{ waiting: undefined, end: undefined, problem: undefined, file: undefined },
  });
  const report = (what: Partial<ExportState>) => state.set({ ...state.get(), ...what });
  const { signal } = controller;
  const waiting = retryGate({ signal, onWait: (problem) => report({ waiting: problem }) });
  const work: ExportContext = {
    realm,
    sessionAtStart: session.get(),
    signal,
    report,
    retryGate: waiting,
    records: 0,
    users: 0,
  };
  currentExport.set({ state, cancel: () => controller.abort(), resume: waiting.resume });
  runExport(work).then(
    (file) => report({ ...countersOf(work), end: 'done', file }),
    (error: unknown) =>
      report({
        ...countersOf(work),
        ...(signal.aborted ? { end: 'cancelled' } : { end: 'failed', problem: toProblem(error) }),
        waiting: undefined,
      }),
  );
}

function countersOf({ records, users }: ExportContext) {
  return { records, users };
}

/** Parents first, like `authrealm export`; links as far as the session can read them. */
async function runExport(work: ExportContext): Promise<Blob> {
  const { realm, retryGate: waiting, signal } = work;
  const parts: Blob[] = [];
  const append = (lines: readonly string[]) => {
    parts.push(new Blob([lines.join('')]));
    work.records += lines.length;
    work.report(countersOf(work));
  };
  const { record } = await waiting.run(() => readRecord(RESOURCES.realms, [realm], signal));
  append([lineOf(RESOURCES.realms, [], record)]);
  for (const description of [RESOURCES.oidcProfiles, RESOURCES.passwordProfiles]) {
    if (!hasScope(work.sessionAtStart, `${description.scope}:read`)) continue;
    for await (const { items } of pages(work, description, [realm])) {
      append(items.map((each) => lineOf(description, [realm], each)));
    }
  }
  return hasScope(work.sessionAtStart, `${RESOURCES.users.scope}:read`)
    ? withUsers(work, parts, append)
    : new Blob(parts);
}

async function withUsers(
  work: ExportContext,
  parts: readonly Blob[],
  append: (lines: readonly string[]) => void,
): Promise<Blob> {
  const { realm, retryGate: waiting, signal } = work;
  const { users } = RESOURCES;
  const links = new Map<Description, Blob[]>(LINK_RESOURCES.map((description) => [description, []]));
  work.report({ usersTotal: await waiting.run(() => countRecords(users, [realm], signal)) });
  for await (const { items } of pages(work, users, [realm])) {
    append(items.map((each) => lineOf(users, [realm], each)));
    await exportLinks(work, items, links);
    work.users += items.length;
    work.report(countersOf(work));
  }
  return new Blob([...parts, ...LINK_RESOURCES.flatMap((description) => links.get(description) ?? [])]);
}

/** The API lists links only per user. */
async function exportLinks(
  work: ExportContext,
  users: readonly ApiRecord[],
  into: ReadonlyMap<Description, Blob[]>,
) {
  for (const description of LINK_RESOURCES) {
    if (!hasScope(work.sessionAtStart, `${description.scope}:read`)) continue;
    const lines: string[][] = users.map(() => []);
    await forEachLimited(users.entries(), async ([index, { id }]) => {
      const key = [work.realm, id];
      for await (const { items } of pages(work, description, key)) {
        lines[index]?.push(...items.map((each) => lineOf(description, key, each)));
      }
    });
    const all = lines.flat();
    work.records += all.length;
    if (all.length > 0) into.get(description)?.push(new Blob([all.join('')]));
  }
}

/** The pages of a collection, oldest first. */
function pages({ retryGate: waiting, signal }: ExportContext, description: Description, parentKey: Key) {
  const read = recordPages(description, parentKey, 'created_at');
  return pagesOf((cursor) => waiting.run(() => read(cursor, signal)));
}
