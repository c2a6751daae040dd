import type { ComponentChildren, ComponentType } from 'preact';
import { useEffect, useRef } from 'preact/hooks';
import { plainText } from '../parts/confusables.ts';
import { Icon, type IconName } from '../parts/icon.tsx';
import type { Parameters } from './router.ts';

export interface PageProps {
  readonly parameters: Parameters;
}

export interface Page {
  /** Of the fragment: `realms/:realm`. */
  readonly pattern: string;
  readonly Page: ComponentType<PageProps>;
  /** Its place in the navigation, for pages that have one. */
  readonly nav?: {
    readonly label: string;
    readonly icon: IconName;
    /** After `g`. */
    readonly key: string;
    /** With one of these scopes the page has something to show. */
    readonly scopes: readonly string[];
  };
}

interface PageHeadProps {
  /** For the heading, and for the title of the window. */
  readonly title: string;
  /** In the place of the title, where that has more to it than words. */
  readonly heading?: ComponentChildren;
  /** Pages above this one, the highest first. */
  readonly breadcrumbs?: readonly { readonly label: ComponentChildren; readonly href: string }[];
  readonly actions?: ComponentChildren;
}

/** The top of a page. A new page begins here for who reads by keyboard or ear. */
export function PageHead({ title, heading, breadcrumbs = [], actions }: PageHeadProps) {
  const element = useRef<HTMLHeadingElement>(null);
  useEffect(() => {
    document.title = `${plainText(title)} · authrealm`;
  }, [title]);
  useEffect(() => {
    if (document.activeElement === document.body) element.current?.focus({ preventScroll: true });
  }, []);
  return (
    <header class="page-head">
      {breadcrumbs.length > 0 && (
        <nav aria-label="Breadcrumbs" class="crumbs">
          <ol>
            {breadcrumbs.map(({ label, href }) => (
              <li key={href}>
                <a href={href}>{label}</a>
                <Icon name="forward" />
              </li>
            ))}
          </ol>
        </nav>
      )}
      <div class="page-title">
        <h1 ref={element} tabIndex={-1}>
          {heading ?? title}
        </h1>
        {actions && <div class="actions">{actions}</div>}
      </div>
    </header>
  );
}
