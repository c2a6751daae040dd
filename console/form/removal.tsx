import type { ComponentChildren } from 'preact';
import { useState } from 'preact/hooks';
import { useAsked } from '../api/answers.ts';
import { type Key, readRecord, removeRecord, type Shown } from '../api/records.ts';
import type { Description } from '../description.ts';
import { announce } from '../parts/announcer.tsx';
import { Confirmation } from '../parts/dialog.tsx';
import { ProblemNote } from '../parts/notices.tsx';
import { nounOf } from '../parts/nouns.ts';
import { Told, useAct } from './acting.tsx';
import { Meanwhile } from './meanwhile.tsx';
import { valuesOf } from './values.ts';

interface RemovalProps {
  readonly description: Description;
  readonly recordKey: Key;
  /** As the page shows it. */
  readonly shown: Shown;
  readonly verb: 'Remove' | 'Delete';
  /** What has to be typed. */
  readonly word?: string;
  /** What goes, in words. */
  readonly children: (now: Shown) => ComponentChildren;
  readonly onRemoved: () => void;
  readonly onClose: () => void;
}

/** Removes a record as it is read now, after asking. What somebody else has changed is shown before anything is removed. */
export function Removal(props: RemovalProps) {
  const { description, recordKey, verb, word, children, onRemoved, onClose } = props;
  const [shown] = useState(props.shown);
  const asked = useAsked((signal) => readRecord(description, recordKey, signal), []);
  const { one } = nounOf(description.name);
  const { run, isBusy, problem } = useAct(() => {
    announce(`The ${one} is ${verb.toLowerCase()}d.`);
    onRemoved();
  }, asked.again);
  const now = asked.answer;
  const fields = description.fields.filter(({ isShown }) => isShown);
  return (
    <Confirmation
      title={`${verb} this ${one}?`}
      word={word}
      verb={verb}
      isBusy={isBusy || asked.isWaiting || !now}
      onConfirm={() => now && run(() => removeRecord(description, recordKey, now.etag))}
      onClose={onClose}
    >
      {children(now?.record ?? shown)}
      {asked.problem ? (
        <ProblemNote problem={asked.problem} again={asked.again} />
      ) : (
        <Told problem={problem} />
      )}
      {now && (
        <Meanwhile
          fields={fields}
          before={valuesOf(fields, shown)}
          now={valuesOf(fields, now.record)}
          isOther={now.record.updated_at !== shown.updated_at}
        />
      )}
    </Confirmation>
  );
}
