/** Which rows of a long list are drawn, and what becomes of the focus where that was on one that is drawn no more. */

/** The same for every row: see `.long-list li` in lists.css. */
export const ROW_PX = 52;
/** Rows drawn above and below what is seen. */
export const AROUND = 12;

/** A focused row would take the focus along when it goes: before that its list has it, so that keys go on moving that. */
export function keepFocus(list: HTMLElement): void {
  const row = document.activeElement?.closest('li');
  if (!row || !list.contains(row)) return;
  const passed = list.scrollTop - row.offsetTop;
  const far = (AROUND - 1) * ROW_PX;
  if (passed > far || -passed > list.clientHeight + far) list.focus({ preventScroll: true });
}
