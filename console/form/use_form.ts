import { useRef, useState } from 'preact/hooks';
import { type Complaint, type Problem, problemOf } from '../api/problem.ts';

/** What has to be said still, by member. */
export type Missing = Readonly<Record<string, string>>;

interface Saying<T> {
  readonly begin: T;
  readonly missingOf: (said: T) => Missing;
  readonly save: (said: T) => Promise<void>;
}

/** What is said in a form, and what the service has to say about it; who reads by keyboard or ear is led to it. */
export function useSaying<T extends object>({ begin, missingOf, save }: Saying<T>) {
  const [said, setSaid] = useState(begin);
  const [complaints, setComplaints] = useState<readonly Complaint[]>([]);
  const [problem, setProblem] = useState<Problem>();
  const [isBusy, setBusy] = useState(false);
  const form = useRef<HTMLFormElement>(null);
  const about = (member: string) =>
    complaints.flatMap((each) => (each.member === member ? [each.detail] : [])).join('; ');
  const complain = (found: readonly Complaint[]) => {
    setComplaints(found);
    requestAnimationFrame(() => form.current?.querySelector<HTMLElement>('[aria-invalid="true"]')?.focus());
  };
  const change = (part: Partial<T>) => {
    setSaid({ ...said, ...part });
    setComplaints(complaints.filter(({ member }) => !member || !(member in part)));
  };
  const send = async (event: Event) => {
    event.preventDefault();
    if (isBusy) return;
    const missing = Object.entries(missingOf(said));
    setProblem(undefined);
    complain(missing.map(([member, detail]) => ({ title: '', detail, member })));
    if (missing.length > 0) return;
    setBusy(true);
    try {
      await save(said);
    } catch (error) {
      const found = problemOf(error);
      const known = found.complaints.filter(({ member }) => member !== undefined && member in begin);
      if (known.length === 0) setProblem(found);
      complain(known);
    } finally {
      setBusy(false);
    }
  };
  return { said, change, about, problem, isBusy, send, form };
}
