import type { Page } from '../layout/page.ts';
import { FindPage } from './find/find_page.tsx';

/** Every page there is: one row makes its address, its place in the navigation and its key. */
export const PAGES: readonly Page[] = [
  {
    pattern: '',
    Page: FindPage,
    nav: {
      label: 'Find',
      icon: 'find',
      key: 'f',
      scopes: ['users:read', 'oidc-profile-infos:read', 'password-profile-infos:read'],
    },
  },
];
