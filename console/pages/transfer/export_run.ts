import { countOf, pagesOf } from '../../api/pages.ts';
import { type Problem, problemOf } from '../../api/problem.ts';
import { type Key, RESOURCES, readRecord, type Shown } from '../../api/records.ts';
import type { Description } from '../../description.ts';
import { type Observable, observable } from '../../observable.ts';
import { belonging } from '../../session/belonging.ts';
import { may, type SessionState, session } from '../../session/session.ts';
import { lineOf } from './line_format.ts';
import { eachOf, type Patience, patience } from './patience.ts';

export interface ExportState {
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

export interface ExportRun {
  readonly state: Observable<ExportState>;
  cancel(): void;
  goOn(): void;
}

/** The export of whoever is signed in: it goes on while another page is shown, and outlives a session that expired. */
export const currentExport = belonging<ExportRun>();

/** Browsers open six connections to a service: one is left for the reader. */
const AT_ONCE = 5;

/** Below a user. */
export const LINKS: readonly Description[] = [RESOURCES.oidcProfileInfos, RESOURCES.passwordProfileInfos];

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

export function beginExport(realm: string): void {
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
