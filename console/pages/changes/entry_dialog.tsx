import { useEffect } from 'preact/hooks';
import { ask } from '../../api/call_api.ts';
import { useAsked } from '../../api/use_fetch.ts';
import { useObserved } from '../../observable.ts';
import { Identifier } from '../../parts/copy.tsx';
import { Dialog } from '../../parts/dialog.tsx';
import { Fact } from '../../parts/facts.tsx';
import { Answered, Waiting } from '../../parts/notices.tsx';
import { memberLabel, nounOf } from '../../parts/resource_labels.ts';
import { Instant } from '../../parts/timestamp.tsx';
import { Said } from '../../parts/untrusted_text.tsx';
import { may, session } from '../../session/session.ts';
import { type Entry, placeOf } from './entry.ts';

interface EntryDialogProps {
  readonly realm: string;
  readonly seq: number;
  /** Undefined where the page does not hold it. */
  readonly entry: Entry | undefined;
  /** Whether it may be among older ones. */
  readonly isSought: boolean;
  readonly seek: () => void;
  readonly onClose: () => void;
}

/** Everything about one change. */
export function EntryDialog({ realm, seq, entry, isSought, seek, onClose }: EntryDialogProps) {
  const isAdmin = may(useObserved(session), 'admin');
  useEffect(() => {
    if (!entry && isSought) seek();
  });
  const noun = entry && nounOf(entry.kind).one;
  const title = entry ? `${noun?.charAt(0).toUpperCase()}${noun?.slice(1)} ${entry.what}` : `Change ${seq}`;
  return (
    <Dialog title={title} onClose={onClose}>
      {entry && <EntryFacts entry={entry} />}
      {!entry && isSought && !isAdmin && <Waiting />}
      {!entry && !isSought && !isAdmin && (
        <p>The feed no longer holds this change, or it has not arrived yet.</p>
      )}
      {isAdmin ? (
        <BeforeAndAfter realm={realm} seq={seq} />
      ) : (
        entry && (
          <p class="hint entry-hint">
            The values before and after are in the audit log, which requires the scope <code>admin</code>.
          </p>
        )
      )}
    </Dialog>
  );
}

function EntryFacts({ entry }: { readonly entry: Entry }) {
  const { seq, at, kind, record, user, what, who, requestId, members, label } = entry;
  return (
    <dl class="facts">
      <Fact label="When">
        <Instant at={at} />
      </Fact>
      <Fact label="Who">
        <Said text={who} />
      </Fact>
      {label !== undefined && (
        <Fact label="Current name">
          <Said text={label} />
        </Fact>
      )}
      <Fact label="Record">
        <Identifier id={record} />
      </Fact>
      {user !== undefined && user !== record && (
        <Fact label="User">
          <Identifier id={user} what="the user ID" />
        </Fact>
      )}
      {members.length > 0 && <Fact label="Fields">{members.map(memberLabel).join(', ')}</Fact>}
      {requestId !== undefined && (
        <Fact label="Request">
          <Identifier id={requestId} what="the request ID" />
        </Fact>
      )}
      <Fact label="Sequence">{seq.toLocaleString()}</Fact>
      {what !== 'erased' && what !== 'deleted' && (
        <Fact label="Open">
          <a href={placeOf(entry)}>Current {nounOf(kind).one}</a>
        </Fact>
      )}
    </dl>
  );
}

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
function BeforeAndAfter({ realm, seq }: BeforeAndAfterProps) {
  const asked = useAsked((signal) => readEntry(realm, seq, signal), [realm, seq]);
  return (
    <section class="entry-log" aria-label="Before and after">
      <h3>Before and after</h3>
      <Answered asked={asked}>
        {(entry) =>
          entry ? <LogEntryView entry={entry} /> : <p>The audit log no longer holds this entry.</p>
        }
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

const WITHHELD = {
  erased: 'Its personal data were erased with the user.',
  unreadable: 'Its personal data cannot be decrypted: the log was modified. Run “authrealm audit verify”.',
} as const;

function LogEntryView({ entry }: { readonly entry: LogEntry }) {
  const { detail, personal, address } = entry;
  const sides = typeof personal === 'string' ? {} : (personal ?? {});
  const before = { ...detail?.before, ...sides.before };
  const after = { ...detail?.after, ...sides.after };
  const members = [...new Set([...Object.keys(before), ...Object.keys(after)])];
  return (
    <>
      {typeof personal === 'string' && <p class="note note-warn">{WITHHELD[personal]}</p>}
      {members.length > 0 && (
        <div class="table-frame">
          <table>
            <thead>
              <tr>
                <th scope="col">Field</th>
                <th scope="col">Before</th>
                <th scope="col">After</th>
              </tr>
            </thead>
            <tbody>
              {members.map((member) => (
                <tr key={member}>
                  <th scope="row">{memberLabel(member)}</th>
                  <td>
                    <MemberValue value={before[member]} />
                  </td>
                  <td>
                    <MemberValue value={after[member]} />
                  </td>
                </tr>
              ))}
            </tbody>
          </table>
        </div>
      )}
      {members.length === 0 && personal === null && (
        <p class="faint">No field of the record itself changed.</p>
      )}
      {address !== null && (
        <p class="faint small">
          Requested from <Said text={address} />
        </p>
      )}
    </>
  );
}

function MemberValue({ value }: { readonly value: unknown }) {
  if (value === undefined || value === null || value === '') return <span class="faint">none</span>;
  return <Said text={typeof value === 'string' ? value : JSON.stringify(value)} />;
}
