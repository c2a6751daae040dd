import { linesOf } from '../../../src/transfer/line_reader.ts';
import { type Problem, problemOf } from '../../api/problem.ts';
import { createRecord, type Key, pagesOf, RESOURCES, type Shown } from '../../api/records.ts';
import type { Description } from '../../description.ts';
import { type Observable, observable } from '../../observable.ts';
import { belonging } from '../../session/session.ts';
import { LineProblem, ORDER, type ReadLine, readLine } from './line_format.ts';
import { eachOf, type Patience, patience } from './retry.ts';

/** A line that was not taken, and why. */
export interface Refused {
  readonly line: number;
  readonly reason: string;
}

/** What a file holds. */
export interface Contents {
  readonly name: string;
  readonly lines: number;
  /** Lines of each resource, by the name of its description. */
  readonly counts: ReadonlyMap<string, number>;
  readonly realms: ReadonlySet<string>;
  /** Lines that lack a secret which a new record needs, by the name of their description. */
  readonly withoutSecret: ReadonlyMap<string, number>;
  readonly refused: readonly Refused[];
}

export interface ImportState {
  readonly contents: Contents;
  readonly made: number;
  /** Lines that stood for what was there already. */
  readonly found: number;
  readonly refused: readonly Refused[];
  readonly waiting: Problem | undefined;
  readonly end: 'done' | 'cancelled' | 'failed' | undefined;
  /** Of a failure that is none of a line. */
  readonly problem: Problem | undefined;
  /** Milliseconds since it began. */
  readonly elapsedMs: number;
}

export interface ImportRun {
  readonly state: Observable<ImportState>;
  cancel(): void;
  goOn(): void;
}

/** The import of whoever is signed in: it goes on while another page is shown, and outlives a session that expired. */
export const currentImport = belonging<ImportRun>();

/** Browsers open six connections to a service: one is left for the reader. */
const AT_ONCE = 5;

interface NumberedLine {
  readonly number: number;
  readonly read: ReadLine;
}

async function* chunksOf(file: File): AsyncGenerator<Uint8Array> {
  const reader = file.stream().getReader();
  for (let read = await reader.read(); !read.done; read = await reader.read()) yield read.value;
}

/** How long lines are read before the page is let breathe. */
const BUSY_MS = 20;

/** The lines of a file, and what is no line of an export. */
async function* readLines(file: File): AsyncGenerator<NumberedLine | Refused> {
  let rested = performance.now();
  for await (const lines of linesOf(chunksOf(file))) {
    for (const { number, bytes } of lines) {
      if (performance.now() - rested > BUSY_MS) {
        await new Promise((resolve) => setTimeout(resolve));
        rested = performance.now();
      }
      try {
        yield { number, read: readLine(bytes) };
      } catch (error) {
        if (!(error instanceof LineProblem)) throw error;
        yield { line: number, reason: error.message };
      }
    }
  }
}

/** Reads a file once, to say what is in it. Rejects where it cannot be read. */
export async function lookInto(file: File): Promise<Contents> {
  const counts = new Map<string, number>();
  const realms = new Set<string>();
  const refused: Refused[] = [];
  let lines = 0;
  const withoutSecret = new Map<string, number>();
  for await (const each of readLines(file)) {
    lines += 1;
    if ('reason' in each) refused.push(each);
    else {
      const { description, id, above, said } = each.read;
      if (lacksSecret(description, said)) counted(withoutSecret, description);
      counted(counts, description);
      realms.add(above[0] ?? id);
    }
  }
  return { name: file.name, lines, counts, realms, withoutSecret, refused };
}

function counted(counts: Map<string, number>, { name }: Description): void {
  counts.set(name, (counts.get(name) ?? 0) + 1);
}

function lacksSecret({ fields }: Description, said: ReadLine['said']): boolean {
  return fields.some(
    ({ name, kind, isRequired }) => kind === 'password' && isRequired && said[name] === undefined,
  );
}

/** What an import works with. */
interface Work {
  readonly file: File;
  readonly counts: Contents['counts'];
  /** The realm that all lines go into; undefined where the file's are made anew. */
  readonly target: string | undefined;
  readonly signal: AbortSignal;
  readonly patience: Patience;
  /** The new ID of each record, by its kind and the ID in the file. */
  readonly ids: Map<string, string>;
  /** A word that no other import has. */
  readonly word: string;
  readonly tell: (what: Partial<ImportState>) => void;
  made: number;
  found: number;
  readonly refused: Refused[];
}

const TOLD_EVERY_MS = 200;
const WORD_BYTES = 9;

/** Begins an import; one at a time. */
export function beginImport(file: File, contents: Contents, target: string | undefined): void {
  const controller = new AbortController();
  const begun = performance.now();
  const state = observable<ImportState>({
    ...{ contents, made: 0, found: 0, refused: contents.refused },
    ...{ waiting: undefined, end: undefined, problem: undefined, elapsedMs: 0 },
  });
  const tell = (what: Partial<ImportState>) =>
    state.set({ ...state.get(), ...what, elapsedMs: performance.now() - begun });
  const waiting = patience({ signal: controller.signal, onWaiting: (problem) => tell({ waiting: problem }) });
  const work: Work = {
    ...{ file, target, tell, counts: contents.counts, signal: controller.signal, patience: waiting },
    ...{ ids: new Map(), made: 0, found: 0, refused: [...contents.refused] },
    word: btoa(String.fromCharCode(...crypto.getRandomValues(new Uint8Array(WORD_BYTES)))),
  };
  const timer = setInterval(() => tell(talliesOf(work)), TOLD_EVERY_MS);
  const finish = (end: ImportState['end'], problem?: Problem) => {
    clearInterval(timer);
    work.refused.sort((one, other) => one.line - other.line);
    tell({ ...talliesOf(work), end, problem, waiting: undefined });
  };
  currentImport.set({ state, cancel: () => controller.abort(), goOn: waiting.goOn });
  perform(work).then(
    () => finish('done'),
    (error: unknown) =>
      controller.signal.aborted ? finish('cancelled') : finish('failed', problemOf(error)),
  );
}

function talliesOf({ made, found, refused }: Work) {
  return { made, found, refused: [...refused] };
}

/** Parents first, all of a kind before the next one: what a line names is there when its turn comes. */
async function perform(work: Work): Promise<void> {
  const known = work.target === undefined ? [] : await profilesOf(work.target, work);
  for (const description of ORDER) {
    await eachOf(linesOfKind(work, description), AT_ONCE, async ({ number, read }) => {
      try {
        await take(work, number, read, known);
      } catch (error) {
        work.signal.throwIfAborted();
        work.refused.push({ line: number, reason: reasonOf(error) });
      }
    });
    work.signal.throwIfAborted();
  }
}

async function* linesOfKind(work: Work, description: Description): AsyncGenerator<NumberedLine> {
  let left = work.counts.get(description.name) ?? 0;
  if (left === 0) return;
  for await (const each of readLines(work.file)) {
    if (work.signal.aborted) return;
    if ('reason' in each || each.read.description !== description) continue;
    yield each;
    left -= 1;
    if (left === 0) return;
  }
}

/** Profiles that are in the realm already. */
async function profilesOf(realm: string, { patience: waiting, signal }: Work): Promise<readonly Known[]> {
  const all: Known[] = [];
  for (const description of [RESOURCES.oidcProfiles, RESOURCES.passwordProfiles]) {
    const read = pagesOf(description, [realm], 'created_at');
    for (let cursor: string | undefined = ''; cursor !== undefined; ) {
      const from: string = cursor;
      const { items, next } = await waiting.ask(() => read(from, signal));
      all.push(...items.map((record) => ({ description, record })));
      cursor = next;
    }
  }
  return all;
}

interface Known {
  readonly description: Description;
  readonly record: Shown;
}

/** What makes two profiles the same: where one signs in, and as whom. */
const SAME: Readonly<Record<string, readonly string[]>> = {
  [RESOURCES.oidcProfiles.name]: ['discovery_url', 'client_id'],
  [RESOURCES.passwordProfiles.name]: ['name'],
};

function nameIn(kind: string, id: string): string {
  return `${kind} ${id}`;
}

async function take(work: Work, number: number, read: ReadLine, known: readonly Known[]): Promise<void> {
  const { description, id, said } = read;
  const above = aboveOf(work, read);
  const there = foundOf(work, read, known);
  if (there !== undefined) {
    work.ids.set(nameIn(description.name, id), there);
    work.found += 1;
    return;
  }
  const given = { ...said, ...referencesOf(work, read) };
  const { record } = await work.patience.ask(() =>
    createRecord(description, above, given, `import-${work.word}-${number}`),
  );
  work.ids.set(nameIn(description.name, id), record.id);
  work.made += 1;
}

/** The record that stands for a line, where nothing need be made. */
function foundOf({ target }: Work, { description, members }: ReadLine, known: readonly Known[]) {
  if (target === undefined) return undefined;
  if (description === RESOURCES.realms) return target;
  const same = SAME[description.name];
  if (!same) return undefined;
  const found = known.find(
    (each) =>
      each.description === description && same.every((member) => each.record[member] === members[member]),
  );
  return found?.record.id;
}

/** Where a record goes: below what its line names, under the ID that has now. */
function aboveOf({ ids, target }: Work, { description, above }: ReadLine): Key {
  const kinds = [RESOURCES.realms.name, RESOURCES.users.name];
  return above.map((id, depth) => {
    if (depth === 0 && target !== undefined) return target;
    const now = ids.get(nameIn(kinds[depth] ?? '', id));
    if (now !== undefined) return now;
    throw new LineProblem(`${description.namesAbove[depth]}: refers to no record created from this file`);
  });
}

function referencesOf({ ids }: Work, { description, said }: ReadLine): Readonly<Record<string, string>> {
  const references = description.fields.flatMap(({ name, references: kind }) => {
    if (kind === undefined || typeof said[name] !== 'string') return [];
    const now = ids.get(nameIn(kind, String(said[name]).toLowerCase()));
    if (now === undefined) throw new LineProblem(`${name}: refers to no profile created from this file`);
    return [[name, now] as const];
  });
  return Object.fromEntries(references);
}

function reasonOf(error: unknown): string {
  if (error instanceof LineProblem) return error.message;
  const { complaints, message } = problemOf(error);
  return complaints.length > 0 ? complaints.map(({ detail }) => detail).join('; ') : message;
}
