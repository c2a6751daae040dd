import type { ComponentChildren, ComponentType } from 'preact';
import { useEffect, useRef } from 'preact/hooks';
import { plainText } from '../parts/confusables.ts';
import { Icon, type IconName } from '../parts/icon.tsx';
import { UntrustedText } from '../parts/untrusted_text.tsx';
import type { Parameters } from './router.ts';

export interface PageProps {
  readonly parameters: Parameters;
}

export interface Page {
  /** Pattern of the fragment, such as `realms/:realm`. */
  readonly pattern: string;
  readonly Page: ComponentType<PageProps>;
  /** It reads a new query of the address itself; other pages begin again with it. */
  readonly followsQuery?: true;
  /** Its entry in the navigation, if it has one. */
  readonly nav?: {
    readonly label: string;
    readonly icon: IconName;
    /** The key after `g`. */
    readonly key: string;
    /** Shown if the session has one of these scopes. */
    readonly scopes: readonly string[];
  };
}

interface PageHeadProps {
  /** Heading and window title. */
  readonly title: string;
  /** Replaces the title in the heading if it needs markup. */
  readonly heading?: ComponentChildren;
  /** Parent pages, topmost first. */
  readonly breadcrumbs?: readonly { readonly label: ComponentChildren; readonly href: string }[];
  readonly actions?: ComponentChildren;
}

/** The head of a page. It receives the focus after a navigation. */
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
          {heading ?? <UntrustedText text={title} />}
        </h1>
        {actions && <div class="actions">{actions}</div>}
      </div>
    </header>
  );
}
