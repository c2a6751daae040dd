import { useEffect, useState } from 'preact/hooks';
import { observable, useObservable } from '../observable.ts';

const announced = observable('');

/** Announces a text to screen readers, and shows it for a moment. */
export function announce(text: string): void {
  announced.set('');
  requestAnimationFrame(() => announced.set(text));
  clearTimeout(timer);
  timer = setTimeout(() => announced.set(''), SHOWN_MS);
}

const SHOWN_MS = 6_000;
let timer: ReturnType<typeof setTimeout> | undefined;

/** Mounted announcers. Only the last one speaks: browsers mute live regions under an open dialog. */
const announcers = observable<readonly object[]>([]);

export function Announcer({ isInDialog = false }: { readonly isInDialog?: boolean }) {
  const text = useObservable(announced);
  const all = useObservable(announcers);
  const [self] = useState({});
  useEffect(() => {
    const others = announcers.get();
    announcers.set(isInDialog ? [...others, self] : [self, ...others]);
    return () => announcers.set(announcers.get().filter((each) => each !== self));
  }, []);
  return (
    <div class="announcer" role="status" aria-live="polite">
      {all.at(-1) === self && text}
    </div>
  );
}
