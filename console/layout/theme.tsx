import { observable, useObservable } from '../observable.ts';
import { Icon } from '../parts/icon.tsx';

/** `system` follows the operating system. */
type Theme = 'system' | 'light' | 'dark';

const NAME = 'authrealm.theme';
const THEMES: readonly Theme[] = ['system', 'light', 'dark'];

const theme = observable<Theme>(readTheme());

function readTheme(): Theme {
  const stored = localStorage.getItem(NAME);
  return THEMES.find((each) => each === stored) ?? 'system';
}

function chooseTheme(chosen: Theme): void {
  localStorage.setItem(NAME, chosen);
  theme.set(chosen);
}

export function applyTheme(): void {
  const apply = (chosen: Theme) => {
    document.documentElement.dataset.theme = chosen;
  };
  apply(theme.get());
  theme.subscribe(apply);
}

function isDark(chosen: Theme): boolean {
  return chosen === 'dark' || (chosen === 'system' && matchMedia('(prefers-color-scheme: dark)').matches);
}

/** Switches between light and dark; stored in this browser. */
export function ThemeSwitch() {
  const other = isDark(useObservable(theme)) ? 'light' : 'dark';
  return (
    <button type="button" class="text-button" onClick={() => chooseTheme(other)}>
      <Icon name={other} /> {other === 'light' ? 'Light' : 'Dark'}
    </button>
  );
}
