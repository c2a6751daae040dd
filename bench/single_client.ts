import { readFileSync } from 'node:fs';
import { quantilesOf } from './pgbench.ts';

/**
 * One caller who asks for one record after the other over one connection, in a process of its own. Arguments: the URL, the
 * file of paths, seconds; BENCH_TOKEN. Prints what it came to as JSON. wrk would not do: it adds samples of its own to the
 * latencies for every pause it meets, and a driver or pgbench does not.
 */
const [url = '', paths = '', seconds = ''] = process.argv.slice(2);
const { hostname, port, host } = new URL(url);
const requests = readFileSync(paths, 'utf8')
  .split('\n')
  .map(
    (path) =>
      `GET ${path} HTTP/1.1\r\nHost: ${host}\r\nAuthorization: Bearer ${process.env.BENCH_TOKEN}\r\n\r\n`,
  );

const WARM_UP_MS = 1_000;
const begun = performance.now();
const latencies: number[] = [];
let asked = 0;
let askedAt = 0;
const { promise: isDone, resolve, reject } = Promise.withResolvers<void>();

function ask(socket: Bun.Socket): void {
  askedAt = performance.now();
  if (askedAt - begun > WARM_UP_MS + Number(seconds) * 1_000) {
    socket.end();
    resolve();
    return;
  }
  socket.write(requests[asked % requests.length] as string);
  asked += 1;
}

await Bun.connect({
  hostname,
  port: Number(port),
  socket: {
    open: ask,
    // An answer is a few hundred bytes: it comes whole.
    data(socket, bytes) {
      const answered = performance.now();
      if (answered - begun > WARM_UP_MS) latencies.push(answered - askedAt);
      const said = bytes.toString();
      const [head = '', body = ''] = said.split('\r\n\r\n');
      const length = Number(/content-length: (\d+)/i.exec(head)?.[1]);
      if (!head.startsWith('HTTP/1.1 200') || body.length !== length) reject(new Error(`answered: ${head}`));
      else ask(socket);
    },
  },
});
await isDone;
console.log(
  JSON.stringify({ requestsPerSecond: latencies.length / Number(seconds), ...quantilesOf(latencies) }),
);
