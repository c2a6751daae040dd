import { useEffect } from 'preact/hooks';
import { useObserved } from '../../observable.ts';
import { Identifier } from '../../parts/copy.tsx';
import { Dialog } from '../../parts/dialog.tsx';
import { Fact } from '../../parts/facts.tsx';
import { Instant } from '../../parts/instant.tsx';
import { Waiting } from '../../parts/notices.tsx';
import { nounOf } from '../../parts/nouns.ts';
import { Said } from '../../parts/said.tsx';
import { may, session } from '../../session/session.ts';
import { BeforeAndAfter } from './before_and_after.tsx';
import { type Entry, placeOf } from './entry.ts';
import { memberLabel } from './members.ts';

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
        <p>The feed does not keep this change any more, or it has not come yet.</p>
      )}
      {isAdmin ? (
        <BeforeAndAfter realm={realm} seq={seq} />
      ) : (
        entry && (
          <p class="hint entry-hint">
            What stood there before and after is in the audit log, which takes the scope <code>admin</code>.
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
        <Fact label="Now called">
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
      {members.length > 0 && <Fact label="Written">{members.map(memberLabel).join(', ')}</Fact>}
      {requestId !== undefined && (
        <Fact label="Request">
          <Identifier id={requestId} what="the request ID" />
        </Fact>
      )}
      <Fact label="Place">{seq.toLocaleString()} in the order of the realm</Fact>
      {what !== 'erased' && what !== 'deleted' && (
        <Fact label="Open">
          <a href={placeOf(entry)}>The {nounOf(kind).one}, as it is now</a>
        </Fact>
      )}
    </dl>
  );
}
