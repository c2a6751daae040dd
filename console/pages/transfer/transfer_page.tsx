import { useEffect, useMemo, useRef, useState } from 'preact/hooks';
import { csvRow } from '../../../src/ops/transfer/csv_cells.ts';
import { fetchApi } from '../../api/call_api.ts';
import { networkProblem, Problem } from '../../api/problem.ts';
import { useFetch } from '../../api/use_fetch.ts';
import { SelectField } from '../../form/fields.tsx';
import { ActionError, useAction } from '../../form/use_action.tsx';
import { PageHead } from '../../layout/page.tsx';
import { currentRoute } from '../../layout/router.ts';
import { useObservable } from '../../observable.ts';
import { plainText } from '../../parts/confusables.ts';
import { Dialog } from '../../parts/dialog.tsx';
import { Fact } from '../../parts/facts.tsx';
import { EmptyState, ProblemNote } from '../../parts/notices.tsx';
import { isIdentifier } from '../../parts/resource_labels.ts';
import { UntrustedText } from '../../parts/untrusted_text.tsx';
import { hasScope, session } from '../../session/session.ts';
import { RealmPicker } from '../try/record_picker.tsx';
import { mapOf, readFirstRows, sourcesOf } from './csv_map.ts';

/** Imports and exports files by the service. */
export function TransferPage() {
  const [realm, setRealm] = useState(currentRoute.get().query.get('realm') ?? '');
  const isPermitted = hasScope(useObservable(session), 'transfer');
  return (
    <div class="form">
      <PageHead title="Import and export" />
      {!isPermitted && <EmptyState icon="transfer" title="This session lacks the scope transfer" />}
      {isPermitted && <RealmPicker realm={realm} onRealm={setRealm} />}
      {isPermitted && <Export key={realm} realm={realm} />}
      {isPermitted && <Import realm={realm} />}
    </div>
  );
}

/** Runs one import or export at a time, under a dialog. It ends with the page, and so when its user signs out. */
function useTransfer() {
  const controller = useRef(new AbortController());
  useEffect(() => () => controller.current.abort(), []);
  const { isBusy, problem, run } = useAction(() => undefined);
  const start = (work: (signal: AbortSignal) => Promise<void>, isReadOnly: boolean) => {
    controller.current = new AbortController();
    const { signal } = controller.current;
    run(() =>
      work(signal).catch((error: unknown) => {
        signal.throwIfAborted();
        throw error instanceof Problem && error.kind !== 'lost' ? error : networkProblem(isReadOnly);
      }),
    );
  };
  const cancel = () => controller.current.abort(new Problem('lost', 'Cancelled.'));
  const state = isBusy ? (
    <Dialog title="In progress">
      <button type="button" class="button" onClick={cancel}>
        Cancel
      </button>
    </Dialog>
  ) : (
    <ActionError problem={problem} />
  );
  return { start, state };
}

/** Saves a file that the page holds. */
function SaveLink({ name, content }: { readonly name: string; readonly content: Blob | string }) {
  const address = useMemo(() => URL.createObjectURL(new Blob([content])), [content]);
  useEffect(() => () => URL.revokeObjectURL(address), [address]);
  return (
    <a class="button" download={name} href={address}>
      Save {name}
    </a>
  );
}

const FORMATS = { ndjson: 'Export records as JSON lines', csv: 'Export users as CSV' };

function Export({ realm }: { readonly realm: string }) {
  const [file, setFile] = useState<{ readonly name: string; readonly content: Blob }>();
  const { start, state } = useTransfer();
  const exportAs = (format: string) =>
    start(async (signal) => {
      setFile(undefined);
      const query = new URLSearchParams({ format, ...(realm === '' ? {} : { realm }) });
      const answer = await fetchApi({ path: `admin/v1/export?${query}`, signal, scope: 'transfer' });
      setFile({ name: `realm-${realm || 'all'}.${format}`, content: await answer.blob() });
    }, true);
  return (
    <section class="card form" aria-label="Export">
      <h2>Export</h2>
      <p>A snapshot of the realm, or of all realms of this session, without passwords and secrets.</p>
      <div class="actions">
        {Object.entries(FORMATS).map(([format, label]) => (
          <button key={format} type="button" class="button" onClick={() => exportAs(format)}>
            {label}
          </button>
        ))}
        {file && <SaveLink {...file} />}
      </div>
      {state}
    </section>
  );
}

/** Imports a file: JSON lines, or users as CSV into a realm. */
function Import({ realm }: { readonly realm: string }) {
  const [file, setFile] = useState<File>();
  const { answer: rows, problem } = useFetch(async () => file && readFirstRows(file), [file?.name, file]);
  const [header = [], ...users] = rows ?? [];
  const [choices, setChoices] = useState<ReadonlyMap<string, string>>(new Map());
  const sources = sourcesOf(header, choices);
  const used = sources.filter(({ columns }) => columns.length > 0);
  const isCsv = header.length > 0;
  const map = isCsv ? mapOf(sources, realm) : undefined;
  const options = header.map((name) => ({ id: name, label: plainText(name) }));
  return (
    <section class="card form" aria-label="Import">
      <h2>Import</h2>
      <label class="field">
        <span class="label">File of JSON lines, or of users as CSV</span>
        <input
          type="file"
          onClick={({ currentTarget }) => {
            // A file that has changed can be chosen again.
            currentTarget.value = '';
            setFile(undefined);
          }}
          onInput={() => setChoices(new Map())}
          onChange={({ currentTarget }) => setFile(currentTarget.files?.[0])}
        />
      </label>
      {problem && <ProblemNote problem={problem} />}
      {isCsv && realm === '' && <p class="hint">Choose the realm of the users.</p>}
      {isCsv && (
        <div class="filters">
          {sources.map(({ path, label, column }) => (
            <SelectField
              key={path}
              label={label}
              value={column}
              options={[{ id: '', label: 'None' }, ...options]}
              onValue={(name) => setChoices(new Map([...choices, [path, name]]))}
            />
          ))}
        </div>
      )}
      {isCsv && <h3>The first users</h3>}
      {users.map((cells, index) => (
        <dl key={index} class="facts comparison">
          {used.map(({ path, label, columns }) => {
            const values = columns.map((name) => cells[header.indexOf(name)]).filter(Boolean);
            return (
              <Fact key={path} label={label}>
                <UntrustedText text={values.join(' ')} isIdentifier={isIdentifier(path)} />
              </Fact>
            );
          })}
        </dl>
      ))}
      {file && rows && (!isCsv || realm !== '') && <Start file={file} map={map} />}
    </section>
  );
}

interface Result {
  readonly end: Readonly<Record<'imported' | 'unchanged' | 'replaced' | 'refused', number>> & {
    readonly resume_line: number | null;
    readonly dry_run: boolean;
  };
  readonly rejected: readonly { readonly line: number; readonly reason: string }[];
}

/** Checks and imports a file. `map` is that of a CSV file. */
function Start({ file, map }: { readonly file: File; readonly map: string | undefined }) {
  const [isUpsert, setUpsert] = useState(false);
  const [result, setResult] = useState<Result>();
  const { start, state } = useTransfer();
  const run = (isDryRun: boolean) =>
    start(async (signal) => {
      setResult(undefined);
      // Browsers send no file that has changed since it was chosen.
      await readFirstRows(file);
      const flags = { dry_run: String(isDryRun), upsert: String(isUpsert) };
      const path = `admin/v1/import?${new URLSearchParams({ ...flags, ...(map ? { map } : {}) })}`;
      const answer = await fetchApi({ method: 'POST', path, body: file, signal, scope: 'transfer' });
      const texts = (await answer.text()).trim().split('\n');
      const lines = texts.map((text) => JSON.parse(text));
      setResult({ end: lines.at(-1), rejected: lines.slice(0, -1) });
    }, isDryRun);
  return (
    <>
      <label class="check">
        <input type="checkbox" checked={isUpsert} onChange={() => setUpsert(!isUpsert)} />
        Update existing records that differ
      </label>
      <div class="actions">
        <button type="button" class="button" onClick={() => run(true)}>
          Dry run
        </button>
        <button type="button" class="button button-main" onClick={() => run(false)}>
          Import
        </button>
        {map && <SaveLink name="map.json" content={map} />}
      </div>
      <p class="hint">
        Imported lines stay, however an import ends. The same file again changes nothing else.
      </p>
      {state}
      {result && <ImportResult file={file.name} {...result} />}
    </>
  );
}

const SHOWN = 20;

function ImportResult({ file, end, rejected }: Result & { readonly file: string }) {
  const rows = rejected.map(({ line, reason }) => csvRow([line, reason]));
  return (
    <>
      {end.dry_run && <p>A dry run, which changed nothing:</p>}
      <p role="status">
        {end.imported} imported, {end.unchanged} unchanged, {end.replaced} replaced, {end.refused} rejected.
        {end.resume_line !== null && ` Line ${end.resume_line} is the first that was not imported.`}
      </p>
      <ul aria-label="Rejected lines">
        {rejected.slice(0, SHOWN).map(({ line, reason }, index) => (
          <li key={index}>
            Line {line}: <UntrustedText text={reason} />
          </li>
        ))}
      </ul>
      {rows.length > 0 && <SaveLink name={`${file}.rejected.csv`} content={rows.join('')} />}
    </>
  );
}
