import { afterAll } from 'bun:test';
import { rmSync } from 'node:fs';
import { endBrowser } from '../browser/browser.ts';
import { endFile } from './ending.ts';
import { measureFile } from './file_seconds.ts';
import { RUN_FOLDER } from './folder.ts';
import { endServers } from './postgres_server.ts';
import { killCommands } from './processes.ts';

const reportSeconds = measureFile();

// After all suites: stop every process, remove every file.
afterAll(async () => {
  await endFile();
  killCommands();
  await endBrowser();
  rmSync(RUN_FOLDER, { recursive: true, force: true });
  await endServers();
  reportSeconds();
});
