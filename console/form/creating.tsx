import { useMemo } from 'preact/hooks';
import { createRecord, type Key, type Shown, type Tagged } from '../api/records.ts';
import type { Description } from '../description.ts';
import { announce } from '../parts/announcer.tsx';
import { Dialog } from '../parts/dialog.tsx';
import { nounOf } from '../parts/nouns.ts';
import { RecordForm, type RecordFormProps } from './record_form.tsx';
import { saidToCreate } from './values.ts';

interface CreateDialogProps extends Pick<RecordFormProps, 'options' | 'follow'> {
  readonly description: Description;
  readonly above: Key;
  readonly begin?: Partial<Shown>;
  readonly onDone: (made: Tagged) => void;
  readonly onClose: () => void;
}

/** Makes a record. Sent twice, it is made once. */
export function CreateDialog(props: CreateDialogProps) {
  const { description, above, begin = {}, onDone, onClose, ...rest } = props;
  const words = useMemo(() => new Map<string, string>(), []);
  const { one } = nounOf(description.name);
  return (
    <Dialog title={`New ${one}`} onClose={onClose}>
      <RecordForm
        {...rest}
        description={description}
        verb="create"
        begin={begin}
        submit="Create"
        onCancel={onClose}
        save={async (fields, values) => {
          const said = saidToCreate(fields, values);
          const made = await createRecord(description, above, said, wordFor(JSON.stringify(said), words));
          announce(`The ${one} is there.`);
          onDone(made);
        }}
      />
    </Dialog>
  );
}

/** One word for one body: what was mended is another attempt, and no repetition of the one before. */
function wordFor(said: string, words: Map<string, string>): string {
  const word = words.get(said) ?? onceWord();
  words.set(said, word);
  return word;
}

const WORD_BYTES = 16;

function onceWord(): string {
  return [...crypto.getRandomValues(new Uint8Array(WORD_BYTES))]
    .map((byte) => byte.toString(16).padStart(2, '0'))
    .join('');
}
