import { DESCRIBED } from 'authrealm:described';
import type { ComponentChildren } from 'preact';
import { useId, useState } from 'preact/hooks';
import type { Issued } from '../../api/administered.ts';
import { Told, useAct } from '../../form/acting.tsx';
import { Dialog } from '../../parts/dialog.tsx';
import { FormActions } from '../../parts/form_actions.tsx';
import { SecretDialog } from '../../parts/secret_dialog.tsx';

const HOUR_SECONDS = 3_600;
const DAY_SECONDS = 24 * HOUR_SECONDS;
const OVERLAPS: readonly (readonly [seconds: number, words: string])[] = [
  [0, 'no longer: it ends at once'],
  [HOUR_SECONDS, '1 hour'],
  [DAY_SECONDS, '24 hours'],
  [7 * DAY_SECONDS, '7 days'],
  [30 * DAY_SECONDS, '30 days'],
];

interface RotationDialogProps {
  /** `client`, `webhook`. */
  readonly what: string;
  /** Of which one, and what comes of it. */
  readonly named: ComponentChildren;
  /** The secret it has now holds for so many seconds more. */
  readonly rotate: (overlapSeconds: number) => Promise<Issued>;
  readonly onDone: () => void;
  readonly onClose: () => void;
}

/** Gives something a new secret, and shows it once. */
export function RotationDialog({ what, named, rotate, onDone, onClose }: RotationDialogProps) {
  const [overlap, setOverlap] = useState(DAY_SECONDS);
  const [issued, setIssued] = useState<Issued>();
  const { isBusy, problem, run } = useAct(onDone);
  const field = useId();
  if (issued) return <SecretDialog what={what} issued={issued} onClose={onClose} />;
  const submit = (event: Event) => {
    event.preventDefault();
    if (!isBusy) run(async () => setIssued(await rotate(overlap)));
  };
  return (
    <Dialog title="New secret" onClose={onClose}>
      <form class="form" onSubmit={submit}>
        {named}
        <div class="field">
          <label for={field}>The secret it has now is accepted for</label>
          <select
            id={field}
            value={String(overlap)}
            onChange={({ currentTarget }) => setOverlap(Number(currentTarget.value))}
          >
            {OVERLAPS.filter(
              ([seconds]) => seconds <= DESCRIBED.limits.secretOverlapHoursMax * HOUR_SECONDS,
            ).map(([seconds, words]) => (
              <option key={seconds} value={String(seconds)}>
                {words}
              </option>
            ))}
          </select>
        </div>
        <Told problem={problem} />
        <FormActions submit="Make a new secret" isOff={isBusy} onCancel={onClose} />
      </form>
    </Dialog>
  );
}
