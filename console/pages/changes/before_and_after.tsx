import { useAsked } from '../../api/answers.ts';
import { ask } from '../../api/caller.ts';
import { Answered } from '../../parts/notices.tsx';
import { Said } from '../../parts/said.tsx';
import { memberLabel } from './members.ts';

type Members = Readonly<Record<string, unknown>>;

interface Sides {
  readonly before?: Members;
  readonly after?: Members;
}

/** An entry of the log of a realm. */
interface LogEntry {
  readonly id: string;
  readonly address: string | null;
  readonly detail: Sides | null;
  readonly personal: Sides | 'erased' | 'unreadable' | null;
}

interface BeforeAndAfterProps {
  readonly realm: string;
  /** The place of the change, which is that of its entry. */
  readonly seq: number;
}

/** What stood in a record before a change and after it, as the audit log has it. */
export function BeforeAndAfter({ realm, seq }: BeforeAndAfterProps) {
  const asked = useAsked((signal) => readEntry(realm, seq, signal), [realm, seq]);
  return (
    <section class="entry-log" aria-label="Before and after">
      <h3>Before and after</h3>
      <Answered asked={asked}>
        {(entry) => (entry ? <Told entry={entry} /> : <p>The log does not keep this entry any more.</p>)}
      </Answered>
    </section>
  );
}

async function readEntry(realm: string, seq: number, signal: AbortSignal): Promise<LogEntry | undefined> {
  const query = new URLSearchParams({ 'page[after]': seq === 1 ? '' : String(seq - 1), 'page[limit]': '1' });
  const path = `admin/v1/realms/${encodeURIComponent(realm)}/log?${query}`;
  const { body } = await ask<{ data: readonly LogEntry[] }>({ path, signal, scope: 'admin' });
  return body.data.find(({ id }) => id === String(seq));
}

const UNTOLD = {
  erased: 'What it told about the person was erased with them.',
  unreadable:
    'What it tells about the person cannot be read: somebody has edited the log. Run “authrealm audit verify”.',
} as const;

function Told({ entry }: { readonly entry: LogEntry }) {
  const { detail, personal, address } = entry;
  const sides = typeof personal === 'string' ? {} : (personal ?? {});
  const before = { ...detail?.before, ...sides.before };
  const after = { ...detail?.after, ...sides.after };
  const members = [...new Set([...Object.keys(before), ...Object.keys(after)])];
  return (
    <>
      {typeof personal === 'string' && <p class="note note-warn">{UNTOLD[personal]}</p>}
      {members.length > 0 && (
        <div class="table-frame">
          <table>
            <thead>
              <tr>
                <th scope="col">Member</th>
                <th scope="col">Before</th>
                <th scope="col">After</th>
              </tr>
            </thead>
            <tbody>
              {members.map((member) => (
                <tr key={member}>
                  <th scope="row">{memberLabel(member)}</th>
                  <td>
                    <Value value={before[member]} />
                  </td>
                  <td>
                    <Value value={after[member]} />
                  </td>
                </tr>
              ))}
            </tbody>
          </table>
        </div>
      )}
      {members.length === 0 && personal === null && (
        <p class="faint">No member of the record itself changed.</p>
      )}
      {address !== null && (
        <p class="faint small">
          Asked from <Said text={address} />
        </p>
      )}
    </>
  );
}

function Value({ value }: { readonly value: unknown }) {
  if (value === undefined || value === null || value === '') return <span class="faint">none</span>;
  return <Said text={typeof value === 'string' ? value : JSON.stringify(value)} />;
}
