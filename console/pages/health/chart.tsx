import { useEffect, useRef, useState } from 'preact/hooks';
import { isDark, theme } from '../../layout/theme.tsx';
import { useObservable } from '../../observable.ts';
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
  /** Text for a missing value. */
  readonly none: string;
}

/** A chart of the last hour; its legend has the latest values as text. */
export function Chart({ title, lines, samples, format, none }: ChartProps) {
  const element = useRef<HTMLDivElement>(null);
  const chart = usePlot(element, lines, format);
  useEffect(() => {
    chart?.show([
      samples.map(({ at }) => at),
      ...lines.map(({ read }) => samples.map((sample) => read(sample) ?? null)),
    ]);
  }, [chart, samples]);
  const newest = samples.at(-1);
  const latest = lines.map(({ label, read }) => {
    const value = newest && read(newest);
    return { label, words: value === undefined ? none : format(value) };
  });
  return (
    <figure class="card chart">
      <figcaption>
        <h2>{title}</h2>
        <ul class="chart-lines">
          {latest.map(({ label, words }, index) => (
            <li key={label}>
              <svg class={`chart-key ${lines[index]?.color.slice(2)}`} viewBox="0 0 16 8" aria-hidden="true">
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

/** Recreates the chart when the theme changes. */
function usePlot(
  element: { readonly current: HTMLDivElement | null },
  lines: readonly ChartLine[],
  format: (value: number) => string,
): Plot | undefined {
  const [chart, setDrawn] = useState<Plot>();
  const isDarkMode = useDarkMode();
  useEffect(() => {
    const into = element.current;
    if (!into) return;
    let created: Plot | undefined;
    let isOver = false;
    const watcher = new ResizeObserver(() => created?.resize(into.clientWidth));
    replaceInvalidNavigatorLanguage();
    void import('./plot.ts').then(({ plot }) => {
      if (isOver) return;
      created = plot(into, lines, format);
      watcher.observe(into);
      setDrawn(created);
    });
    return () => {
      isOver = true;
      watcher.disconnect();
      created?.end();
      setDrawn(undefined);
    };
  }, [isDarkMode]);
  return chart;
}

/**
 * uPlot passes the language of the browser to `Intl` while it loads. Under LANG=C Chromium calls it `en-US@posix`, which `Intl`
 * rejects.
 */
function replaceInvalidNavigatorLanguage(): void {
  try {
    new Intl.NumberFormat(navigator.language);
  } catch {
    const { locale } = new Intl.NumberFormat().resolvedOptions();
    Object.defineProperty(navigator, 'language', { value: locale, configurable: true });
  }
}

function useDarkMode(): boolean {
  const chosen = useObservable(theme);
  const [, draw] = useState(0);
  useEffect(() => {
    const query = matchMedia('(prefers-color-scheme: dark)');
    const listener = () => draw((count) => count + 1);
    query.addEventListener('change', listener);
    return () => query.removeEventListener('change', listener);
  }, []);
  return isDark(chosen);
}
