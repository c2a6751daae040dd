import { ACCOUNT_MEMBER_OPERATIONS } from '../../compat/account_members.ts';
import { CREATE_ACCOUNT_TOKENS } from '../../compat/account_tokens.ts';
import { CALLBACK_OPERATIONS, LOGIN_OPERATIONS } from '../../compat/oidc_browser.ts';
import { SETTINGS_OPERATIONS } from '../../compat/settings_table.ts';
import type { AdminDeps } from '../../http/operations/admin/operation.ts';
import { ADMIN_OPERATIONS } from '../../http/operations/admin/operations.ts';
import { WRITE_BATCH } from '../../http/operations/batch.ts';
import { FEED_OPERATIONS, type FeedDeps } from '../../http/operations/changes.ts';
import { OAUTH_OPERATIONS } from '../../http/operations/oauth.ts';
import type { OAuthDeps } from '../../http/operations/oauth_form.ts';
import { CHECK_ID_TOKEN } from '../../http/operations/oidc_checks.ts';
import type { OidcDeps } from '../../http/operations/oidc_request.ts';
import { CHECK_PASSWORD } from '../../http/operations/password_checks.ts';
import type { ServiceDeps } from '../../http/operations/readiness.ts';
import { operationsOf } from '../../http/operations/resources.ts';
import { SERVICE_OPERATIONS } from '../../http/operations/service.ts';
import { USER_SIGN_IN_OPERATIONS } from '../../http/operations/user_sign_ins.ts';
import type { Operation } from '../../http/pipeline/operation.ts';
import { RESOURCES } from '../../model/resources.ts';
import type { Store } from '../../model/store.ts';

/** The dependencies of all operations. */
export interface ApiDeps extends OidcDeps, FeedDeps, OAuthDeps, ServiceDeps, AdminDeps {
  readonly store: Store;
}

/** Every operation of the API, in the order of its document; except those of the console. */
export const OPERATIONS: readonly Operation<ApiDeps>[] = [
  ...RESOURCES.flatMap(operationsOf),
  CHECK_PASSWORD,
  CHECK_ID_TOKEN,
  ...USER_SIGN_IN_OPERATIONS,
  WRITE_BATCH,
  ...SETTINGS_OPERATIONS,
  ...ACCOUNT_MEMBER_OPERATIONS,
  CREATE_ACCOUNT_TOKENS,
  ...LOGIN_OPERATIONS,
  ...CALLBACK_OPERATIONS,
  ...FEED_OPERATIONS,
  ...OAUTH_OPERATIONS,
  ...SERVICE_OPERATIONS,
  ...ADMIN_OPERATIONS,
];
