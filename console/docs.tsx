import { render } from 'preact';
import { DocsPage } from './docs/docs_page.tsx';
import { applyTheme } from './layout/theme.ts';

applyTheme();

const root = document.getElementById('console');
if (root) {
  root.textContent = '';
  render(<DocsPage />, root);
}
