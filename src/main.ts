import { isWorkerKind, runWorker } from './workers/kinds.ts';

const [word = '', path = ''] = process.argv.slice(2);
if (isWorkerKind(word)) process.exitCode = await runWorker(word, path);
else {
  const { runCommandLine: run } = await import('./cli/cli.ts');
  process.exitCode = await run(process.argv.slice(2), process.env);
}
