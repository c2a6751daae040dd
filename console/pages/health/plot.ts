import uPlot from 'uplot';

/** A line of a chart. */
export interface Line {
  readonly label: string;
  /** A variable of tokens.css. */
  readonly color: string;
  readonly dash?: readonly number[];
}

export interface Plot {
  /** Times in seconds since the epoch, then the values of each line; null is a gap. */
  show(data: readonly (readonly (number | null)[])[]): void;
  resize(width: number): void;
  end(): void;
}

const HEIGHT_PX = 200;
const FONT = '12px system-ui, sans-serif';

/** Draws a chart into an element, in the colours that the page has now. */
export function plot(into: HTMLElement, lines: readonly Line[], format: (value: number) => string): Plot {
  const style = getComputedStyle(into);
  const color = (name: string) => resolveColor(into, style.getPropertyValue(name));
  const grid = { stroke: color('--line'), width: 1 };
  const axis = { stroke: color('--ink-faint'), font: FONT, grid, ticks: { show: false } };
  const chart = new uPlot(
    {
      width: into.clientWidth,
      height: HEIGHT_PX,
      padding: [8, 30, 0, 0],
      legend: { show: false },
      cursor: { y: false, drag: { x: false, y: false }, points: { size: 7 } },
      scales: { y: { range: (_, __, maximum) => [0, maximum > 0 ? maximum * 1.15 : 1] } },
      axes: [
        { ...axis, space: 70, size: 30, values: (_, splits) => splits.map(clock) },
        { ...axis, size: 62, values: (_, splits) => splits.map(format) },
      ],
      series: [
        {},
        ...lines.map(({ label, color: name, dash }) => ({
          ...{ label, stroke: color(name), width: 2, points: { show: false } },
          ...(dash ? { dash: [...dash] } : {}),
        })),
      ],
    },
    [[], ...lines.map(() => [])],
    into,
  );
  return {
    show: (data) => chart.setData(data as unknown as uPlot.AlignedData),
    resize: (width) => chart.setSize({ width, height: HEIGHT_PX }),
    end: () => chart.destroy(),
  };
}

const TIME_FORMAT = new Intl.DateTimeFormat(undefined, { timeStyle: 'medium' });

function clock(seconds: number): string {
  return TIME_FORMAT.format(new Date(seconds * 1_000));
}

/** A canvas does not support light-dark(): an element resolves the color. */
function resolveColor(into: HTMLElement, value: string): string {
  const probe = document.createElement('span');
  probe.style.color = value;
  into.append(probe);
  const color = getComputedStyle(probe).color;
  probe.remove();
  return color;
}
