import type { ComponentChildren } from 'preact';
import { pagesOf, readPages } from '../../api/list_page.ts';
import { Problem } from '../../api/problem.ts';
import { useFetch } from '../../api/use_fetch.ts';
import { useObservable } from '../../observable.ts';
import { Identifier } from '../../parts/copy.tsx';
import { Dialog } from '../../parts/dialog.tsx';
import { Fact, FactValue } from '../../parts/facts.tsx';
import { Loaded } from '../../parts/notices.tsx';
import { memberLabel, resourceLabel } from '../../parts/resource_labels.ts';
import { Timestamp } from '../../parts/timestamp.tsx';
import { UntrustedText } from '../../parts/untrusted_text.tsx';
import { hasScope, session } from '../../session/session.ts';
import { actorName, type Clients } from './actors.ts';
import { type Entry, isLink, recordHref, searchChanges } from './entry.ts';

interface EntryDialogProps {
  /** The change of the address. */
  readonly named: { readonly realm: string; readonly at: string; readonly seq: number };
  /** The same, if it is in the list. */
  readonly loaded: Entry | undefined;
  readonly clients: Clients;
  readonly onClose: () => void;
}

/** The details of one change. */
export function EntryDialog({ named, loaded, clients, onClose }: EntryDialogProps) {
  const { realm, at, seq } = named;
  const read = async (signal: AbortSignal) => {
    // One commit may have written many.
    const pages = pagesOf((after) => searchChanges({ realm, from: at, to: at }, after, signal), signal);
    const entry = loaded ?? (await readPages(pages)).items.find((each) => each.seq === seq);
    if (!entry) throw new Problem('absent', 'The feed no longer holds this change.');
    return entry;
  };
  const fetched = useFetch(read, [realm, at, seq]);
  return (
    <Dialog title={fetched.answer?.title ?? `Change ${seq}`} onClose={onClose}>
      <Loaded fetched={fetched}>
        {(entry) => (
          <div class="stack">
            <EntryFacts entry={entry} clients={clients} />
            <EntryValues entry={entry} />
          </div>
        )}
      </Loaded>
    </Dialog>
  );
}

function EntryFacts({ entry, clients }: { readonly entry: Entry; readonly clients: Clients }) {
  const { kind, what, record_id: record, user_id: user, client_id: who, request_id: request } = entry;
  const hasRecord = what !== 'erased' && what !== 'deleted';
  const facts: Readonly<Record<string, ComponentChildren>> = {
    Time: <Timestamp at={entry.at} />,
    Actor: <UntrustedText text={actorName(clients, who)} />,
    Client: clients.has(who) && <Identifier id={who} what="the client ID" />,
    Name: entry.label !== undefined && <UntrustedText text={entry.label} isIdentifier={isLink(entry)} />,
    Realm: <Identifier id={entry.realm_id} what="the realm ID" />,
    Record: <Identifier id={record} />,
    User: user && user !== record && <Identifier id={user} what="the user ID" />,
    Fields: entry.members.map(memberLabel).join(', '),
    Request: request && <Identifier id={request} what="the request ID" />,
    Sequence: entry.seq.toLocaleString(),
    Open: hasRecord && <a href={recordHref(entry)}>Current {resourceLabel(kind).one}</a>,
  };
  const shown = Object.entries(facts).filter(([, value]) => value);
  return (
    <dl class="facts">
      {shown.map(([name, value]) => (
        <Fact key={name} label={name}>
          {value}
        </Fact>
      ))}
    </dl>
  );
}

const WITHHELD = {
  erased: 'Its personal data was erased with the user.',
  unreadable: 'Its personal data cannot be decrypted: the log was modified. Run “authrealm audit verify”.',
} as const;

/** The values before and after a change. */
export function EntryValues({ entry: { before, after, withheld } }: { readonly entry: Entry }) {
  if (!hasScope(useObservable(session), 'history:read'))
    return (
      <p class="hint">
        The values before and after require the scope <code>history:read</code>.
      </p>
    );
  const members = [...new Set([...Object.keys(before), ...Object.keys(after)])];
  return (
    <div class="stack-tight">
      {withheld && <p class="note note-warn">{WITHHELD[withheld]}</p>}
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
                    <FactValue member={member} value={before[member]} />
                  </td>
                  <td>
                    <FactValue member={member} value={after[member]} />
                  </td>
                </tr>
              ))}
            </tbody>
          </table>
        </div>
      )}
      {members.length === 0 && !withheld && <p class="faint">No field of the record itself changed.</p>}
    </div>
  );
}
