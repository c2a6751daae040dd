import MiniSearch from 'minisearch';

/** The search and the copy buttons: the only parts of the site that need a script. */

interface Entry {
  readonly url: string;
  readonly title: string;
  readonly heading: string;
  readonly text: string;
  /** Factor of the score. */
  readonly weight: number;
}

declare global {
  var searchEntries: readonly Entry[] | undefined;
}

const RESULTS_MAX = 20;
const PARTS_OF_PAGE_MAX = 2;
const EXCERPT_CHARACTERS = 140;
/** Words that occur in every text, and are not searched. */
const STOP_WORDS = new Set(
  'a an and are by can do for from how i in is it my of on one or the to up what with'.split(' '),
);

const own = document.currentScript instanceof HTMLScriptElement ? document.currentScript.src : location.href;
const home = new URL('.', own).href;

startSearch();
document.addEventListener('click', ({ target }) => {
  const button = target instanceof Element ? target.closest<HTMLButtonElement>('.code-block > button') : null;
  if (button) void copy(button);
});

/** Copies the block, and shows that for a moment. */
async function copy(button: HTMLButtonElement): Promise<void> {
  const text = button.parentElement?.querySelector('pre')?.textContent ?? '';
  const isCopied = await navigator.clipboard?.writeText(text).then(
    () => true,
    () => false,
  );
  button.dataset.copied = isCopied ? 'Copied' : 'Not allowed';
  setTimeout(() => delete button.dataset.copied, 1_500);
}

function startSearch(): void {
  const input = document.querySelector<HTMLInputElement>('#search');
  const results = document.querySelector<HTMLElement>('#results');
  if (!input || !results) return;
  let index: Promise<MiniSearch<Entry>> | undefined;
  const openIndex = () => {
    index ??= loadIndex().catch((error) => {
      index = undefined;
      throw error;
    });
    return index;
  };
  const show = async () => {
    const term = input.value.trim();
    if (term === '') return results.replaceChildren();
    const found = search(await openIndex(), term);
    if (input.value.trim() === term) results.replaceChildren(...resultsOf(found.slice(0, RESULTS_MAX), term));
  };
  // What fails here is loaded again by the first letter.
  input.addEventListener('focus', () => void openIndex().catch(() => undefined));
  input.addEventListener('input', () => void show());
  document.addEventListener('keydown', (event) => {
    const isTyping = event.target instanceof HTMLInputElement;
    if (event.key === '/' && !isTyping) {
      event.preventDefault();
      input.focus();
    }
    if (event.key === 'Escape') results.replaceChildren();
  });
}

/** The entries are a script, because a page that was opened from a folder may not fetch. */
async function loadIndex(): Promise<MiniSearch<Entry>> {
  const script = document.createElement('script');
  script.src = `${home}search.js`;
  await new Promise((resolve, reject) => {
    script.addEventListener('load', resolve);
    script.addEventListener('error', reject);
    document.head.append(script);
  });
  const index = new MiniSearch<Entry>({
    ...{ idField: 'url', fields: ['title', 'heading', 'text'] },
    storeFields: ['title', 'heading', 'text', 'weight'],
    processTerm: (term) => (STOP_WORDS.has(term.toLowerCase()) ? null : term.toLowerCase()),
    searchOptions: {
      ...{ boost: { title: 4, heading: 6 }, prefix: true, fuzzy: 0.15 },
      boostDocument: (_url, _term, stored) => Number(stored?.weight ?? 1),
    },
  });
  index.addAll(globalThis.searchEntries ?? []);
  return index;
}

interface Found extends Entry {
  readonly id: string;
}

/** Parts with all words, or else with some; at most two of each page. */
function search(index: MiniSearch<Entry>, term: string): readonly Found[] {
  const withAll = index.search(term, { combineWith: 'AND' });
  const found = withAll.length > 0 ? withAll : index.search(term);
  const counts = new Map<string, number>();
  return (found as readonly object[] as readonly Found[]).filter(({ id }) => {
    const page = id.replace(/#.*/, '');
    const count = (counts.get(page) ?? 0) + 1;
    counts.set(page, count);
    return count <= PARTS_OF_PAGE_MAX;
  });
}

function resultsOf(found: readonly Found[], term: string): readonly Node[] {
  if (found.length === 0) return [element('p', 'No results.')];
  const list = document.createElement('ul');
  for (const result of found) {
    const link = document.createElement('a');
    link.href = home + result.id;
    link.append(element('strong', [result.title, result.heading].filter(Boolean).join(' › ')));
    link.append(element('span', excerptOf(result.text, term)));
    const item = document.createElement('li');
    item.append(link);
    list.append(item);
  }
  return [list];
}

function element(name: string, text: string): HTMLElement {
  const made = document.createElement(name);
  made.textContent = text;
  return made;
}

/** The text around the first word of the term. */
function excerptOf(text: string, term: string): string {
  const [word = ''] = term.toLowerCase().split(/\s+/);
  const at = Math.max(0, text.toLowerCase().indexOf(word) - EXCERPT_CHARACTERS / 3);
  const part = text.slice(at, at + EXCERPT_CHARACTERS);
  return `${at > 0 ? '…' : ''}${part}${at + EXCERPT_CHARACTERS < text.length ? '…' : ''}`;
}
