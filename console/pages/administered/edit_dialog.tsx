import { useState } from 'preact/hooks';
import type { Administered } from '../../api/administered.ts';
import { problemOf } from '../../api/problem.ts';
import type { Tagged } from '../../api/records.ts';
import { Comparison } from '../../form/comparison.tsx';
import { announce } from '../../parts/announcer.tsx';
import { Dialog } from '../../parts/dialog.tsx';
import type { Kind } from './kind.ts';
import { fieldsOf, membersOf, valuesOf } from './members.ts';

interface EditDialogProps<Said, Created> {
  readonly kind: Kind<Said, Created>;
  readonly tagged: Tagged<Administered & Said>;
  readonly onChanged: () => void;
  readonly onClose: () => void;
}

interface Conflict<Said> {
  readonly mine: Said;
  readonly theirs: Tagged<Administered & Said>;
}

/** Changes what is said of one. Where another one was faster, both are shown before anything is saved. */
export function EditDialog<Said, Created extends Said>(props: EditDialogProps<Said, Created>) {
  const { kind, tagged, onChanged, onClose } = props;
  const { what, collection, labels, Form } = kind;
  const [from, setFrom] = useState(tagged);
  const [conflict, setConflict] = useState<Conflict<Said>>();
  const { id } = tagged.record;
  const send = async (mine: Said, etag: string | undefined) => {
    const isOther = (member: keyof Said) =>
      JSON.stringify(from.record[member]) !== JSON.stringify(mine[member]);
    const said = membersOf<Said>(labels)
      .filter(isOther)
      .map((member) => [member, mine[member]]);
    await collection.update(id, Object.fromEntries(said) as Partial<Said>, etag);
    announce('Saved.');
    onChanged();
    onClose();
  };
  const meet = async (mine: Said) => setConflict({ mine, theirs: await collection.read(id) });
  const save = async (mine: Said) => {
    try {
      await send(mine, from.etag);
    } catch (error) {
      if (problemOf(error).kind !== 'stale') throw error;
      await meet(mine);
    }
  };
  return (
    <Dialog title={conflict ? 'Somebody else was faster' : `Edit ${what}`} onClose={onClose}>
      {conflict ? (
        <Comparison
          fields={fieldsOf<Said>(labels)}
          before={valuesOf<Said>(labels, from.record)}
          mine={valuesOf<Said>(labels, conflict.mine)}
          theirs={valuesOf<Said>(labels, conflict.theirs.record)}
          overwrite={() => send(conflict.mine, conflict.theirs.etag)}
          onStale={() => meet(conflict.mine)}
          takeTheirs={() => {
            setFrom(conflict.theirs);
            setConflict(undefined);
          }}
        />
      ) : (
        <Form key={from.etag} begin={from.record} verb="update" save={save} onCancel={onClose} />
      )}
    </Dialog>
  );
}
