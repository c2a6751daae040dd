import { RESOURCES } from '../domain/resources.ts';
import type { AdminHouse } from './admin/operation.ts';
import { ADMIN_OPERATIONS } from './admin/routes.ts';
import type { FeedRooms } from './changes.ts';
import { FEED_OPERATIONS } from './feed_operations.ts';
import { OAUTH_OPERATIONS, type OAuthDeps } from './oauth.ts';
import type { Operation } from './operation.ts';
import { operationsOf, type ResourceDeps } from './resource_operations.ts';
import { SERVICE_OPERATIONS, type ServiceDeps } from './service_operations.ts';

/** What the operations of the API are built from. */
export interface ApiDeps extends ResourceDeps, FeedRooms, OAuthDeps, ServiceDeps, AdminHouse {
  readonly store: ResourceDeps['store'] & FeedRooms['store'] & ServiceDeps['store'] & AdminHouse['store'];
}

/** Every operation of the API, in the order of its document; those of the console stand by themselves. */
export const OPERATIONS: readonly Operation<ApiDeps>[] = [
  ...RESOURCES.flatMap(operationsOf),
  ...FEED_OPERATIONS,
  ...OAUTH_OPERATIONS,
  ...SERVICE_OPERATIONS,
  ...ADMIN_OPERATIONS,
];
