import { type Figure, figures, type Load, median } from './load.ts';

export const whole = (value: number) => Math.round(value).toLocaleString('en');
/** A dash where one of the two was not measured. */
export const ratio = (value: number) => (Number.isNaN(value) ? '–' : value.toFixed(2));
export const milliseconds = (value: number) => value.toFixed(2);
export const micros = (value: number) => value.toFixed(1);

/** The median of a figure over the rounds; a dash where it was not measured. */
export function medianCell(
  loads: readonly Load[] | undefined,
  figure: Figure,
  format: (value: number) => string = whole,
): string {
  const value = median(figures(loads, figure));
  return Number.isNaN(value) ? '–' : format(value);
}

/** The median of a figure, its least and its greatest value over the rounds. */
export function spreadCell(
  loads: readonly Load[] | undefined,
  figure: Figure,
  format: (value: number) => string = whole,
): string {
  const values = figures(loads, figure);
  if (values.length === 0 || values.some(Number.isNaN)) return '–';
  return `${format(median(values))} (${format(Math.min(...values))}–${format(Math.max(...values))})`;
}

/** Where and how a run was measured on cores that `sharers` shared. */
export function sharedMachineNote(
  {
    machine,
    rounds,
    seconds,
    at,
  }: {
    readonly machine: { readonly cpu: string; readonly cores: number };
    readonly rounds: number;
    readonly seconds: number;
    readonly at: string;
  },
  sharers: string,
): string {
  return (
    `${machine.cpu}, ${machine.cores} cores, shared by ${sharers}; medians of ${rounds} rounds of ${seconds} s; ` +
    `${at.slice(0, 10)}.`
  );
}

/** A table whose first column is text and whose other columns are figures. */
export function markdownTable(head: readonly string[], rows: readonly (readonly string[])[]): string {
  const line = (cells: readonly string[]) => `| ${cells.join(' | ')} |`;
  const rule = head.map((_, column) => (column === 0 ? '---' : '---:'));
  return `${[head, rule, ...rows].map(line).join('\n')}\n`;
}
