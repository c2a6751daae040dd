import { expect, setDefaultTimeout, test } from 'bun:test';
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { freshFolder } from '../support/service.ts';

/** Who is told by the log of the service: nothing is told that has not left the process. */

setDefaultTimeout(300_000);

const LINES = 3_000;
const TEXT = 'x'.repeat(100);

/** Logs more than a pipe holds, and says how long that took to leave. */
const PROGRAM = `
  import { openLog } from '${join(import.meta.dir, '../../src/platform/log.ts')}';
  import { readSettings } from '${join(import.meta.dir, '../../src/config/parse.ts')}';
  import { checkpointSinksOf } from '${join(import.meta.dir, '../../src/service/checkpoint_sinks.ts')}';
  import { systemClock } from '${join(import.meta.dir, '../../src/platform/clock.ts')}';
  const log = openLog();
  const settings = readSettings({ database: 'postgres://who@127.0.0.1:1/none', masterKeyFile: 'none' }, {});
  const [sink] = checkpointSinksOf(settings, { sign: () => '' }, systemClock, log);
  const lines = Array.from({ length: ${LINES} }, () => '${TEXT}');
  const told = sink(lines).then(() => 'told');
  await log.written(300).catch(({ code }) => console.log(code));
  await Bun.write(process.argv[2], '');
  console.log(await told);
  // What is written is gone, so there is nothing to wait for.
  await log.written(1);
  process.kill(process.pid, 'SIGKILL');
`;

test('lines are told once whoever reads the log has them, however the process ends then', async () => {
  const folder = freshFolder();
  const [program, read, said, held] = ['program.ts', 'read', 'said', 'held'].map((name) =>
    join(folder, name),
  );
  writeFileSync(program as string, PROGRAM);
  const reading = `while [ ! -e ${held} ]; do sleep 0.05; done; cat > ${read}`;
  const command = `{ ${process.execPath} ${program} ${held} 2>&1 >${said}; } | { ${reading}; }`;
  const shell = Bun.spawn(['sh', '-c', command], { stdio: ['ignore', 'ignore', 'ignore'] });
  await shell.exited;
  expect(existsSync(held as string)).toBe(true);
  expect(readFileSync(said as string, 'utf8')).toBe('LOG_BLOCKED\ntold\n');
  const lines = readFileSync(read as string, 'utf8')
    .trim()
    .split('\n');
  expect(lines.length).toBe(LINES);
  expect(JSON.parse(lines.at(-1) ?? '')).toMatchObject({ event: 'checkpoint', line: TEXT });
});
