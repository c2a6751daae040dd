import MiniSearch from 'minisearch';

/** The search and the copy buttons: the only parts of the site that need a script. */

interface Entry {
  readonly url: string;
  readonly title: string;
  readonly heading: string;
  readonly text: string;
}

declare global {
  var searchEntries: readonly Entry[] | undefined;
}

const RESULTS_MAX = 20;
const EXCERPT_CHARACTERS = 140;

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
  const show = async () => {
    const term = input.value.trim();
    if (term === '') return results.replaceChildren();
    index ??= loadIndex();
    const found = (await index).search(term);
    if (input.value.trim() === term) results.replaceChildren(...resultsOf(found.slice(0, RESULTS_MAX), term));
  };
  input.addEventListener('focus', () => {
    index ??= loadIndex();
  });
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
    ...{ idField: 'url', fields: ['title', 'heading', 'text'], storeFields: ['title', 'heading', 'text'] },
    searchOptions: { boost: { title: 3, heading: 2 }, prefix: true, fuzzy: 0.15, combineWith: 'AND' },
  });
  index.addAll(globalThis.searchEntries ?? []);
  return index;
}

function resultsOf(found: readonly object[], term: string): readonly Node[] {
  if (found.length === 0) return [element('p', 'No results.')];
  const list = document.createElement('ul');
  for (const result of found as readonly (Entry & { readonly id: string })[]) {
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
