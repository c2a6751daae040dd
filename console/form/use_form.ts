import { useLayoutEffect, useRef, useState } from 'preact/hooks';
import { type FieldError, type Problem, toProblem } from '../api/problem.ts';
import { focusFirstField } from '../parts/dialog.tsx';
import { ruleSentence } from './rules.ts';

/** What is wrong with an input, by member. */
export type BrokenRules = Readonly<Record<string, string>>;

interface FormOptions<T> {
  readonly initial: T;
  readonly brokenRulesOf: (input: T) => BrokenRules;
  readonly save: (input: T) => Promise<void>;
  /** Derives members from changed ones; `typed` are those that the user has filled in. */
  readonly follow?: ((input: T, changed: Partial<T>, typed: ReadonlySet<string>) => T) | undefined;
}

/** The state of a form: input, errors, submission. Moves the focus to the first field, later to the first invalid one. */
export function useForm<T extends object>({ initial, brokenRulesOf, save, follow }: FormOptions<T>) {
  const [input, setInput] = useState(initial);
  const [errors, setErrors] = useState<readonly FieldError[]>([]);
  const [problem, setProblem] = useState<Problem>();
  const [refused, setRefused] = useState<Problem>();
  const [isBusy, setBusy] = useState(false);
  const typed = useRef(new Set<string>());
  const form = useRef<HTMLFormElement>(null);
  // Before it is drawn: what is typed goes into the field that was chosen.
  useLayoutEffect(() => focusFirstField(form.current), []);
  /** The errors of a member, whose label is this; empty if there are none. */
  const sentenceOf = (member: string, label: string) =>
    errors.flatMap((each) => (each.member === member ? [ruleSentence(label, each.detail)] : [])).join(' ');
  const showErrors = (failure: readonly FieldError[]) => {
    setErrors(failure);
    requestAnimationFrame(() => form.current?.querySelector<HTMLElement>('[aria-invalid="true"]')?.focus());
  };
  const change = (part: Partial<T>) => {
    for (const [member, value] of Object.entries(part)) {
      if (value === '') typed.current.delete(member);
      else typed.current.add(member);
    }
    const next = { ...input, ...part };
    setInput(follow?.(next, part, typed.current) ?? next);
    setRefused(undefined);
    setErrors(errors.filter(({ member }) => member === undefined || !(member in part)));
  };
  const send = async (event: Event) => {
    event.preventDefault();
    if (isBusy) return;
    const broken = Object.entries(brokenRulesOf(input));
    setProblem(undefined);
    setRefused(undefined);
    showErrors(broken.map(([member, detail]) => ({ detail, member })));
    if (broken.length > 0) return;
    setBusy(true);
    try {
      await save(input);
    } catch (error) {
      const failure = toProblem(error);
      const known = failure.errors.filter(({ member }) => member !== undefined && member in initial);
      if (known.length === 0 || known.length < failure.errors.length) setProblem(failure);
      showErrors(known);
      if (failure.kind === 'refused') setRefused(failure);
    } finally {
      setBusy(false);
    }
  };
  return { input, change, sentenceOf, refused, problem, isBusy, send, form };
}
