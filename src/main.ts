import { isTaskName, runWorker } from './ops/workers/tasks.ts';

const [word = '', path = ''] = process.argv.slice(2);
if (isTaskName(word)) process.exitCode = await runWorker(word, path);
else {
  const { runCli } = await import('./cli/cli.ts');
  process.exitCode = await runCli(process.argv.slice(2), process.env);
}
