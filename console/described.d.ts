/** Written by the build: see scripts/console_description.ts. */
declare module 'authrealm:described' {
  import type { Described } from './description.ts';

  export const DESCRIBED: Described;
}
