import { readFileSync } from 'node:fs';
import { quantilesOf } from './pgbench.ts';

/**
 * One caller that requests one record after another over one connection, in a separate process. Arguments: URL, file of
 * paths, seconds; environment: BENCH_TOKEN. Prints its `RequestTimes` as JSON. wrk is unsuitable here: it corrects for coordinated
 * omission by adding latency samples after every pause, which the driver and pgbench do not.
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
const startedAt = performance.now();
const latencies: number[] = [];
let requestCount = 0;
let requestedAt = 0;
const { promise: done, resolve, reject } = Promise.withResolvers<void>();

function sendNext(socket: Bun.Socket): void {
  requestedAt = performance.now();
  if (requestedAt - startedAt > WARM_UP_MS + Number(seconds) * 1_000) {
    socket.end();
    resolve();
    return;
  }
  socket.write(requests[requestCount % requests.length] as string);
  requestCount += 1;
}

await Bun.connect({
  hostname,
  port: Number(port),
  socket: {
    open: sendNext,
    // A response is a few hundred bytes and arrives in one piece.
    data(socket, bytes) {
      const receivedAt = performance.now();
      if (receivedAt - startedAt > WARM_UP_MS) latencies.push(receivedAt - requestedAt);
      const response = bytes.toString();
      const [head = '', body = ''] = response.split('\r\n\r\n');
      const length = Number(/content-length: (\d+)/i.exec(head)?.[1]);
      if (!head.startsWith('HTTP/1.1 200') || body.length !== length)
        reject(new Error(`unexpected response: ${head}`));
      else sendNext(socket);
    },
  },
});
await done;
console.log(
  JSON.stringify({
    requests: requestCount,
    requestsPerSecond: latencies.length / Number(seconds),
    ...quantilesOf(latencies),
  }),
);
