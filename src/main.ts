import { isRole, play } from './roles/roles.ts';

const [word = '', path = ''] = process.argv.slice(2);
if (isRole(word)) process.exitCode = await play(word, path);
else {
  const { run } = await import('./cli/cli.ts');
  process.exitCode = await run(process.argv.slice(2), process.env);
}
