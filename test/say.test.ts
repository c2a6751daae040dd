import { expect, test } from 'bun:test';
import { fileURLToPath } from 'node:url';
import { ends } from '../prove/process_tree.ts';

const SAY = fileURLToPath(new URL('../scripts/say.ts', import.meta.url));

/** More than a pipe holds: 64 KiB. */
const LINES = 5_000;

test('what a command says, complaints among it, and what is said behind it reach a slow reader line by line', async () => {
  const loop = `i=0; while [ $i -lt ${LINES} ]; do i=$((i+1)); echo "told $i, in a line of some length"; echo "complained $i" >&2; done; exit 3`;
  const script = `
    import { runAndSay, say } from ${JSON.stringify(SAY)};
    const exit = await runAndSay(['sh', '-c', ${JSON.stringify(loop)}]);
    await say('it ended with ' + exit + '\\n');
  `;
  const slowly = ['sh', '-c', '"$@" 2>&1 | { sleep 1; cat; }', 'sh'];
  const child = Bun.spawn([...slowly, process.execPath, '-e', script], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  const said = await new Response(child.stdout).text();
  const told = Array.from({ length: LINES }, (_, at) => [
    `told ${at + 1}, in a line of some length`,
    `complained ${at + 1}`,
  ]);
  expect(said.split('\n')).toEqual([...told.flat(), 'it ended with 3', '']);
});

test('a command whose words nobody takes any more is ended', async () => {
  const script = `
    import { runAndSay } from ${JSON.stringify(SAY)};
    await runAndSay(['sh', '-c', 'echo $$; trap "" TERM PIPE; while :; do echo told; done']);
  `;
  const child = Bun.spawn(
    ['sh', '-c', '"$@" 2>/dev/null | head -n 1', 'sh', process.execPath, '-e', script],
    {
      stdio: ['ignore', 'pipe', 'inherit'],
    },
  );
  const pid = Number(await new Response(child.stdout).text());
  expect(pid).toBeGreaterThan(0);
  await ends(pid);
});
