import { cpSync, mkdirSync } from 'node:fs';
import { join } from 'node:path';

/** Generators of clients that are run on `/openapi.json`, unchanged, and how each of their clients is made and run. */

const HERE = import.meta.dir;
const ROOT = join(HERE, '../..');

/** A program with its arguments, and the folder below that of the client that it runs in. */
interface Command {
  readonly words: readonly string[];
  readonly in?: string;
}

export interface Generator {
  readonly name: string;
  readonly version: string;
  readonly language: 'TypeScript' | 'Python' | 'Go' | 'Java';
  /** Commands that must be installed. */
  readonly needs: readonly string[];
  /** Downloads what it needs into the folder. */
  readonly install: readonly Command[];
  readonly generate: readonly Command[];
  /** Our program for this client, and its path in the folder. */
  readonly program: readonly [from: string, to: string];
  readonly compile: readonly Command[];
  readonly run: Command;
}

const command = (text: string, folder?: string): Command => ({
  words: text.split(' '),
  ...(folder === undefined ? {} : { in: folder }),
});

const { dependencies: NPM } = (await Bun.file(join(HERE, 'package.json')).json()) as {
  readonly dependencies: Readonly<Record<string, string>>;
};
const BUN = process.execPath;
const TSC = join(ROOT, 'node_modules/.bin/tsc');
const STRICT =
  '--strict --noUncheckedIndexedAccess --noEmit --skipLibCheck --target esnext --module esnext --moduleResolution bundler ' +
  `--allowImportingTsExtensions --types bun --typeRoots ${join(ROOT, 'node_modules/@types')}`;

/** A generator from npm. Bun runs it, whichever Node is installed. */
function fromNpm(name: string, program: string, generate: readonly string[]): Generator {
  return {
    name,
    version: NPM[name] ?? '',
    language: 'TypeScript',
    needs: ['npm'],
    install: [],
    generate: [{ words: [BUN, ...generate] }],
    program: [`${program}.ts`, 'program.ts'],
    compile: [command(`${TSC} ${STRICT} program.ts`)],
    run: { words: [BUN, 'program.ts'] },
  };
}

const ORVAL = `import { generate } from 'orval';
await generate({
  input: { target: 'openapi.json' },
  output: { target: 'generated.ts', client: 'fetch', baseUrl: { getBaseUrlFromSpecification: true } },
});`;

function fromGo(module: string, version: string, generate: string, runtime: string): Generator {
  return {
    name: module.split('/').at(-1) ?? module,
    version,
    language: 'Go',
    needs: ['go'],
    install: [command('go mod init example.com/generated'), command(`go get ${runtime}`)],
    generate: [command(`go run ${module}@${version} ${generate}`)],
    program: [`${(module.split('/').at(-1) ?? '').replace('-', '_')}.go`, 'main.go'],
    compile: [command('go mod tidy'), command('go vet ./...'), command('go build -o client .')],
    run: command('./client'),
  };
}

const PYTHON = { generator: '0.29.1', mypy: '2.4.1' };
const JAVA = '7.25.0';

/** Those of npm; `npm test` runs them. */
export const NPM_GENERATORS: readonly Generator[] = [
  fromNpm('openapi-typescript', 'openapi_typescript', [
    ...[
      '../node_modules/openapi-typescript/bin/cli.js',
      'openapi.json',
      '-o',
      'generated.ts',
      '--default-non-nullable=false',
    ],
  ]),
  fromNpm('@hey-api/openapi-ts', 'hey_api', [
    ...[
      '../node_modules/@hey-api/openapi-ts/bin/run.js',
      '-i',
      'openapi.json',
      '-o',
      'generated',
      '--no-log-file',
    ],
  ]),
  fromNpm('orval', 'orval', ['-e', ORVAL]),
];

export const GENERATORS: readonly Generator[] = [
  ...NPM_GENERATORS,
  {
    name: 'openapi-python-client',
    version: PYTHON.generator,
    language: 'Python',
    needs: ['python3'],
    install: [
      command('python3 -m venv tools'),
      command(`tools/bin/pip install -q openapi-python-client==${PYTHON.generator} mypy==${PYTHON.mypy}`),
    ],
    generate: [
      command(
        'tools/bin/openapi-python-client generate --path openapi.json --meta none --output-path generated',
      ),
    ],
    program: ['program.py', 'program.py'],
    compile: [command('tools/bin/mypy --strict program.py generated')],
    run: command('tools/bin/python program.py'),
  },
  fromGo(
    'github.com/oapi-codegen/oapi-codegen/v2/cmd/oapi-codegen',
    'v2.8.2',
    '-generate types,client -package api -o api/api.go openapi.json',
    'github.com/oapi-codegen/runtime@v1.9.0',
  ),
  fromGo(
    'github.com/ogen-go/ogen/cmd/ogen',
    'v1.24.0',
    '--target api --package api --clean openapi.json',
    'github.com/ogen-go/ogen@v1.24.0',
  ),
  {
    name: 'openapi-generator (Java)',
    version: JAVA,
    language: 'Java',
    needs: ['java', 'mvn'],
    install: [
      command(
        `mvn -q -B dependency:copy -Dartifact=org.openapitools:openapi-generator-cli:${JAVA} -DoutputDirectory=tools`,
      ),
    ],
    generate: [
      command(
        `java -jar tools/openapi-generator-cli-${JAVA}.jar generate -g java -i openapi.json -o generated`,
      ),
    ],
    program: ['Program.java', 'generated/src/main/java/Program.java'],
    compile: [
      command('mvn -q -B compile', 'generated'),
      command('mvn -q -B dependency:build-classpath -Dmdep.outputFile=classpath', 'generated'),
    ],
    run: { words: ['sh', '-c', 'exec java -cp "target/classes:$(cat classpath)" Program'], in: 'generated' },
  },
];

/** What each program prints: the status and one member of each response. */
export interface Seen {
  readonly oidc?: readonly unknown[];
  readonly password?: readonly unknown[];
  readonly created?: readonly unknown[];
  readonly absent?: readonly unknown[];
}

/** How far a generator came; `error` is the output of the command that failed. */
export interface GeneratorResult {
  readonly isGenerated: boolean;
  readonly isCompiled: boolean;
  readonly seen: Seen;
  readonly error?: string;
}

const PHASES = ['install', 'generate', 'compile', 'run'] as const;
const COMMAND_MS_MAX = 900_000;

/** Installs the generators of npm, from `package-lock.json` of this folder, for clients below `folder`. */
export async function installFromNpm(folder: string): Promise<void> {
  for (const file of ['package.json', 'package-lock.json']) cpSync(join(HERE, file), join(folder, file));
  const install = command('npm ci --ignore-scripts --no-fund --no-audit --prefer-offline --loglevel=error');
  const { code, stdout, stderr } = await execute(install, folder, {});
  if (code !== 0) throw new Error(`cannot install the generators of npm: ${stdout}${stderr}`);
}

interface RunOptions {
  /** The folder of `installFromNpm`. Each client has its own below it. */
  readonly folder: string;
  /** The OpenAPI document, as the service returned it. */
  readonly document: string;
  /** The variables that the programs read. */
  readonly variables: Readonly<Record<string, string>>;
}

/** Installs and runs a generator, compiles its client with our program, and runs it. */
export async function runGenerator(
  { install, generate, compile, run, program: [from, to] }: Generator,
  { folder: parent, document, variables }: RunOptions,
): Promise<GeneratorResult> {
  const folder = join(parent, from.replace('.', '_'));
  mkdirSync(join(folder, 'api'), { recursive: true });
  await Bun.write(join(folder, 'openapi.json'), document);
  const commands = { install, generate, compile, run: [run] };
  const done = new Set<string>();
  let output = '';
  for (const phase of PHASES) {
    if (phase === 'compile') cpSync(join(HERE, 'programs', from), join(folder, to));
    for (const each of commands[phase]) {
      const { code, stdout, stderr } = await execute(each, folder, variables);
      output = stdout;
      if (code !== 0)
        return { ...outcome(done), seen: {}, error: `${each.words.join(' ')}\n${stdout}${stderr}` };
    }
    done.add(phase);
  }
  return { ...outcome(done), seen: JSON.parse(output) as Seen };
}

function outcome(done: ReadonlySet<string>) {
  return { isGenerated: done.has('generate'), isCompiled: done.has('compile') };
}

async function execute(
  { words, in: below = '' }: Command,
  folder: string,
  variables: Readonly<Record<string, string>>,
) {
  const child = Bun.spawn([...words], {
    cwd: join(folder, below),
    env: { ...process.env, ...variables, GOFLAGS: '-mod=mod' },
    stdio: ['ignore', 'pipe', 'pipe'],
    timeout: COMMAND_MS_MAX,
  });
  const [stdout, stderr] = await Promise.all([
    new Response(child.stdout).text(),
    new Response(child.stderr).text(),
  ]);
  const code = await child.exited;
  const ended = child.signalCode && `ended by ${child.signalCode} after at most ${COMMAND_MS_MAX / 1_000} s`;
  return { code, stdout, stderr: `${stderr}${ended ?? ''}` };
}
