import type { ComponentType } from 'preact';
import type { IconName } from '../parts/icon.tsx';
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
