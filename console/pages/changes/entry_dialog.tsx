import { useEffect } from 'preact/hooks';
import { callApi } from '../../api/call_api.ts';
import { useFetch } from '../../api/use_fetch.ts';
import { useObservable } from '../../observable.ts';
import { Identifier } from '../../parts/copy.tsx';
import { Dialog } from '../../parts/dialog.tsx';
import { Fact } from '../../parts/facts.tsx';
import { Loaded, Loading } from '../../parts/notices.tsx';
import { isIdentifier, memberLabel, resourceLabel, valueLabel } from '../../parts/resource_labels.ts';
import { Timestamp } from '../../parts/timestamp.tsx';
import { UntrustedText } from '../../parts/untrusted_text.tsx';
import { hasScope, session } from '../../session/session.ts';
import type { NameActor } from './actors.ts';
import { type Entry, entryTitle, isLink, recordHref } from './entry.ts';
import type { Sides } from './last_known.ts';

interface EntryDialogProps {
  readonly realm: string;
  readonly seq: number;
  readonly nameActor: NameActor;
  /** The loaded changes, which may not include it. */
  readonly loaded: readonly Entry[];
  /** Whether it may be in older pages. */
  readonly isSearching: boolean;
  readonly searchOlder: () => void;
  readonly onClose: () => void;
}

/** The details of one change. */
export function EntryDialog(props: EntryDialogProps) {
  const { realm, seq, nameActor, loaded, isSearching, searchOlder, onClose } = props;
  const entry = loaded.find((each) => each.seq === seq && each.realm === realm);
  const isAdmin = hasScope(useObservable(session), 'admin');
  useEffect(() => {
    if (!entry && isSearching) searchOlder();
  }, [loaded, isSearching, realm, seq]);
  return (
    <Dialog title={entry ? entryTitle(entry) : `Change ${seq}`} onClose={onClose}>
      {entry && <EntryFacts entry={entry} nameActor={nameActor} />}
      {!entry && isSearching && !isAdmin && <Loading />}
      {!entry && !isSearching && !isAdmin && (
        <p>The feed no longer holds this change, or it has not arrived yet.</p>
      )}
      {isAdmin ? (
        <LogEntrySection realm={realm} seq={seq} />
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

interface EntryFactsProps {
  readonly entry: Entry;
  readonly nameActor: NameActor;
}

function EntryFacts({ entry, nameActor }: EntryFactsProps) {
  const { seq, at, realm, kind, record, user, what, who, requestId, members, label } = entry;
  return (
    <dl class="facts">
      <Fact label="Time">
        <Timestamp at={at} />
      </Fact>
      <Fact label="Actor">
        <UntrustedText text={nameActor(who)} />
        {nameActor(who) !== who && <Identifier id={who} what="the client ID" />}
      </Fact>
      <Fact label="Realm">
        <Identifier id={realm} what="the realm ID" />
      </Fact>
      {label !== undefined && (
        <Fact label="Current name">
          <UntrustedText text={label} isIdentifier={isLink(entry)} />
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
          <a href={recordHref(entry)}>Current {resourceLabel(kind).one}</a>
        </Fact>
      )}
    </dl>
  );
}

/** An entry of the audit log of a realm. */
interface LogEntry {
  readonly id: string;
  readonly address: string | null;
  readonly detail: Sides | null;
  readonly personal: Sides | 'erased' | 'unreadable' | null;
}

interface LogEntrySectionProps {
  readonly realm: string;
  /** Sequence number of the change and of its log entry. */
  readonly seq: number;
}

/** The values before and after a change, from the audit log. */
function LogEntrySection({ realm, seq }: LogEntrySectionProps) {
  const fetched = useFetch((signal) => readEntry(realm, seq, signal), [realm, seq]);
  return (
    <section class="entry-log" aria-label="Before and after">
      <h3>Before and after</h3>
      <Loaded fetched={fetched}>
        {(entry) =>
          entry ? <LogEntryView entry={entry} /> : <p>The audit log no longer holds this entry.</p>
        }
      </Loaded>
    </section>
  );
}

async function readEntry(realm: string, seq: number, signal: AbortSignal): Promise<LogEntry | undefined> {
  const query = new URLSearchParams({ 'page[after]': seq === 1 ? '' : String(seq - 1), 'page[limit]': '1' });
  const path = `admin/v1/realms/${encodeURIComponent(realm)}/log?${query}`;
  const { body } = await callApi<{ data: readonly LogEntry[] }>({ path, signal, scope: 'admin' });
  return body.data.find(({ id }) => id === String(seq));
}

const WITHHELD = {
  erased: 'Its personal data was erased with the user.',
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
                    <MemberValue member={member} value={before[member]} />
                  </td>
                  <td>
                    <MemberValue member={member} value={after[member]} />
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
          Requested from <UntrustedText text={address} />
        </p>
      )}
    </>
  );
}

function MemberValue({ member, value }: { readonly member: string; readonly value: unknown }) {
  if (value === undefined || value === null || value === '') return <span class="faint">none</span>;
  if (typeof value === 'boolean') return <>{value ? 'yes' : 'no'}</>;
  if (Array.isArray(value)) return <UntrustedText text={value.join('\n')} />;
  const text = typeof value === 'string' ? valueLabel(member, value) : JSON.stringify(value);
  return <UntrustedText text={text} isIdentifier={isIdentifier(member)} />;
}
