import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { freshFolder } from './folder.ts';

/** Code of another program that records that it ran. */
const FOREIGN =
  "require('node:fs').appendFileSync(__dirname.split('/node_modules')[0] + '/executed', 'x');\n";
const ELSEWHERE = { compilerOptions: { baseUrl: '.', paths: { '*': ['./foreign.js'] } } };

/** Every file with which a folder can configure the runtime. */
const FILES: Readonly<Record<string, string>> = {
  '.env': 'AUTHREALM_PORTS=1\nAUTHREALM_URL=http://elsewhere.example\n',
  '.env.local': 'AUTHREALM_HOSTS=1\n',
  '.env.production': 'AUTHREALM_HOSTS=1\n',
  '.env.development': 'AUTHREALM_HOSTS=1\n',
  'bunfig.toml': 'preload = ["./foreign.js"]\n',
  'tsconfig.json': JSON.stringify(ELSEWHERE),
  'jsconfig.json': JSON.stringify(ELSEWHERE),
  'package.json': JSON.stringify({ name: 'foreign', main: './foreign.js' }),
  'foreign.js': FOREIGN,
};

export interface HostileFolder {
  readonly folder: string;
  /** Exists if code of the folder ran. */
  readonly executed: string;
  /** A command that a shell runs in the folder. */
  inFolder(...command: readonly string[]): readonly string[];
}

/** A folder of an attacker, whose files try to run code in a command that is started in it. */
export function createHostileFolder(): HostileFolder {
  const folder = freshFolder();
  for (const [name, text] of Object.entries(FILES)) writeFileSync(join(folder, name), text);
  for (const name of ['zod', 'commander', 'jose']) {
    mkdirSync(join(folder, 'node_modules', name), { recursive: true });
    writeFileSync(join(folder, 'node_modules', name, 'index.js'), FOREIGN);
  }
  return {
    folder,
    executed: join(folder, 'executed'),
    inFolder: (...command) => ['/bin/sh', '-c', 'cd "$0" && exec "$@"', folder, ...command],
  };
}
