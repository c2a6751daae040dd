import { render } from 'preact';
import { DocsPage } from './docs/docs_page.tsx';
import { applyTheme } from './layout/theme.tsx';

applyTheme();

const root = document.getElementById('console');
if (root) {
  root.textContent = '';
  render(<DocsPage />, root);
}
