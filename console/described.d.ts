import type { Described } from './description.ts';

/** The module `authrealm:described`, which the build writes: see scripts/console_description.ts. */
export declare const DESCRIBED: Described;
