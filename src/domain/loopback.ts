const LOOPBACK = /^(localhost|127(\.\d{1,3}){3}|::1|\[::1\])$/;

/**
 * Whether what is sent to this host stays on this machine. An IPv6 address may stand in brackets, as a URL has it. Other
 * spellings (127.1, 0x7f000001) are no loopback here; the parser of URLs makes them this one.
 */
export function isLoopbackHost(host: string): boolean {
  return LOOPBACK.test(host);
}
