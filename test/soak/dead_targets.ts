import { createServer, type Server, type Socket } from 'node:net';

/** A webhook target that receives nothing. */
export interface DeadTarget {
  readonly name: string;
  readonly url: string;
  /** Number of connections so far; undefined for a target that cannot count them. */
  reached(): number | undefined;
  stop(): void;
}

/** One of each kind: refused connections, no response, a response of one byte a second, a name without address. */
export async function deadTargets(): Promise<readonly DeadTarget[]> {
  const unreachable = { reached: () => undefined, stop: () => undefined };
  return [
    { name: 'a target that refuses connections', url: 'http://127.0.0.1:9/', ...unreachable },
    await listening('a target that never responds', () => undefined),
    await listening('a target that sends a byte a second', trickle),
    // Names under .invalid never resolve (RFC 6761, 6.4).
    { name: 'a target without an address', url: 'https://nobody.invalid/', ...unreachable },
  ];
}

async function listening(name: string, serve: (socket: Socket) => void): Promise<DeadTarget> {
  const sockets = new Set<Socket>();
  let count = 0;
  const server = createServer((socket) => {
    count += 1;
    sockets.add(socket);
    socket.on('close', () => sockets.delete(socket));
    socket.on('error', () => socket.destroy());
    socket.resume();
    serve(socket);
  });
  const { promise, resolve } = Promise.withResolvers<void>();
  server.listen(0, '127.0.0.1', resolve);
  await promise;
  return {
    name,
    url: `http://127.0.0.1:${portOf(server)}/`,
    reached: () => count,
    stop() {
      for (const socket of sockets) socket.destroy();
      server.close();
    },
  };
}

function portOf(server: Server): number {
  const address = server.address();
  if (address === null || typeof address === 'string') throw new Error('the server has no port');
  return address.port;
}

const ANSWER = `HTTP/1.1 200 OK\r\nContent-Length: 2\r\nX-Slow: ${'x'.repeat(1_000)}\r\n\r\nok`;

function trickle(socket: Socket): void {
  let at = 0;
  const timer = setInterval(() => {
    if (socket.destroyed) return clearInterval(timer);
    socket.write(ANSWER[at] ?? '');
    at += 1;
  }, 1_000);
}
