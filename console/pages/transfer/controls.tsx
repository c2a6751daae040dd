import { useId, useMemo } from 'preact/hooks';
import type { ReadPage } from '../../api/list_page.ts';
import type { Problem } from '../../api/problem.ts';
import { readRealmNames } from '../../api/records.ts';
import { useFetch } from '../../api/use_fetch.ts';
import { SelectField } from '../../form/fields.tsx';
import { plainText } from '../../parts/confusables.ts';
import { Icon } from '../../parts/icon.tsx';
import { PagedList } from '../../parts/long_list.tsx';
import { UntrustedText } from '../../parts/untrusted_text.tsx';
import type { RejectedLine } from './import_run.ts';

interface RealmChoiceProps {
  readonly label: string;
  readonly realm: string;
  /** First option, if no realm is required. */
  readonly otherwise?: string;
  readonly onRealm: (realm: string) => void;
}

/** Selects a realm by name, or by ID if there are too many. */
export function RealmChoice({ label, realm, otherwise, onRealm }: RealmChoiceProps) {
  const id = useId();
  const { answer: realms, isWaiting } = useFetch(readRealmNames, []);
  if (realms || isWaiting) {
    const names = (realms ?? []).map((each) => ({
      id: each.id,
      label: `${plainText(each.name)} · ${each.id.slice(-SHOWN_DIGITS)}`,
    }));
    const options = [{ id: '', label: otherwise ?? 'Choose…' }, ...names];
    return <SelectField label={label} value={realm} options={options} onValue={onRealm} />;
  }
  return (
    <div class="field">
      <label for={id}>{label}</label>
      <input
        id={id}
        value={realm}
        placeholder={`ID of the realm${otherwise === undefined ? '' : `; empty: ${otherwise}`}`}
        autocomplete="off"
        spellcheck={false}
        onInput={({ currentTarget }) => onRealm(currentTarget.value.trim())}
      />
    </div>
  );
}

/** The end of the ID distinguishes realms of the same name. */
const SHOWN_DIGITS = 4;

interface WaitingNoteProps {
  readonly waiting: Problem | undefined;
  readonly resume: () => void;
}

/** Why the transfer waits, and what to do. */
export function WaitingNote({ waiting, resume }: WaitingNoteProps) {
  if (!waiting) return null;
  const needsUser = waiting.waitSeconds === undefined;
  return (
    <div class="note note-warn" role="status">
      <Icon name="warning" />
      <div>
        <p>{waiting.message}</p>
        {needsUser ? (
          <p>
            Nothing is lost unless you sign out: sign in again in this tab as the same user, with the required
            scopes, then resume.{' '}
            <button type="button" class="text-button" onClick={resume}>
              {' '}
              Resume{' '}
            </button>
          </p>
        ) : (
          <p>Continues automatically in {waiting.waitSeconds} s.</p>
        )}
      </div>
    </div>
  );
}

interface ProgressProps {
  readonly label: string;
  readonly done: number;
  readonly total: number | undefined;
}

export function Progress({ label, done, total }: ProgressProps) {
  const range = total === undefined ? {} : { max: Math.max(total, 1), value: Math.min(done, total) };
  return <progress class="progress" aria-label={label} {...range} />;
}

/** Starts the download of a file. */
export function saveFile(name: string, content: Blob): void {
  const address = URL.createObjectURL(content);
  const link = document.createElement('a');
  link.href = address;
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(address), REVOKE_AFTER_MS);
}

/** Browsers read the file some time after the click. */
const REVOKE_AFTER_MS = 60_000;

interface RejectedLinesProps {
  readonly refused: readonly RejectedLine[];
  /** Name of the imported file. */
  readonly name: string;
}

const PAGE = 50;

/** The rejected lines with reasons, to read and to save. */
export function RejectedLines({ refused, name }: RejectedLinesProps) {
  const read = useMemo((): ReadPage<RejectedLine> => {
    return async (cursor) => {
      const from = Number(cursor);
      const next = from + PAGE < refused.length ? String(from + PAGE) : undefined;
      return { items: refused.slice(from, from + PAGE), next };
    };
  }, [refused]);
  if (refused.length === 0) return null;
  const save = () => {
    const text = refused.map(({ line, reason }) => `line ${line}: ${reason}\n`).join('');
    saveFile(`${name}.refused.txt`, new Blob([text], { type: 'text/plain' }));
  };
  return (
    <section class="stack-tight" aria-label="Rejected lines">
      <div class="card-head refused-head">
        <h3>{refused.length === 1 ? '1 line was' : `${formatCount(refused.length)} lines were`} rejected</h3>
        <button type="button" class="button" onClick={save}>
          <Icon name="transfer" /> Save list
        </button>
      </div>
      <PagedList
        label="Rejected lines"
        read={read}
        empty={null}
        isStop={true}
        row={({ line, reason }) => (
          <div class="row">
            <span class="row-main">
              <span>Line {line}</span>
              <span class="faint">
                <UntrustedText text={reason} />
              </span>
            </span>
          </div>
        )}
      />
    </section>
  );
}

const NUMBERS = new Intl.NumberFormat();

export function formatCount(count: number): string {
  return NUMBERS.format(count);
}
