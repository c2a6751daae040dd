import { connect, createServer, type Socket } from 'node:net';
import { HOST } from './daemons.ts';
import { atEnd } from './ending.ts';

/** A TCP proxy between client and server that injects faults. */
export interface TcpProxy {
  readonly port: number;
  /** Holds back data in both directions until `resume`. New clients are accepted. */
  stall(): void;
  resume(): void;
  /** Whether data with this word is held back on a connection that is still open. */
  isHeld(word: string): boolean;
  /** Delays all data by this time. */
  delay(milliseconds: number): void;
  /** Closes every connection. */
  cut(): void;
  /** Sends later connections to this port. */
  redirectTo(port: number): void;
  /**
   * Injects this fault into the next connection on which a client sends the word, or runs the statement of this text that it
   * prepared (with a zero at its end). Resolves once the connection is closed or, where it stays open, once the server has sent
   * data.
   */
  faultNext(word: string, fault: ConnectionFault): Promise<void>;
  /** How often data of a client followed data of the server, on all connections. */
  roundTrips(): number;
  stop(): void;
}

/**
 * `unheard` closes the connection before the server receives the word; `unanswered`, for a word that is a command, once the server
 * has sent its tag; `silent` leaves it open. The client receives nothing more.
 */
export type ConnectionFault = 'unheard' | 'unanswered' | 'silent';

/** A message of PostgreSQL's protocol that prepares a statement: its name, and its text with the zero at its end. */
const PARSE = /P.{4}(P\d+)\0([^\0]+\0)/gs;

/** Returns a function that reports whether data of a client contains a word, or the name of the statement with this text. */
function recognizer(): (piece: Buffer, word: string | undefined) => boolean {
  const names = new Map<string, string>();
  return (piece, word) => {
    for (const [, name = '', text = ''] of piece.toString('latin1').matchAll(PARSE)) names.set(text, name);
    return word !== undefined && (piece.includes(word) || piece.includes(`\0${names.get(word) ?? word}\0`));
  };
}

function write(to: Socket, piece: Uint8Array): void {
  if (!to.destroyed) to.write(piece);
}

interface Trap {
  readonly word: string;
  readonly fault: ConnectionFault;
  readonly sprung: () => void;
}

export async function startTcpProxy(target: number): Promise<TcpProxy> {
  const ends = new Set<Socket>();
  let port = target;
  let late = 0;
  /** When the last delayed data of a connection will be written. */
  const dueAt = new WeakMap<Socket, number>();
  let waiting: { readonly to: Socket; readonly piece: Uint8Array }[] | undefined;
  let roundTrips = 0;
  let trap: Trap | undefined;

  /** Writes data after the delay, and after all data that is already delayed on that connection. */
  function pass(to: Socket, piece: Uint8Array): void {
    const now = performance.now();
    const due = Math.max(now + late, dueAt.get(to) ?? 0);
    if (waiting) waiting.push({ to, piece });
    else if (late > 0 || dueAt.has(to)) {
      dueAt.set(to, due);
      setTimeout(() => {
        if (dueAt.get(to) === due) dueAt.delete(to);
        write(to, piece);
      }, due - now);
    } else write(to, piece);
  }

  const server = createServer((client) => {
    const engine = connect(port, HOST);
    let sprungTrap: Trap | undefined;
    let isAnswered = true;
    const sends = recognizer();
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
      if (isAnswered) roundTrips += 1;
      isAnswered = false;
      if (sends(piece, trap?.word)) [sprungTrap, trap] = [trap, undefined];
      if (sprungTrap?.fault !== 'unheard') return pass(engine, piece);
      end();
      sprungTrap.sprung();
    });
    engine.on('data', (piece: Buffer) => {
      isAnswered = true;
      if (!sprungTrap) return pass(client, piece);
      const { word, fault, sprung } = sprungTrap;
      // A client may send a commit before it has received the responses to earlier statements: this may be one of them.
      if (fault === 'unanswered' && !piece.includes(word.toUpperCase())) return;
      if (fault === 'unanswered') end();
      sprung();
    });
  });
  await new Promise<void>((resolve) => server.listen(0, HOST, resolve));
  const stop = () => {
    for (const socket of ends) socket.destroy();
    server.close();
  };
  atEnd(stop);
  return {
    port: (server.address() as { port: number }).port,
    stall() {
      waiting ??= [];
    },
    resume() {
      const held = waiting ?? [];
      waiting = undefined;
      for (const { to, piece } of held) write(to, piece);
    },
    isHeld: (word) => !!waiting?.some(({ to, piece }) => !to.destroyed && Buffer.from(piece).includes(word)),
    delay(milliseconds) {
      late = milliseconds;
    },
    cut() {
      for (const socket of ends) socket.destroy();
    },
    redirectTo(other) {
      port = other;
    },
    faultNext: (word, fault) =>
      new Promise((resolve) => {
        trap = { word, fault, sprung: resolve };
      }),
    roundTrips: () => roundTrips,
    stop,
  };
}
