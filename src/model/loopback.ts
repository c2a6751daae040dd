const LOOPBACK = /^(localhost|127(\.\d{1,3}){3}|::1|\[::1\])$/;

/**
 * Whether this host is this machine. An IPv6 address may have the brackets of a URL. Other spellings (127.1, 0x7f000001)
 * do not count; the URL parser normalises them.
 */
export function isLoopbackHost(host: string): boolean {
  return LOOPBACK.test(host);
}
