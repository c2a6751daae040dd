import { connect, createServer, type Socket } from 'node:net';
import { HOST } from './daemons.ts';

/** A network between a client and a server, which goes wrong as it is told. */
export interface TcpProxy {
  readonly port: number;
  /** Passes on nothing more, either way; what was said meanwhile is passed on after `resume`. New clients are accepted. */
  stall(): void;
  resume(): void;
  /** What is said arrives so much later. */
  delay(milliseconds: number): void;
  /** Ends every connection. */
  cut(): void;
  /** Later connections lead to this port. */
  redirectTo(port: number): void;
  /** Does this to the next connection of a client that says the word. Resolves then. */
  faultNext(word: string, fate: ConnectionFault): Promise<void>;
  stop(): void;
}

/**
 * Ends before the server hears the word; ends once the server has answered, and before the client hears that; or stays,
 * and the client never hears anything again.
 */
export type ConnectionFault = 'unheard' | 'unanswered' | 'silent';

interface Trap {
  readonly word: string;
  readonly fate: ConnectionFault;
  readonly sprung: () => void;
}

export async function startTcpProxy(target: number): Promise<TcpProxy> {
  const ends = new Set<Socket>();
  let port = target;
  let late = 0;
  let waiting: (() => void)[] | undefined;
  let trap: Trap | undefined;

  /** In order, because pieces of one direction wait equally long. */
  function pass(to: Socket, piece: Uint8Array): void {
    const write = () => void (to.destroyed || to.write(piece));
    if (waiting) waiting.push(write);
    else if (late > 0) setTimeout(write, late);
    else write();
  }

  const server = createServer((client) => {
    const engine = connect(port, HOST);
    let fate: ConnectionFault | undefined;
    const end = () => {
      client.destroy();
      engine.destroy();
    };
    for (const socket of [client, engine]) {
      ends.add(socket);
      socket.on('error', () => undefined);
      socket.on('close', () => {
        ends.delete(socket);
        end();
      });
    }
    client.on('data', (piece: Buffer) => {
      if (trap && piece.includes(trap.word)) {
        fate = trap.fate;
        engine.once(fate === 'unheard' ? 'close' : 'data', trap.sprung);
        trap = undefined;
      }
      if (fate === 'unheard') end();
      else pass(engine, piece);
    });
    engine.on('data', (piece: Buffer) => {
      if (fate === undefined) pass(client, piece);
      else if (fate === 'unanswered') end();
    });
  });
  await new Promise<void>((resolve) => server.listen(0, HOST, resolve));
  return {
    port: (server.address() as { port: number }).port,
    stall() {
      waiting ??= [];
    },
    resume() {
      const writes = waiting ?? [];
      waiting = undefined;
      for (const write of writes) write();
    },
    delay(milliseconds) {
      late = milliseconds;
    },
    cut() {
      for (const socket of ends) socket.destroy();
    },
    redirectTo(other) {
      port = other;
    },
    faultNext: (word, fate) =>
      new Promise((resolve) => {
        trap = { word, fate, sprung: resolve };
      }),
    stop() {
      for (const socket of ends) socket.destroy();
      server.close();
    },
  };
}
