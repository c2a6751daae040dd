import { observable, useObserved } from '../observable.ts';

const announced = observable('');

/** Says something to who does not see the page, and shows it for a moment to who does. */
export function announce(text: string): void {
  announced.set('');
  requestAnimationFrame(() => announced.set(text));
  clearTimeout(timer);
  timer = setTimeout(() => announced.set(''), SHOWN_MS);
}

const SHOWN_MS = 6_000;
let timer: ReturnType<typeof setTimeout> | undefined;

export function Announcer() {
  const text = useObserved(announced);
  return (
    <div class="announcer" role="status" aria-live="polite">
      {text}
    </div>
  );
}
