import { createServer, type Server, type Socket } from 'node:net';

/** A webhook target that receives nothing. */
export interface DeadTarget {
  readonly name: string;
  readonly url: string;
  /** How often it was reached so far; undefined where nobody can be there to count. */
  reached(): number | undefined;
  stop(): void;
}

/** One of each kind: nobody listens, it accepts and never answers, it answers a byte a second, its name leads nowhere. */
export async function deadTargets(): Promise<readonly DeadTarget[]> {
  const nobody = { reached: () => undefined, stop: () => undefined };
  return [
    { name: 'one that refuses', url: 'http://127.0.0.1:9/', ...nobody },
    await listening('one that never answers', () => undefined),
    await listening('one that trickles', trickle),
    // No name under it is ever given out (RFC 6761, 6.4).
    { name: 'one without an address', url: 'https://nobody.invalid/', ...nobody },
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
  if (address === null || typeof address === 'string') throw new Error('it listens on no port');
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
