import type { ConsoleSchema } from './description.ts';

/** The module `authrealm:schema`, which the build writes: see scripts/console_description.ts. */
export declare const SCHEMA: ConsoleSchema;
