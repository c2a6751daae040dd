import type { ComponentChildren } from 'preact';
import { useEffect, useMemo, useRef, useState } from 'preact/hooks';
import { useObservable } from '../observable.ts';
import { Announcer } from '../parts/announcer.tsx';
import { Icon } from '../parts/icon.tsx';
import { KeysDialog, type Shortcut, useKeys, useShortcuts } from './keys.tsx';
import { currentRoute } from './router.ts';
import { ThemeSwitch } from './theme.tsx';

interface ShellProps {
  /** Name next to the logo. */
  readonly name: string;
  readonly look?: 'docs';
  /** Shortcuts in addition to `?`. */
  readonly shortcuts: readonly Shortcut[];
  /** Links of the menu. */
  readonly navigation: ComponentChildren;
  /** Content at the foot of the menu: above its tools, and after them. */
  readonly foot?: ComponentChildren;
  readonly lastTool: ComponentChildren;
  readonly children: ComponentChildren;
}

/** The frame of a page: skip link, menu and shortcuts. */
export function Shell({ name, look, shortcuts, navigation, foot, lastTool, children }: ShellProps) {
  const route = useObservable(currentRoute);
  const main = useRef<HTMLElement>(null);
  const [isMenuOpen, setMenuOpen] = useState(false);
  const [areKeysShown, setKeysShown] = useState(false);
  const showKeys = () => setKeysShown(true);
  useKeys();
  useShortcuts(
    useMemo(
      () => [{ keys: '?', label: 'Show keyboard shortcuts', run: showKeys }, ...shortcuts],
      [shortcuts],
    ),
  );
  useEffect(() => setMenuOpen(false), [route]);
  return (
    <div class={['layout', look, isMenuOpen && 'menu-open'].filter(Boolean).join(' ')}>
      <button type="button" class="skip" onClick={() => main.current?.focus()}>
        Skip to content
      </button>
      <header class="bar">
        <a class="brand" href="#/">
          <Brand /> {name}
        </a>
        <button
          type="button"
          class="icon-button menu-button"
          aria-expanded={isMenuOpen}
          aria-controls="menu"
          aria-label="Menu"
          onClick={() => setMenuOpen(!isMenuOpen)}
        >
          <Icon name={isMenuOpen ? 'close' : 'menu'} />
        </button>
        <div id="menu" class="menu">
          {navigation}
          <div class="menu-foot">
            {foot}
            <div class="menu-tools">
              <ThemeSwitch />
              <button type="button" class="text-button" onClick={showKeys}>
                <Icon name="keys" /> Shortcuts
              </button>
              {lastTool}
            </div>
          </div>
        </div>
      </header>
      <main ref={main} id="main" class="main" tabIndex={-1}>
        {children}
      </main>
      <Announcer />
      {areKeysShown && <KeysDialog onClose={() => setKeysShown(false)} />}
    </div>
  );
}

/** The logo. */
export function Brand() {
  return (
    <svg class="brand-mark" viewBox="0 0 24 24" width="26" height="26" aria-hidden="true" focusable="false">
      <rect width="24" height="24" rx="6" />
      <g>
        <circle cx="7" cy="12" r="2.5" />
        <circle cx="17" cy="7" r="2.5" />
        <circle cx="17" cy="17" r="2.5" />
        <path d="m9.3 10.9 5.4-2.8M9.3 13.1l5.4 2.8" />
      </g>
    </svg>
  );
}
