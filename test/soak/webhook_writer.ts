import type { ServiceProcess } from '../support/service_process.ts';

/** Creates users at a steady rate until it is stopped; reports the duration of each write. */
export function startUserWriter(
  { url, token: tokenOf }: Pick<ServiceProcess, 'url' | 'token'>,
  realm: string,
  rate: number,
  onWritten: (ms: number) => void,
): { stop(): Promise<void> } {
  let isStopped = false;
  const inFlight = new Set<Promise<void>>();
  const path = `${url}/v2/authentication-realms/${realm}/user-authentication-info`;
  const data = { type: 'user_authentication_info', name: 'Jane Doe', email: 'jane@example.com' };
  const body = JSON.stringify({ data });

  async function writeOne(token: string): Promise<void> {
    const start = performance.now();
    const headers = { Authorization: `Bearer ${token}`, 'Content-Type': 'application/json' };
    const answer = await fetch(path, { method: 'POST', headers, body });
    await answer.text();
    // A busy machine rejects some writes; they are not counted.
    if (answer.status === 503) return;
    if (answer.status !== 201) throw new Error(`a write returned ${answer.status}`);
    onWritten(performance.now() - start);
  }

  async function run(): Promise<void> {
    const token = await tokenOf();
    const start = performance.now();
    for (let count = 0; !isStopped; count += 1) {
      const ahead = start + (count * 1000) / rate - performance.now();
      if (ahead > 0) await Bun.sleep(ahead);
      const writing = writeOne(token).finally(() => inFlight.delete(writing));
      inFlight.add(writing);
    }
    await Promise.all(inFlight);
  }

  const running = run();
  return {
    async stop() {
      isStopped = true;
      await running;
    },
  };
}
