import { useEffect, useState } from 'preact/hooks';
import type { FeedView } from './feed.ts';

/** How it stands with the stream, in words. */
export function FollowingNote({ view }: { readonly view: FeedView }) {
  const { following, isPaused } = view;
  const left = useLeft(following.kind === 'retrying' ? following.seconds : 0, following);
  if (following.kind === 'live') {
    return (
      <p class="live" role="status">
        <span class={isPaused ? 'live-dot live-held' : 'live-dot'} />
        {isPaused ? 'Paused: what comes waits.' : 'Live'}
      </p>
    );
  }
  if (following.kind === 'opening') {
    return (
      <p class="live faint" role="status">
        <span class="live-dot live-off" />
        Connecting…
      </p>
    );
  }
  return (
    <p class="live" role="status">
      <span class="live-dot live-off" />
      <span>
        <strong>Not live.</strong> {following.why}{' '}
        {following.kind === 'retrying' ? (
          <span aria-hidden="true">{left > 0 ? `Trying again in ${left} s.` : 'Trying again…'}</span>
        ) : (
          'What is shown stays as it was.'
        )}
      </span>
    </p>
  );
}

const SECOND_MS = 1_000;

function useLeft(seconds: number, about: unknown): number {
  const [left, setLeft] = useState(seconds);
  useEffect(() => {
    setLeft(seconds);
    const timer = setInterval(() => setLeft((before) => Math.max(before - 1, 0)), SECOND_MS);
    return () => clearInterval(timer);
  }, [about]);
  return left;
}
