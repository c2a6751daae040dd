/** The place in a list to which Back returns. The entry of its page in the history holds it. */
interface Place {
  /** The link that was followed. */
  readonly link: string;
  /** The label of its list, and how many rows were read. */
  readonly list: string | null;
  readonly rows: number;
}

const currentPlace = (): Place | null => history.state;

addEventListener(
  'click',
  ({ target, ctrlKey, metaKey, shiftKey }) => {
    // With one of these keys the link opens in another tab or window.
    if (ctrlKey || metaKey || shiftKey || !(target instanceof Element)) return;
    const link = target.closest('li a')?.getAttribute('href');
    const list = target.closest('main ul');
    if (!list || !link) return;
    const place: Place = { link, list: list.ariaLabel, rows: list.childElementCount };
    history.replaceState(place, '');
  },
  { capture: true },
);

/** How many rows of this list to read, so that the place to return to is among them. */
export function rowsToPlace(label: string): number {
  const place = currentPlace();
  return place?.list === label ? place.rows : 0;
}

/** Moves to the row whose link was followed from this page, once. */
export function returnToPlace(list: Element | null): void {
  const place = currentPlace();
  const row = place && list?.querySelector<HTMLElement>(`a[href="${CSS.escape(place.link)}"]`);
  if (!row) return;
  history.replaceState(null, '');
  row.focus();
  row.scrollIntoView({ block: 'center' });
}
