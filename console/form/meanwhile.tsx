import { type Compared, Side } from './comparison.tsx';
import type { Values } from './values.ts';

interface MeanwhileProps {
  readonly fields: readonly Compared[];
  readonly before: Values;
  readonly now: Values;
  /** Whether it is another version by now, whatever its fields say. */
  readonly isOther: boolean;
}

/** What somebody else has made of something since it was shown: to be seen before it is removed. */
export function Meanwhile({ fields, before, now, isOther }: MeanwhileProps) {
  const changed = fields.filter(({ name }) => before[name] !== now[name]);
  if (changed.length === 0 && !isOther) return null;
  return (
    <div class="stack" role="alert">
      <p>Somebody else has changed this since it was shown. It is not removed yet.</p>
      {changed.length === 0 && (
        <p>
          What has changed is not among its fields: something that belongs to it, a secret, or whether it is
          turned on. Look at its page again before you go on.
        </p>
      )}
      {changed.map(({ name, label }) => (
        <section key={name} class="comparison" aria-label={label}>
          <h3>{label}</h3>
          <dl class="facts">
            <Side label="When it was shown" value={before[name]} />
            <Side label="Now" value={now[name]} />
          </dl>
        </section>
      ))}
    </div>
  );
}
