import { useState } from 'preact/hooks';
import type { Administered } from '../../api/administered.ts';
import { problemOf } from '../../api/problem.ts';
import type { Tagged } from '../../api/records.ts';
import { Comparison } from '../../form/comparison.tsx';
import type { Value, Values } from '../../form/values.ts';
import { announce } from '../../parts/announcer.tsx';
import { Dialog } from '../../parts/dialog.tsx';
import type { Kind } from './kind.ts';

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
  const members = Object.keys(labels) as (keyof Said & string)[];
  const valuesOf = (said: Said): Values =>
    Object.fromEntries(members.map((member) => [member, textOf(said[member])]));
  const send = async (mine: Said, etag: string | undefined) => {
    const isOther = (member: keyof Said) =>
      JSON.stringify(from.record[member]) !== JSON.stringify(mine[member]);
    const said = members.filter(isOther).map((member) => [member, mine[member]]);
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
          fields={members.map((name) => ({ name, label: labels[name] }))}
          before={valuesOf(from.record)}
          mine={valuesOf(conflict.mine)}
          theirs={valuesOf(conflict.theirs.record)}
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

/** As a comparison shows it: a text, or that something is so. */
function textOf(member: unknown): Value {
  if (typeof member === 'boolean') return member;
  return Array.isArray(member) ? member.join('\n') : String(member ?? '');
}
