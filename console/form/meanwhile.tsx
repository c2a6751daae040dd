import { type Compared, Side } from './comparison.tsx';
import type { Values } from './values.ts';

interface MeanwhileProps {
  readonly fields: readonly Compared[];
  readonly before: Values;
  readonly now: Values;
}

/** What somebody else has made of something since it was shown: to be seen before it is removed. */
export function Meanwhile({ fields, before, now }: MeanwhileProps) {
  const changed = fields.filter(({ name }) => before[name] !== now[name]);
  if (changed.length === 0) return null;
  return (
    <div class="stack" role="alert">
      <p>Somebody else has changed this since it was shown. It is not removed yet.</p>
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
