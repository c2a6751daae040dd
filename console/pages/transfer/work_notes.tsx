import type { Problem } from '../../api/problem.ts';
import { Icon } from '../../parts/icon.tsx';

interface WorkNotesProps {
  readonly waiting: Problem | undefined;
  readonly goOn: () => void;
}

/** Why nothing moves, and what helps. */
export function WorkNotes({ waiting, goOn }: WorkNotesProps) {
  if (!waiting) return null;
  const isStanding = waiting.waitSeconds === undefined;
  return (
    <div class="note note-warn" role="status">
      <Icon name="warning" />
      <div>
        <p>{waiting.message}</p>
        {isStanding ? (
          <p>
            Nothing is lost unless you sign out: sign in again in this tab under the same name, with a session
            that has the right, then go on.{' '}
            <button type="button" class="text-button" onClick={goOn}>
              Go on
            </button>
          </p>
        ) : (
          <p>It goes on by itself in {waiting.waitSeconds} s.</p>
        )}
      </div>
    </div>
  );
}

interface ProgressProps {
  readonly label: string;
  readonly done: number;
  readonly total: number | undefined;
}

export function Progress({ label, done, total }: ProgressProps) {
  const known = total === undefined ? {} : { max: Math.max(total, 1), value: Math.min(done, total) };
  return <progress class="progress" aria-label={label} {...known} />;
}
