import { afterAll, beforeAll } from 'bun:test';
import { rmSync } from 'node:fs';
import { endBrowser } from '../browser/browser.ts';
import { endFile } from './ending.ts';
import { measureFile } from './file_seconds.ts';
import { RUN_FOLDER } from './folder.ts';
import { endServers } from './postgres_server.ts';
import { killCommands } from './processes.ts';

/** `--timeout` bounds tests alone. */
const LOAD_MS_MAX = 300_000;

const loading = setTimeout(() => {
  console.error(`${Bun.main} did not start its tests in ${LOAD_MS_MAX / 1_000} s`);
  process.exit(1);
}, LOAD_MS_MAX);
beforeAll(() => clearTimeout(loading));

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
