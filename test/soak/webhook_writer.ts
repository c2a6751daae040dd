import type { ServiceProcess } from '../support/service_process.ts';

/** Writes users at a steady rate until it is stopped; tells how long each write took. */
export function startWriting(
  { url, token: tokenOf }: Pick<ServiceProcess, 'url' | 'token'>,
  realm: string,
  rate: number,
  onWritten: (ms: number) => void,
): { stop(): Promise<void> } {
  let isStopped = false;
  const under = new Set<Promise<void>>();
  const path = `${url}/v2/authentication-realms/${realm}/user-authentication-info`;
  const data = { type: 'user_authentication_info', name: 'Jane Doe', email: 'jane@example.com' };
  const body = JSON.stringify({ data });

  async function writeOne(token: string): Promise<void> {
    const begun = performance.now();
    const headers = { Authorization: `Bearer ${token}`, 'Content-Type': 'application/json' };
    const answer = await fetch(path, { method: 'POST', headers, body });
    await answer.text();
    // On a machine that others keep busy some are refused; who writes at a rate leaves them out.
    if (answer.status === 503) return;
    if (answer.status !== 201) throw new Error(`a write was answered ${answer.status}`);
    onWritten(performance.now() - begun);
  }

  async function run(): Promise<void> {
    const token = await tokenOf();
    const begun = performance.now();
    for (let count = 0; !isStopped; count += 1) {
      const ahead = begun + (count * 1000) / rate - performance.now();
      if (ahead > 0) await Bun.sleep(ahead);
      const writing = writeOne(token).finally(() => under.delete(writing));
      under.add(writing);
    }
    await Promise.all(under);
  }

  const running = run();
  return {
    async stop() {
      isStopped = true;
      await running;
    },
  };
}
