import type { IpAddress } from '../../domain/ip_address.ts';
import type { RefusedAccess } from '../../domain/refused_access.ts';
import type { Call } from '../pipeline/call.ts';

/** Called with every call after it is answered. */
export type CallListener = (call: Call) => void;

/** Receives reports about calls. */
export interface CallReports {
  /** Reports that a client has used a token. */
  used(clientId: string): void;
  refused(
    caller: { readonly clientId: string | undefined; readonly address: IpAddress | undefined },
    reason: RefusedAccess,
  ): void;
}

export function openCallListener({ used, refused }: CallReports): CallListener {
  return (call) => {
    const { principal } = call;
    if (principal !== undefined) used(principal.clientId);
    if (call.refused !== undefined) {
      refused({ clientId: principal?.clientId, address: call.address() }, call.refused);
    }
  };
}
