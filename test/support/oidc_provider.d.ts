/** The part of oidc-provider that the suites use; the package comes without types. */
declare module 'oidc-provider' {
  import type { RequestListener } from 'node:http';

  export class Provider {
    constructor(issuer: string, configuration?: object);
    callback(): RequestListener;
  }
}
