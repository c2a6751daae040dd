import type { Uuid } from '../../src/model/id.ts';
import { systemClock } from '../../src/ops/process/clock.ts';
import { restore } from '../../src/ops/store/backups/restoration.ts';
import { openWithKeyOf, program } from './backup_fixtures.ts';

/**
 * A process that restores a backup, erases a user, and is killed before a step:
 * `kill_during_restore.ts DATABASE BACKUP STEP REALM USER`.
 */
const [database = '', backup = '', step, realm, user] = process.argv.slice(2);

function reach(name: string): void {
  if (name === step) process.kill(process.pid, 'SIGKILL');
}

await restore(
  {
    backup,
    database,
    replaces: true,
    hasManifest: true,
    async erasuresFor() {
      reach('erasures');
      return [{ realm: realm as Uuid, user: user as Uuid, at: systemClock.now() }];
    },
    async openOtherFile(path) {
      reach('open');
      const engine = await openWithKeyOf(database)(path);
      return {
        records: engine.records,
        async close() {
          reach('close');
          await engine.close();
          reach('rewrite');
        },
      };
    },
  },
  program,
);
