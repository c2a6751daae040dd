import type { Command } from 'commander';
import { systemAmbient } from '../ambient.ts';
import { ensureBootstrapClient, openVault, reopenVault, serve, type Vault, VERSION } from '../app.ts';
import { type Flags, SETTINGS, type SettingName, type Settings } from '../config.ts';
import { Refusal } from '../domain/fault.ts';
import { LIMITS } from '../domain/limits.ts';
import { type Log, openLog } from '../observe/log.ts';
import { addSettings, type Desk, written } from './cli.ts';

const WORKER = 'worker';
const RESTART_MS_MIN = 200;
const RESTART_MS_MAX = 5_000;

/** `serve`: runs until a signal, in one process or in several that share the port. */
export function addServe(program: Command, desk: Desk): void {
  const names = Object.keys(SETTINGS) as SettingName[];
  addSettings(program.command('serve'), names)
    .description('serve the API until SIGTERM or SIGINT')
    .action(async (_options, command: Command) => {
      const settings = desk.settingsOf(command);
      const log = openLog();
      const vault = await openVault(settings, systemAmbient);
      await ensureBootstrapClient(settings, vault, systemAmbient);
      tellKeyFile(vault);
      const serving =
        settings.processes === 1
          ? await serve(settings, vault, log, systemAmbient)
          : await startWorkers(settings, desk.flagsOf(command), log);
      await tellReady(serving.url, vault, settings, log);
      if (settings.processes > 1) vault.engine.close();
      log.write({ event: 'stopping', signal: await signalled() });
      await serving.stop();
      if (settings.processes === 1) vault.engine.close();
      log.write({ event: 'stopped' });
    });
  addSettings(program.command(WORKER, { hidden: true }), names).action(async (_options, command: Command) => {
    const settings = desk.settingsOf(command);
    const vault = await reopenVault(settings, systemAmbient);
    const server = await serve(settings, vault, openLog(), systemAmbient);
    process.send?.({ url: server.url });
    await Promise.race([
      signalled(),
      new Promise((resolve) => process.once('disconnect', () => resolve(''))),
    ]);
    await server.stop();
    vault.engine.close();
    process.disconnect?.();
  });
}

/** What a new key file means, said once. */
export function tellKeyFile({ keyFileMade }: Vault): void {
  if (keyFileMade === undefined) return;
  console.log(
    `made the master key ${keyFileMade}: back it up apart from the database. Without it the signing keys and the ` +
      'client secrets of OIDC profiles in every backup are lost; the records are not',
  );
}

async function tellReady(url: string, { engine }: Vault, settings: Settings, log: Log): Promise<void> {
  console.log(`listening on ${url}`);
  const table = await engine.access.table(undefined);
  if (table?.clients.length === 0) console.log('no clients yet: run authrealm init');
  log.write({ event: 'started', url, version: VERSION, engine: settings.database.engine, pid: process.pid });
}

/** Resolves with the name of the signal that asks the process to stop. */
export function signalled(): Promise<string> {
  return new Promise((resolve) => {
    for (const signal of ['SIGTERM', 'SIGINT'] as const) process.once(signal, () => resolve(signal));
  });
}

type Worker = Bun.Subprocess;

/** Starts the processes that share the port; the first one finds it. One that dies is replaced. */
async function startWorkers(settings: Settings, flags: Flags, log: Log) {
  const running = new Set<Worker>();
  let isStopping = false;
  let isServing = false;

  let { port } = settings;

  function start(restartMs: number): Promise<string> {
    const { promise, resolve, reject } = Promise.withResolvers<string>();
    const startedAt = systemAmbient.monotonic();
    const worker = Bun.spawn(
      [process.execPath, Bun.main, WORKER, ...written({ ...flags, port: String(port) })],
      {
        stdio: ['ignore', 'inherit', 'inherit'],
        ipc: (message: { url: string }) => resolve(message.url),
        onExit: (ended, code) => {
          running.delete(ended);
          reject(new Error('a process ended before it served'));
          if (isStopping) return;
          log.write({ event: 'process_ended', pid: ended.pid, code: code ?? -1 });
          const livedLong = systemAmbient.monotonic() - startedAt > RESTART_MS_MAX;
          const next = livedLong ? RESTART_MS_MIN : Math.min(restartMs * 2, RESTART_MS_MAX);
          setTimeout(() => isStopping || start(next).catch(() => undefined), restartMs);
        },
      },
    );
    running.add(worker);
    log.write({ event: 'process_started', pid: worker.pid });
    return promise;
  }

  const url = await start(RESTART_MS_MIN);
  port = Number(new URL(url).port || (url.startsWith('https') ? 443 : 80));
  const others = Array.from({ length: settings.processes - 1 }, () => start(RESTART_MS_MIN));
  await Promise.all(others);
  isServing = true;
  return {
    url,
    async stop() {
      isStopping = true;
      const all = [...running];
      for (const worker of all) worker.kill('SIGTERM');
      const deadline = setTimeout(() => {
        for (const worker of running) worker.kill('SIGKILL');
      }, LIMITS.drainMsMax + 2_000);
      await Promise.all(all.map((worker) => worker.exited));
      clearTimeout(deadline);
    },
  };
}
