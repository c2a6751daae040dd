import type { Page } from '../layout/page.tsx';
import { AccessPage } from './access/access_page.tsx';
import { ChangesPage } from './changes/changes_page.tsx';
import { ClientPage } from './clients/client_page.tsx';
import { ClientsPage } from './clients/clients_page.tsx';
import { FindPage } from './find/find_page.tsx';
import { HealthPage } from './health/health_page.tsx';
import { OidcProfilePage, PasswordProfilePage } from './realms/profile_page.tsx';
import { RealmPage, RealmsPage } from './realms/realm_pages.tsx';
import { SessionPage } from './session/session_page.tsx';
import { TransferPage } from './transfer/transfer_page.tsx';
import { TryPage } from './try/try_page.tsx';
import { UserPage } from './user/user_page.tsx';
import { UsersPage } from './users/users_page.tsx';
import { WebhookPage } from './webhooks/webhook_page.tsx';
import { WebhooksPage } from './webhooks/webhooks_page.tsx';

/** All pages: a row defines address, navigation entry and shortcut. */
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
  {
    pattern: 'users',
    Page: UsersPage,
    nav: { label: 'Users', icon: 'user', key: 'u', scopes: ['users:read'] },
  },
  {
    pattern: 'realms',
    Page: RealmsPage,
    nav: { label: 'Realms', icon: 'realms', key: 'r', scopes: ['realms:read'] },
  },
  { pattern: 'realms/:realm', Page: RealmPage },
  { pattern: 'realms/:realm/users', Page: UsersPage },
  { pattern: 'realms/:realm/users/:user', Page: UserPage },
  { pattern: 'realms/:realm/oidc-profiles/:profile', Page: OidcProfilePage },
  { pattern: 'realms/:realm/password-profiles/:profile', Page: PasswordProfilePage },
  {
    pattern: 'clients',
    Page: ClientsPage,
    nav: { label: 'Clients and keys', icon: 'clients', key: 'c', scopes: ['admin'] },
  },
  { pattern: 'clients/:client', Page: ClientPage },
  {
    pattern: 'access',
    Page: AccessPage,
    nav: { label: 'Access', icon: 'profile', key: 'a', scopes: ['admin'] },
  },
  {
    pattern: 'changes',
    Page: ChangesPage,
    followsQuery: true,
    nav: { label: 'Changes', icon: 'changes', key: 'e', scopes: ['changes:read'] },
  },
  {
    pattern: 'webhooks',
    Page: WebhooksPage,
    nav: { label: 'Webhooks', icon: 'webhook', key: 'w', scopes: ['admin'] },
  },
  { pattern: 'webhooks/:webhook', Page: WebhookPage },
  {
    pattern: 'health',
    Page: HealthPage,
    nav: { label: 'Health', icon: 'health', key: 'h', scopes: ['admin'] },
  },
  {
    pattern: 'transfer',
    Page: TransferPage,
    nav: { label: 'Import and export', icon: 'transfer', key: 'i', scopes: ['transfer'] },
  },
  { pattern: 'try/:operation', Page: TryPage },
  { pattern: 'session', Page: SessionPage },
];
