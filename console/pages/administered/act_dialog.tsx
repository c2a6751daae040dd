import { useState } from 'preact/hooks';
import type { Administered } from '../../api/administered.ts';
import type { Tagged } from '../../api/records.ts';
import { Told, useAct } from '../../form/acting.tsx';
import { Meanwhile } from '../../form/meanwhile.tsx';
import { go } from '../../layout/router.ts';
import { announce } from '../../parts/announcer.tsx';
import { Confirmation, confirmationWord } from '../../parts/dialog.tsx';
import { Said } from '../../parts/said.tsx';
import type { Act, Kind } from './kind.ts';
import { fieldsOf, valuesOf } from './members.ts';
import { RotationDialog } from './rotation.tsx';

interface ActDialogProps<Said, Created> {
  readonly kind: Kind<Said, Created>;
  readonly act: Act;
  readonly tagged: Tagged<Administered & Said>;
  readonly onChanged: () => void;
  readonly onClose: () => void;
}

const VERBS = { disable: 'Disable', enable: 'Enable', delete: 'Delete' } as const;

/** Gives one a new secret, turns it off or on, or deletes it, after asking. */
export function ActDialog<Said, Created>(props: ActDialogProps<Said, Created>) {
  const { kind, act, tagged, onChanged, onClose } = props;
  const { what, collection, labels, words } = kind;
  const [shown] = useState(tagged.record);
  const { id, name } = tagged.record;
  const { isBusy, problem, run } = useAct(() => {
    announce(act === 'enable' ? words.turnedOn : `The ${what} is ${act}d.`);
    if (act === 'delete') {
      go(kind.home.href);
    } else {
      onChanged();
      onClose();
    }
  }, onChanged);
  const named = (
    <p>
      <strong>
        <Said text={name} />
      </strong>{' '}
      {words.of[act]}
    </p>
  );
  if (act === 'rotate') {
    const rotate = (seconds: number) => collection.rotate(id, seconds);
    return <RotationDialog what={what} named={named} rotate={rotate} onDone={onChanged} onClose={onClose} />;
  }
  return (
    <Confirmation
      title={`${VERBS[act]} this ${what}?`}
      word={act === 'delete' ? confirmationWord('delete', id) : undefined}
      verb={VERBS[act]}
      isDanger={act !== 'enable'}
      isBusy={isBusy}
      onConfirm={() =>
        run(() => (act === 'delete' ? collection.remove(id, tagged.etag) : collection.turn(id, act)))
      }
      onClose={onClose}
    >
      {named}
      <Told problem={problem} />
      {act === 'delete' && (
        <Meanwhile
          fields={fieldsOf<Said>(labels)}
          before={valuesOf<Said>(labels, shown)}
          now={valuesOf<Said>(labels, tagged.record)}
          isOther={tagged.record.meta.updated_at !== shown.meta.updated_at}
        />
      )}
    </Confirmation>
  );
}
