import {
  type IpAddress,
  isInAny,
  type Network,
  parseIpAddress,
  parseNodeAddress,
} from '../../domain/ip_address.ts';
import { LIMITS } from '../../domain/limits.ts';

/** The address of the caller; undefined if the connection is closed or has none. */
export type CallerAddress = (headers: Headers, peer: string | undefined) => IpAddress | undefined;

/** The header in which a proxy names its peer. */
export type ForwardedHeader = 'x-forwarded-for' | 'forwarded';

/**
 * The address of the caller: the peer of the connection, or if that is a trusted proxy, the rightmost address of the header
 * that is not a trusted proxy. Addresses further left are not trustworthy. A missing or unreadable header leaves the peer address,
 * and is reported. The other header is ignored: proxies pass it on as the caller wrote it.
 */
export function openCallerAddress(
  trusted: readonly Network[],
  header: ForwardedHeader,
  onUnreadable: (proxy: IpAddress) => void = () => undefined,
): CallerAddress {
  const readNodes = header === 'forwarded' ? nodesOf : (list: string) => list.split(',');

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

  return (headers, peer) => {
    const address = peer === undefined ? undefined : parseIpAddress(withoutZone(peer));
    if (trusted.length === 0 || address === undefined || !isTrusted(address)) return address;
    const value = headers.get(header);
    const caller = value === null ? undefined : callerAmong(readNodes(value));
    if (caller === undefined) onUnreadable(address);
    return caller ?? address;
  };
}

/** Removes the zone of a link-local address, which names an interface of this host. */
function withoutZone(peer: string): string {
  const at = peer.indexOf('%');
  return at === -1 ? peer : peer.slice(0, at);
}

/** One pair (RFC 7239, 4) and its delimiter. */
const PAIR = /[ \t]*([\w!#$%&'*+.^`|~-]+)=(?:([\w!#$%&'*+.^`|~-]+)|"((?:[^"\\]|\\.)*)")[ \t]*([;,]|$)/y;

/**
 * The `for` value of each element of a Forwarded header, in order; empty for an element without one. A header that breaks
 * the grammar counts as one element without `for`.
 */
function nodesOf(header: string): readonly string[] {
  const nodes: string[] = [];
  let node: string | undefined;
  PAIR.lastIndex = 0;
  while (PAIR.lastIndex < header.length) {
    const [, name = '', token, quoted = '', end = ''] = PAIR.exec(header) ?? [];
    if (name === '') return [''];
    if (name.toLowerCase() === 'for') {
      if (node !== undefined) return [''];
      node = token ?? quoted.replace(/\\(.)/g, '$1');
    }
    if (end === ';' && PAIR.lastIndex < header.length) continue;
    nodes.push(node ?? '');
    node = undefined;
  }
  return nodes;
}
