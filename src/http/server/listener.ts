import type { IpAddress } from '../../domain/ip_address.ts';
import type { RefusedAccess } from '../../domain/refused_access.ts';
import type { Call } from '../pipeline/call.ts';

/** Called with every call after it is answered. */
export type CallListener = (call: Call) => void;

/** Receives reports about calls. */
export interface CallReports {
  /** Reports that a client has used a token by its secret. */
  used(clientId: string): void;
  refused(
    caller: {
      readonly clientId: string | undefined;
      /** The existing client whose credentials were rejected, or whose ID alone was not enough. */
      readonly target: string | undefined;
      readonly address: IpAddress | undefined;
    },
    reason: RefusedAccess,
  ): void;
}

export function openCallListener({ used, refused }: CallReports): CallListener {
  return (call) => {
    const { principal } = call;
    if (principal !== undefined && !principal.implicit) used(principal.clientId);
    if (call.refused !== undefined) {
      const named = principal?.clientId ?? call.client;
      // An ID alone is no credential, because every caller can know it.
      const isAuthenticated = call.refused !== 'bad credentials' && !principal?.implicit;
      const [clientId, target] = isAuthenticated ? [named, undefined] : [undefined, named];
      refused({ clientId, target, address: call.address() }, call.refused);
    }
  };
}
