import {
  type IpAddress,
  isInAny,
  type Network,
  parseIpAddress,
  parseNodeAddress,
} from '../../model/ip_address.ts';
import { LIMITS } from '../../model/limits.ts';

/**
 * The address of the caller: the peer of the connection, or if that is a trusted proxy, the rightmost address of X-Forwarded-For
 * that is not a trusted proxy. Addresses further left are not trustworthy. A missing or unreadable header leaves the peer address,
 * and is reported. `Forwarded` is ignored: proxies pass it on as the caller wrote it. Undefined if the connection is closed or has
 * no address.
 */
export function openCallerAddress(
  trusted: readonly Network[],
  onUnreadable: (proxy: IpAddress) => void = () => undefined,
) {
  const isTrusted = (address: IpAddress) => isInAny(address, trusted);

  /** Undefined if a relevant entry is not an address, or there are too many. */
  function callerAmong(nodes: readonly string[]): IpAddress | undefined {
    const nearest = nodes.slice(-LIMITS.forwardedHopsMax).reverse();
    for (const [hop, node] of nearest.entries()) {
      const address = parseNodeAddress(node);
      const isLast = hop === nodes.length - 1;
      if (address === undefined || isLast || !isTrusted(address)) return address;
    }
    return undefined;
  }

  return (headers: Headers, peer: string | undefined): IpAddress | undefined => {
    // The zone of a link-local address names an interface of this host.
    const address = peer === undefined ? undefined : parseIpAddress(peer.replace(/%.*/, ''));
    if (trusted.length === 0 || address === undefined || !isTrusted(address)) return address;
    const value = headers.get('x-forwarded-for');
    const caller = value === null ? undefined : callerAmong(value.split(','));
    if (caller === undefined) onUnreadable(address);
    return caller ?? address;
  };
}
