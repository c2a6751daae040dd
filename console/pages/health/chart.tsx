import { useEffect, useRef, useState } from 'preact/hooks';
import { isDark, theme } from '../../layout/theme.tsx';
import { useObserved } from '../../observable.ts';
import type { Line, Plot } from './plot.ts';
import type { Sample } from './polling.ts';

export interface ChartLine extends Line {
  readonly read: (sample: Sample) => number | undefined;
}

interface ChartProps {
  readonly title: string;
  readonly lines: readonly ChartLine[];
  readonly samples: readonly Sample[];
  readonly format: (value: number) => string;
  /** What it means that there is no value. */
  readonly none: string;
}

/** Figures of the last minutes, drawn; who cannot see it has the newest of them in words. */
export function Chart({ title, lines, samples, format, none }: ChartProps) {
  const element = useRef<HTMLDivElement>(null);
  const drawn = usePlot(element, lines, format);
  useEffect(() => {
    drawn?.show([
      samples.map(({ at }) => at),
      ...lines.map(({ read }) => samples.map((sample) => read(sample) ?? null)),
    ]);
  }, [drawn, samples]);
  const newest = samples.at(-1);
  const said = lines.map(({ label, read }) => {
    const value = newest && read(newest);
    return { label, words: value === undefined ? none : format(value) };
  });
  return (
    <figure class="card chart">
      <figcaption>
        <h2>{title}</h2>
        <ul class="chart-lines">
          {said.map(({ label, words }, index) => (
            <li key={label}>
              <svg class={`chart-key ${lines[index]?.colour.slice(2)}`} viewBox="0 0 16 8" aria-hidden="true">
                <path d="M0 4h16" stroke-dasharray={lines[index]?.dash?.join(' ')} />
              </svg>
              {label} <strong>{words}</strong>
            </li>
          ))}
        </ul>
      </figcaption>
      <div ref={element} class="chart-plot" aria-hidden="true" />
    </figure>
  );
}

/** A chart is made anew where the colours of the page change. */
function usePlot(
  element: { readonly current: HTMLDivElement | null },
  lines: readonly ChartLine[],
  format: (value: number) => string,
): Plot | undefined {
  const [drawn, setDrawn] = useState<Plot>();
  const isNight = useNight();
  useEffect(() => {
    const into = element.current;
    if (!into) return;
    let made: Plot | undefined;
    let isOver = false;
    const watcher = new ResizeObserver(() => made?.resize(into.clientWidth));
    void import('./plot.ts').then(({ plot }) => {
      if (isOver) return;
      made = plot(into, lines, format);
      watcher.observe(into);
      setDrawn(made);
    });
    return () => {
      isOver = true;
      watcher.disconnect();
      made?.end();
      setDrawn(undefined);
    };
  }, [isNight]);
  return drawn;
}

function useNight(): boolean {
  const chosen = useObserved(theme);
  const [, draw] = useState(0);
  useEffect(() => {
    const query = matchMedia('(prefers-color-scheme: dark)');
    const hear = () => draw((count) => count + 1);
    query.addEventListener('change', hear);
    return () => query.removeEventListener('change', hear);
  }, []);
  return isDark(chosen);
}
