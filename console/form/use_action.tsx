import { useState } from 'preact/hooks';
import { type Problem, toProblem } from '../api/problem.ts';
import { announce } from '../parts/announcer.tsx';
import { Confirmation, type ConfirmationProps } from '../parts/dialog.tsx';
import { ProblemNote } from '../parts/notices.tsx';
import { memberLabel } from '../parts/resource_labels.ts';
import { ruleSentence } from './rules.ts';

/** Runs one action at a time and keeps its error. `onStale` is called on an edit conflict. */
export function useAction(done: () => void, onStale?: () => void | Promise<void>) {
  const [isBusy, setBusy] = useState(false);
  const [problem, setProblem] = useState<Problem>();
  const run = (action: () => Promise<void>) => {
    setBusy(true);
    setProblem(undefined);
    const fail = (error: unknown) => {
      const failure = toProblem(error);
      setProblem(failure);
      return failure.kind;
    };
    action()
      .then(done)
      .catch(async (error: unknown) => {
        if (fail(error) === 'stale') await onStale?.();
      })
      .catch(fail)
      .finally(() => setBusy(false));
  };
  return { isBusy, problem, run };
}

/** The error of an action, with the details of the service. */
export function ActionError({ problem }: { readonly problem: Problem | undefined }) {
  if (!problem) return null;
  return (
    <>
      <ProblemNote problem={problem} />
      {problem.errors
        .filter(({ detail }) => !problem.message.includes(detail))
        .map(({ member, detail }) => (
          <p key={`${member} ${detail}`} class="field-error">
            {ruleSentence(member === undefined ? '' : memberLabel(member), detail)}
          </p>
        ))}
    </>
  );
}

interface ActionDialogProps extends Omit<ConfirmationProps, 'isBusy' | 'onConfirm'> {
  readonly action: () => Promise<void>;
  /** Whether what it acts on has been read. */
  readonly isReady?: boolean;
  /** Announced when it has succeeded. */
  readonly message: string;
  readonly onDone: () => void;
  /** After an edit conflict. */
  readonly onStale?: () => void;
}

/** Asks for confirmation, runs the action, announces that it has succeeded and closes. */
export function ActionDialog(props: ActionDialogProps) {
  const { action, isReady = true, message, onDone, onStale, children, ...confirmation } = props;
  const { isBusy, problem, run } = useAction(() => {
    announce(message);
    onDone();
    confirmation.onClose();
  }, onStale);
  return (
    <Confirmation {...confirmation} isBusy={isBusy || !isReady} onConfirm={() => run(action)}>
      {children}
      <ActionError problem={problem} />
    </Confirmation>
  );
}
