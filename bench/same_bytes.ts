/** Headers with a value of their own in every response. */
const OWN_VALUE = /^(x-request-id|date): .*$/gim;
const COMPARED = 40;

/**
 * Asserts that two servers return the same bytes for the same requests, status line and headers included, but for the values
 * of X-Request-Id and Date. Compares the first paths of the load.
 */
export async function assertSameBytes(
  servers: readonly [{ readonly url: string }, { readonly url: string }],
  paths: readonly string[],
  token: string,
): Promise<void> {
  for (const path of paths.slice(0, COMPARED)) {
    const [ours, theirs] = await Promise.all(servers.map(({ url }) => responseText(url, path, token)));
    if (ours !== theirs) throw new Error(`the responses to ${path} differ:\n${ours}\n${theirs}`);
    if (!ours?.startsWith('HTTP/1.1 200 ')) throw new Error(`the response to ${path} is not 200: ${ours}`);
  }
}

/** The whole response as it is on the wire. */
async function responseText(url: string, path: string, token: string): Promise<string> {
  const { hostname, port } = new URL(url);
  const { promise, resolve, reject } = Promise.withResolvers<void>();
  const pieces: Buffer[] = [];
  const socket = await Bun.connect({
    hostname,
    port: Number(port),
    socket: {
      data: (_, bytes) => {
        pieces.push(Buffer.from(bytes));
      },
      close: () => resolve(),
      error: (_, error) => reject(error),
    },
  });
  // Host names no port, so that both servers receive the same bytes.
  socket.write(
    `GET ${path} HTTP/1.1\r\nHost: ${hostname}\r\nAuthorization: Bearer ${token}\r\nConnection: close\r\n\r\n`,
  );
  await promise;
  return Buffer.concat(pieces).toString().replace(OWN_VALUE, '$1: *');
}
