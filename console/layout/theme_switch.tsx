import { useObserved } from '../observable.ts';
import { Icon } from '../parts/icon.tsx';
import { chooseTheme, isDark, theme } from './theme.ts';

/** The other of light and dark, kept for this browser. */
export function ThemeSwitch() {
  const other = isDark(useObserved(theme)) ? 'light' : 'dark';
  return (
    <button type="button" class="text-button" onClick={() => chooseTheme(other)}>
      <Icon name={other} /> {other === 'light' ? 'Light' : 'Dark'}
    </button>
  );
}
