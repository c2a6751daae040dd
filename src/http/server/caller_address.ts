import { type IpAddress, isWithin, type Network, parseIpAddress } from '../../domain/ip_address.ts';
import { LIMITS } from '../../domain/limits.ts';

/** Whose address a request comes from; undefined where the connection is gone, or has none. */
export type CallerAddress = (headers: Headers, peer: string | undefined) => IpAddress | undefined;

/** The header that a proxy names its peer in. */
export type ForwardedHeader = 'x-forwarded-for' | 'forwarded';

/**
 * The address of a caller: that of its connection, unless it is a trusted proxy's. Then each proxy has named the peer
 * that it saw, the last one rightmost, and the first of them from the right that is no trusted proxy itself is the
 * caller: what stands left of it may be anybody's invention. What cannot be read leaves the connection's address.
 * The other header is not looked at: a proxy passes it on as the caller wrote it.
 */
export function openCallerAddress(trusted: readonly Network[], header: ForwardedHeader): CallerAddress {
  const readNodes = header === 'forwarded' ? nodesOf : (list: string) => list.split(',');

  const isTrusted = (address: IpAddress) => trusted.some((network) => isWithin(address, network));

  /** Undefined where a name that counts is no address, or there are too many. */
  function callerAmong(nodes: readonly string[]): IpAddress | undefined {
    const nearest = nodes.slice(-LIMITS.forwardedHopsMax).reverse();
    for (const [hop, node] of nearest.entries()) {
      const address = addressOfNode(node);
      const isLast = hop === nodes.length - 1;
      if (address === undefined || isLast || !isTrusted(address)) return address;
    }
    return undefined;
  }

  return (headers, peer) => {
    const address = peer === undefined ? undefined : parseIpAddress(withoutZone(peer));
    if (trusted.length === 0 || address === undefined || !isTrusted(address)) return address;
    const said = headers.get(header);
    return said === null ? address : (callerAmong(readNodes(said)) ?? address);
  };
}

/** The zone of a link-local peer names an interface of this host. */
function withoutZone(peer: string): string {
  const at = peer.indexOf('%');
  return at === -1 ? peer : peer.slice(0, at);
}

/** An address as a proxy writes it: an IPv6 one often in brackets, either perhaps with a port. */
function addressOfNode(node: string): IpAddress | undefined {
  const [, bracketed, dotted] = /^(?:\[([^\]]*)\]|([\d.]+))(?::\d{1,5})?$/.exec(node.trim()) ?? [];
  return parseIpAddress(bracketed ?? dotted ?? node.trim());
}

/** One pair of RFC 7239, 4, and what ends it. */
const PAIR = /[ \t]*([\w!#$%&'*+.^`|~-]+)=(?:([\w!#$%&'*+.^`|~-]+)|"((?:[^"\\]|\\.)*)")[ \t]*([;,]|$)/y;

/**
 * Whom each element of a Forwarded header is for, in their order; an empty text for one that does not say. A header
 * that is not as the grammar has it is one element that does not.
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
