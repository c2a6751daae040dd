import type { Store } from '../../directory/store.ts';
import { RESOURCES } from '../../domain/resources.ts';
import type { Operation } from '../pipeline/operation.ts';
import type { RecordDeps } from '../pipeline/pipeline.ts';
import { ACCOUNT_MEMBER_OPERATIONS } from './account_members.ts';
import { CREATE_ACCOUNT_TOKENS } from './account_tokens.ts';
import type { AdminDeps } from './admin/operation.ts';
import { ADMIN_OPERATIONS } from './admin/operations.ts';
import { WRITE_BATCH } from './batch.ts';
import { FEED_OPERATIONS, type FeedDeps } from './changes.ts';
import { OAUTH_OPERATIONS } from './oauth.ts';
import type { OAuthDeps } from './oauth_form.ts';
import { CHECK_PASSWORD } from './password_checks.ts';
import type { SignInDeps } from './password_request.ts';
import type { ServiceDeps } from './readiness.ts';
import { operationsOf } from './resources.ts';
import { SERVICE_OPERATIONS } from './service.ts';
import { SETTINGS_OPERATIONS } from './settings_table.ts';
import { SIGN_IN_THROTTLE_OPERATIONS } from './sign_in_throttle.ts';

/** The dependencies of all operations. */
export interface ApiDeps extends RecordDeps, FeedDeps, OAuthDeps, ServiceDeps, AdminDeps, SignInDeps {
  readonly store: Store;
}

/** Every operation of the API, in the order of its document; except those of the console. */
export const OPERATIONS: readonly Operation<ApiDeps>[] = [
  ...RESOURCES.flatMap(operationsOf),
  CHECK_PASSWORD,
  ...SIGN_IN_THROTTLE_OPERATIONS,
  WRITE_BATCH,
  ...SETTINGS_OPERATIONS,
  ...ACCOUNT_MEMBER_OPERATIONS,
  CREATE_ACCOUNT_TOKENS,
  ...FEED_OPERATIONS,
  ...OAUTH_OPERATIONS,
  ...SERVICE_OPERATIONS,
  ...ADMIN_OPERATIONS,
];
