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
    caller: {
      readonly clientId: string | undefined;
      /** The existing client whose credentials were rejected. */
      readonly target: string | undefined;
      readonly address: IpAddress | undefined;
    },
    reason: RefusedAccess,
  ): void;
}

export function openCallListener({ used, refused }: CallReports): CallListener {
  return (call) => {
    const { principal } = call;
    if (principal !== undefined) used(principal.clientId);
    if (call.refused !== undefined) {
      const isRejected = call.refused === 'bad credentials';
      const clientId = principal?.clientId ?? (isRejected ? undefined : call.client);
      const target = isRejected ? call.client : undefined;
      refused({ clientId, target, address: call.address() }, call.refused);
    }
  };
}
