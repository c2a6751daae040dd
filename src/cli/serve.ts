import type { Command } from 'commander';
import { ensureBootstrapClient } from '../access/bootstrap.ts';
import { systemAmbient } from '../ambient.ts';
import { openVault, readIssuers, reopenVault, serve, type Vault, VERSION } from '../app.ts';
import { readSettingFile, SETTINGS, type SettingName, type Settings } from '../config.ts';
import { type Log, openLog } from '../observe/log.ts';
import { addSettings, type Desk } from './cli.ts';
import { startWorkers, WORKER_COMMAND } from './workers.ts';

/** `serve`: runs until a signal, in one process or in several that share the port. */
export function addServe(program: Command, desk: Desk): void {
  const names = Object.keys(SETTINGS) as SettingName[];
  addSettings(program.command('serve'), names)
    .description('serve the API until SIGTERM or SIGINT')
    .action(async (_options, command: Command) => {
      const settings = desk.listeningSettingsOf(command);
      // Before anything is made: processes would each say what is wrong with the file, and be started again.
      readIssuers(settings);
      const stopped = signalled('on');
      const log = openLog();
      const vault = await openVault(settings, systemAmbient);
      const path = settings.bootstrapClientFile;
      if (path !== undefined) {
        const text = readSettingFile('--bootstrap-client-file', path);
        await ensureBootstrapClient(vault.engine.access, { path, text }, systemAmbient);
      }
      tellKeyFile(vault);
      const serving =
        settings.processes === 1
          ? await serve(settings, vault, log, systemAmbient)
          : await startWorkers(settings, desk.flagsOf(command), log);
      await tellReady(serving.url, vault, settings, log);
      if (settings.processes > 1) await vault.engine.close();
      log.write({ event: 'stopping', signal: await stopped });
      await serving.stop();
      if (settings.processes === 1) await vault.engine.close();
      log.write({ event: 'stopped' });
    });
  addSettings(program.command(WORKER_COMMAND, { hidden: true }), names).action(
    async (_options, command: Command) => {
      const settings = desk.listeningSettingsOf(command);
      const vault = await reopenVault(settings, systemAmbient);
      const server = await serve(settings, vault, openLog(), systemAmbient);
      process.send?.({ url: server.url });
      await Promise.race([
        signalled('on'),
        new Promise((resolve) => process.once('disconnect', () => resolve(''))),
      ]);
      await server.stop();
      await vault.engine.close();
      process.disconnect?.();
    },
  );
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

/**
 * Resolves with the name of the signal that asks the process to stop. With `on` those that follow ask for nothing new:
 * how long a service takes to stop has a bound. With `once` the next one ends the process, whatever it waits for.
 */
export function signalled(listen: 'on' | 'once'): Promise<string> {
  return new Promise((resolve) => {
    for (const signal of ['SIGTERM', 'SIGINT'] as const) process[listen](signal, () => resolve(signal));
  });
}
