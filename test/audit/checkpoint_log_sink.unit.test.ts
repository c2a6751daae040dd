import { expect, setDefaultTimeout, test } from 'bun:test';
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { freshFolder } from '../support/service.ts';

/** The service log as a checkpoint sink: a line counts as written only once it has left the process. */

setDefaultTimeout(300_000);

const LINES = 3_000;
const TEXT = 'x'.repeat(100);

/** Logs more than a pipe holds, and prints when all of it has left the process. */
const PROGRAM = `
  import { openLog } from '${join(import.meta.dir, '../../src/platform/log.ts')}';
  import { readSettings } from '${join(import.meta.dir, '../../src/config/parse.ts')}';
  import { checkpointSinksOf } from '${join(import.meta.dir, '../../src/service/checkpoint_sinks.ts')}';
  import { systemClock } from '${join(import.meta.dir, '../../src/platform/clock.ts')}';
  const log = openLog();
  const settings = readSettings({ database: 'postgres://user@127.0.0.1:1/none', masterKeyFile: 'none' }, {});
  const [sink] = checkpointSinksOf(settings, { sign: () => '' }, systemClock, log);
  const lines = Array.from({ length: ${LINES} }, () => '${TEXT}');
  const sent = sink(lines).then(() => 'sent');
  await log.written(300).catch(({ code }) => console.log(code));
  await Bun.write(process.argv[2], '');
  console.log(await sent);
  // All lines have left the process, so there is nothing to wait for.
  await log.written(1);
  process.kill(process.pid, 'SIGKILL');
`;

test('the log sink resolves once the reader of the log has the lines, however the process ends then', async () => {
  const folder = freshFolder();
  const [program, received, output, blocked] = ['program.ts', 'received', 'output', 'blocked'].map((name) =>
    join(folder, name),
  );
  writeFileSync(program as string, PROGRAM);
  const reading = `while [ ! -e ${blocked} ]; do sleep 0.05; done; cat > ${received}`;
  const command = `{ ${process.execPath} ${program} ${blocked} 2>&1 >${output}; } | { ${reading}; }`;
  const shell = Bun.spawn(['sh', '-c', command], { stdio: ['ignore', 'ignore', 'ignore'] });
  await shell.exited;
  expect(existsSync(blocked as string)).toBe(true);
  expect(readFileSync(output as string, 'utf8')).toBe('LOG_BLOCKED\nsent\n');
  const lines = readFileSync(received as string, 'utf8')
    .trim()
    .split('\n');
  expect(lines.length).toBe(LINES);
  expect(JSON.parse(lines.at(-1) ?? '')).toMatchObject({ event: 'checkpoint', line: TEXT });
});
