import type { Operation } from '../../pipeline/operation.ts';
import { CLIENT_OPERATIONS } from './clients.ts';
import { CONSOLE_ACCESS_OPERATIONS } from './console_access.ts';
import { DELIVERY_OPERATIONS, TEST_WEBHOOK_OPERATION } from './deliveries.ts';
import { LOG_OPERATIONS } from './log.ts';
import { METRICS_OPERATIONS } from './metrics.ts';
import type { AdminDeps } from './operation.ts';
import { PERSON_OPERATIONS } from './persons.ts';
import { SIGNING_KEY_OPERATIONS } from './signing_keys.ts';
import { TRANSFER_OPERATIONS } from './transfer.ts';
import { WEBHOOK_OPERATIONS } from './webhooks.ts';

/** Operations that the command line performs in its own process. */
export const LOCAL_OPERATIONS = [
  ...CLIENT_OPERATIONS,
  ...SIGNING_KEY_OPERATIONS,
  ...WEBHOOK_OPERATIONS,
  ...DELIVERY_OPERATIONS,
];

/** Every administrative operation. */
export const ADMIN_OPERATIONS: readonly Operation<AdminDeps>[] = [
  ...LOCAL_OPERATIONS,
  TEST_WEBHOOK_OPERATION,
  ...CONSOLE_ACCESS_OPERATIONS,
  ...LOG_OPERATIONS,
  ...PERSON_OPERATIONS,
  ...METRICS_OPERATIONS,
  ...TRANSFER_OPERATIONS,
];
