import type { RefusedCaller } from '../../audit/refused_access_log.ts';
import type { RefusedAccess } from '../../domain/refused_access.ts';
import type { Call } from '../pipeline/call.ts';

/** Called with every call before its response is sent, which waits for the promise. */
export type CallListener = (call: Call) => Promise<void> | undefined;

/** Receives reports about calls. */
interface CallReports {
  /** Reports that a client has used a token by its secret. */
  used(clientId: string): void;
  refused(caller: RefusedCaller, reason: RefusedAccess): Promise<void> | undefined;
}

export function openCallListener({ used, refused }: CallReports): CallListener {
  return (call) => {
    const { principal } = call;
    if (principal !== undefined && !principal.implicit) used(principal.clientId);
    if (call.refused === undefined) return undefined;
    const named = principal?.clientId ?? call.client;
    // An ID alone is no credential, because every caller can know it.
    const isAuthenticated = call.refused !== 'bad credentials' && !principal?.implicit;
    const [clientId, target] = isAuthenticated ? [named, undefined] : [undefined, named];
    return refused({ clientId, target, address: call.address() }, call.refused);
  };
}
