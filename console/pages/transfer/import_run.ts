import { splitLines } from '../../../src/ops/transfer/line_reader.ts';
import { pagesOf, readPages } from '../../api/list_page.ts';
import { type Problem, toProblem } from '../../api/problem.ts';
import { type ApiRecord, createRecord, type Key, RESOURCES, recordPages } from '../../api/records.ts';
import type { Description } from '../../description.ts';
import { observable } from '../../observable.ts';
import { sessionOwned } from '../../session/session.ts';
import { IMPORT_ORDER, LineError, type ReadLine, readLine } from './line_format.ts';
import { forEachLimited, type RetryGate, retryGate, type TransferRun } from './retry.ts';

/** A rejected line and the reason. */
export interface RejectedLine {
  readonly line: number;
  readonly reason: string;
}

/** The contents of a file. */
export interface Contents {
  readonly name: string;
  readonly lines: number;
  /** Number of lines per resource name. */
  readonly counts: ReadonlyMap<string, number>;
  readonly realms: ReadonlySet<string>;
  /** Number of lines without a required secret, per resource name. */
  readonly withoutSecret: ReadonlyMap<string, number>;
  readonly refused: readonly RejectedLine[];
}

export interface ImportState {
  readonly contents: Contents;
  readonly created: number;
  /** Lines that matched existing records. */
  readonly found: number;
  readonly refused: readonly RejectedLine[];
  readonly waiting: Problem | undefined;
  readonly end: 'done' | 'cancelled' | 'failed' | undefined;
  /** An error that concerns no single line. */
  readonly problem: Problem | undefined;
  /** Milliseconds since the start. */
  readonly elapsedMs: number;
}

/** The running import of the signed-in user; it continues on other pages and survives an expired session. */
export const currentImport = sessionOwned<TransferRun<ImportState>>();

interface NumberedLine {
  readonly number: number;
  readonly read: ReadLine;
}

async function* chunksOf(file: File): AsyncGenerator<Uint8Array> {
  const reader = file.stream().getReader();
  for (let read = await reader.read(); !read.done; read = await reader.read()) yield read.value;
}

/** Time slice of parsing before yielding to the page. */
const BUSY_MS = 20;

/** The parsed lines of a file, and invalid ones. */
async function* readLines(file: File): AsyncGenerator<NumberedLine | RejectedLine> {
  let lastPause = performance.now();
  for await (const lines of splitLines(chunksOf(file))) {
    for (const { number, bytes } of lines) {
      if (performance.now() - lastPause > BUSY_MS) {
        await new Promise((resolve) => setTimeout(resolve));
        lastPause = performance.now();
      }
      try {
        yield { number, read: readLine(bytes) };
      } catch (error) {
        if (!(error instanceof LineError)) throw error;
        yield { line: number, reason: error.message };
      }
    }
  }
}

/** Scans a file once. Rejects if it cannot be read. */
export async function inspectFile(file: File): Promise<Contents> {
  const counts = new Map<string, number>();
  const realms = new Set<string>();
  const refused: RejectedLine[] = [];
  let lines = 0;
  const withoutSecret = new Map<string, number>();
  for await (const each of readLines(file)) {
    lines += 1;
    if ('reason' in each) refused.push(each);
    else {
      const { description, id, parentKey, input } = each.read;
      if (isMissingSecret(description, input)) increment(withoutSecret, description);
      increment(counts, description);
      realms.add(parentKey[0] ?? id);
    }
  }
  return { name: file.name, lines, counts, realms, withoutSecret, refused };
}

function increment(counts: Map<string, number>, { name }: Description): void {
  counts.set(name, (counts.get(name) ?? 0) + 1);
}

function isMissingSecret({ fields }: Description, input: ReadLine['input']): boolean {
  return fields.some(
    ({ name, kind, isRequired }) => kind === 'password' && isRequired && input[name] === undefined,
  );
}

/** The state of a running import. */
interface ImportContext {
  readonly file: File;
  readonly counts: Contents['counts'];
  /** The target realm; undefined to create the realms of the file. */
  readonly target: string | undefined;
  readonly signal: AbortSignal;
  readonly retryGate: RetryGate;
  /** New record IDs, by resource and ID in the file. */
  readonly ids: Map<string, string>;
  /** Random prefix of the idempotency keys. */
  readonly token: string;
  readonly report: (what: Partial<ImportState>) => void;
  created: number;
  found: number;
  readonly refused: RejectedLine[];
}

const PROGRESS_MS = 200;
const RANDOM_BYTES = 9;

/** Starts an import; one at a time. */
export function startImport(file: File, contents: Contents, target: string | undefined): void {
  const controller = new AbortController();
  const startedAt = performance.now();
  const state = observable<ImportState>({
    ...{ contents, created: 0, found: 0, refused: contents.refused },
    ...{ waiting: undefined, end: undefined, problem: undefined, elapsedMs: 0 },
  });
  const report = (what: Partial<ImportState>) =>
    state.set({ ...state.get(), ...what, elapsedMs: performance.now() - startedAt });
  const waiting = retryGate({ signal: controller.signal, onWait: (problem) => report({ waiting: problem }) });
  const work: ImportContext = {
    ...{ file, target, report, counts: contents.counts, signal: controller.signal, retryGate: waiting },
    ...{ ids: new Map(), created: 0, found: 0, refused: [...contents.refused] },
    token: btoa(String.fromCharCode(...crypto.getRandomValues(new Uint8Array(RANDOM_BYTES)))),
  };
  const timer = setInterval(() => report(countersOf(work)), PROGRESS_MS);
  const finish = (end: ImportState['end'], problem?: Problem) => {
    clearInterval(timer);
    work.refused.sort((one, other) => one.line - other.line);
    report({ ...countersOf(work), end, problem, waiting: undefined });
  };
  currentImport.set({ state, cancel: () => controller.abort(), resume: waiting.resume });
  runImport(work).then(
    () => finish('done'),
    (error: unknown) =>
      controller.signal.aborted ? finish('cancelled') : finish('failed', toProblem(error)),
  );
}

function countersOf({ created, found, refused }: ImportContext) {
  return { created, found, refused: [...refused] };
}

/** Parents first, one resource after another, so that references exist. */
async function runImport(work: ImportContext): Promise<void> {
  const existing = work.target === undefined ? [] : await readProfiles(work.target, work);
  for (const description of IMPORT_ORDER) {
    await forEachLimited(linesOfResource(work, description), async ({ number, read }) => {
      try {
        await importLine(work, number, read, existing);
      } catch (error) {
        work.signal.throwIfAborted();
        work.refused.push({ line: number, reason: reasonOf(error) });
      }
    });
    work.signal.throwIfAborted();
  }
}

async function* linesOfResource(work: ImportContext, description: Description): AsyncGenerator<NumberedLine> {
  let remaining = work.counts.get(description.name) ?? 0;
  if (remaining === 0) return;
  for await (const each of readLines(work.file)) {
    if (work.signal.aborted) return;
    if ('reason' in each || each.read.description !== description) continue;
    yield each;
    remaining -= 1;
    if (remaining === 0) return;
  }
}

/** The existing profiles of the realm. */
async function readProfiles(
  realm: string,
  { retryGate: waiting, signal }: ImportContext,
): Promise<readonly Known[]> {
  const all: Known[] = [];
  for (const description of [RESOURCES.oidcProfiles, RESOURCES.passwordProfiles]) {
    const read = recordPages(description, [realm], 'created_at');
    const { items } = await readPages(pagesOf((cursor) => waiting.run(() => read(cursor, signal))));
    all.push(...items.map((record) => ({ description, record })));
  }
  return all;
}

interface Known {
  readonly description: Description;
  readonly record: ApiRecord;
}

/** The members that identify a profile. */
const IDENTIFYING_MEMBERS: Readonly<Record<string, readonly string[]>> = {
  [RESOURCES.oidcProfiles.name]: ['discovery_url', 'client_id'],
  [RESOURCES.passwordProfiles.name]: ['name'],
};

function idKey(kind: string, id: string): string {
  return `${kind} ${id}`;
}

async function importLine(
  work: ImportContext,
  number: number,
  read: ReadLine,
  existing: readonly Known[],
): Promise<void> {
  const { description, id, input } = read;
  const parentKey = resolveParentKey(work, read);
  const existingRecord = existingId(work, read, existing);
  if (existingRecord !== undefined) {
    work.ids.set(idKey(description.name, id), existingRecord);
    work.found += 1;
    return;
  }
  const withReferences = { ...input, ...referencesOf(work, read) };
  const { record } = await work.retryGate.run(() =>
    createRecord(description, parentKey, withReferences, `import-${work.token}-${number}`),
  );
  work.ids.set(idKey(description.name, id), record.id);
  work.created += 1;
}

/** The ID of an existing record that matches a line. */
function existingId(
  { target }: ImportContext,
  { description, members }: ReadLine,
  existing: readonly Known[],
) {
  if (target === undefined) return undefined;
  if (description === RESOURCES.realms) return target;
  const same = IDENTIFYING_MEMBERS[description.name];
  if (!same) return undefined;
  const found = existing.find(
    (each) =>
      each.description === description && same.every((member) => each.record[member] === members[member]),
  );
  return found?.record.id;
}

/** The new IDs of the parent records of a line. */
function resolveParentKey({ ids, target }: ImportContext, { description, parentKey }: ReadLine): Key {
  const kinds = [RESOURCES.realms.name, RESOURCES.users.name];
  return parentKey.map((id, depth) => {
    if (depth === 0 && target !== undefined) return target;
    const now = ids.get(idKey(kinds[depth] ?? '', id));
    if (now !== undefined) return now;
    throw new LineError(`${description.namesAbove[depth]}: refers to no record created from this file`);
  });
}

function referencesOf(
  { ids }: ImportContext,
  { description, input }: ReadLine,
): Readonly<Record<string, string>> {
  const references = description.fields.flatMap(({ name, references: kind }) => {
    if (kind === undefined || typeof input[name] !== 'string') return [];
    const now = ids.get(idKey(kind, String(input[name]).toLowerCase()));
    if (now === undefined) throw new LineError(`${name}: refers to no profile created from this file`);
    return [[name, now] as const];
  });
  return Object.fromEntries(references);
}

function reasonOf(error: unknown): string {
  if (error instanceof LineError) return error.message;
  const { errors, message } = toProblem(error);
  // By the names in the file.
  const reasons = errors.map(({ member, detail }) =>
    member === undefined ? detail : `${member}: ${detail}`,
  );
  return reasons.length > 0 ? reasons.join('; ') : message;
}
