import { useState } from 'preact/hooks';
import type { Key, Tagged } from '../../api/records.ts';
import type { Description } from '../../description.ts';
import { CreateDialog } from '../../form/creating.tsx';
import { mayMakeOrRemove } from '../../form/rights.ts';
import { useObserved } from '../../observable.ts';
import { Icon } from '../../parts/icon.tsx';
import { nounOf } from '../../parts/nouns.ts';
import { session } from '../../session/session.ts';

interface CreateButtonProps {
  readonly description: Description;
  readonly above: Key;
  readonly onDone: (made: Tagged) => void;
}

/** Makes a record, for who may. */
export function CreateButton({ description, above, onDone }: CreateButtonProps) {
  const [isOpen, setOpen] = useState(false);
  const state = useObserved(session);
  if (!mayMakeOrRemove(state, description)) return null;
  const { one } = nounOf(description.name);
  return (
    <>
      <button type="button" class="button button-main" onClick={() => setOpen(true)}>
        <Icon name="add" /> New {one}
      </button>
      {isOpen && (
        <CreateDialog
          description={description}
          above={above}
          onDone={(made) => {
            setOpen(false);
            onDone(made);
          }}
          onClose={() => setOpen(false)}
        />
      )}
    </>
  );
}
