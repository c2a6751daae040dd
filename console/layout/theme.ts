import { observable } from '../observable.ts';

/** `system` follows what the machine says. */
export type Theme = 'system' | 'light' | 'dark';

const NAME = 'authrealm.theme';
const THEMES: readonly Theme[] = ['system', 'light', 'dark'];

export const theme = observable<Theme>(readTheme());

function readTheme(): Theme {
  const kept = localStorage.getItem(NAME);
  return THEMES.find((each) => each === kept) ?? 'system';
}

export function chooseTheme(chosen: Theme): void {
  localStorage.setItem(NAME, chosen);
  theme.set(chosen);
}

export function applyTheme(): void {
  const apply = (chosen: Theme) => {
    document.documentElement.dataset.theme = chosen;
  };
  apply(theme.get());
  theme.follow(apply);
}

export function isDark(chosen: Theme): boolean {
  return chosen === 'dark' || (chosen === 'system' && matchMedia('(prefers-color-scheme: dark)').matches);
}
