import { useRef, useState } from 'preact/hooks';
import { type FieldError, type Problem, toProblem } from '../api/problem.ts';

/** Error messages of missing fields, by member. */
export type MissingFields = Readonly<Record<string, string>>;

interface FormOptions<T> {
  readonly initial: T;
  readonly missingOf: (input: T) => MissingFields;
  readonly save: (input: T) => Promise<void>;
  /** Derives members from changed ones. */
  readonly follow?: ((input: T, changed: Partial<T>) => T) | undefined;
}

/** The state of a form: input, errors, submission. Moves the focus to the first invalid field. */
export function useForm<T extends object>({ initial, missingOf, save, follow }: FormOptions<T>) {
  const [input, setInput] = useState(initial);
  const [errors, setErrors] = useState<readonly FieldError[]>([]);
  const [problem, setProblem] = useState<Problem>();
  const [isBusy, setBusy] = useState(false);
  const form = useRef<HTMLFormElement>(null);
  const errorOf = (member: string) =>
    errors.flatMap((each) => (each.member === member ? [each.detail] : [])).join('; ');
  const showErrors = (failure: readonly FieldError[]) => {
    setErrors(failure);
    requestAnimationFrame(() => form.current?.querySelector<HTMLElement>('[aria-invalid="true"]')?.focus());
  };
  const change = (part: Partial<T>) => {
    const next = { ...input, ...part };
    setInput(follow?.(next, part) ?? next);
    setErrors(errors.filter(({ member }) => member === undefined || !(member in part)));
  };
  const send = async (event: Event) => {
    event.preventDefault();
    if (isBusy) return;
    const missing = Object.entries(missingOf(input));
    setProblem(undefined);
    showErrors(missing.map(([member, detail]) => ({ title: '', detail, member })));
    if (missing.length > 0) return;
    setBusy(true);
    try {
      await save(input);
    } catch (error) {
      const failure = toProblem(error);
      const known = failure.errors.filter(({ member }) => member !== undefined && member in initial);
      if (known.length === 0 || known.length < failure.errors.length) setProblem(failure);
      showErrors(known);
    } finally {
      setBusy(false);
    }
  };
  return { input, change, errorOf, problem, isBusy, send, form };
}
