import { useEffect, useState } from 'preact/hooks';
import { signOut } from '../api/sign_out.ts';
import { useObserved } from '../observable.ts';
import { announce } from '../parts/announcer.tsx';
import { Icon } from '../parts/icon.tsx';
import { Said } from '../parts/said.tsx';
import { session } from '../session/session.ts';

const TICK_MS = 1_000;
/** When the end is told, in seconds before it. */
const WARNING_SECONDS = 120;

/** Who is signed in, how long still, and the way out. */
export function SessionBox() {
  const { open } = useObserved(session);
  const left = useLeft(open?.endsAt);
  if (!open) return null;
  return (
    <section class="session" aria-label="Session">
      <div class="session-who">
        <Icon name="user" />
        <span>
          <Said text={open.label} />
        </span>
      </div>
      <p class={left < WARNING_SECONDS ? 'session-left soon' : 'session-left'} data-left={left}>
        Ends in {wordsOf(left)}
      </p>
      <button type="button" class="text-button" onClick={signOut}>
        <Icon name="signOut" /> Sign out
      </button>
    </section>
  );
}

/** Seconds until the end, by the clock that begins with the page. */
function useLeft(endsAt: number | undefined): number {
  const leftNow = () => Math.max(Math.ceil(((endsAt ?? 0) - performance.now()) / 1_000), 0);
  const [left, setLeft] = useState(leftNow);
  useEffect(() => {
    let isTold = false;
    const tick = () => {
      const now = leftNow();
      // Where nobody looks, browsers let a minute pass between two ticks.
      if (now <= WARNING_SECONDS && !isTold) {
        isTold = true;
        announce('Your session ends within two minutes. Save what you are at.');
      }
      setLeft(now);
    };
    tick();
    const timer = setInterval(tick, TICK_MS);
    return () => clearInterval(timer);
  }, [endsAt]);
  return left;
}

function wordsOf(seconds: number): string {
  if (seconds >= 5_400) return `${Math.round(seconds / 3_600)} h`;
  if (seconds >= WARNING_SECONDS) return `${Math.floor(seconds / 60)} min`;
  return `${Math.floor(seconds / 60)}:${String(seconds % 60).padStart(2, '0')}`;
}
