import { afterAll, describe, expect, test } from 'bun:test';
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { type ApiDocument, apiOf } from '../../console/openapi/document.ts';
import { examplesOf } from '../../console/openapi/languages.ts';
import { draftOf, type HttpRequest, requestOf } from '../../console/openapi/request.ts';
import { openApiDocument } from '../../src/app/api/document.ts';
import { freshFolder } from '../support/folder.ts';
import { runCommand } from '../support/processes.ts';

/** The examples of the API's pages, run as programs in each language. Needs curl, Python 3 and Go. */

const ROOT = fileURLToPath(new URL('../..', import.meta.url));
const FILES: Readonly<Record<string, string>> = {
  curl: 'example.sh',
  TypeScript: 'example.ts',
  Python: 'example.py',
  Go: 'example.go',
};
/** Each runs the files of its arguments as programs, one after the other. */
const COMMANDS: Readonly<Record<string, readonly string[]>> = {
  curl: ['sh', '-euc', 'for example; do sh -eu "$example"; done', 'sh'],
  TypeScript: [process.execPath, '-e', 'for (const path of process.argv.slice(1)) await import(path)'],
  Python: [
    'python3',
    '-c',
    "import runpy, sys\nfor path in sys.argv[1:]: runpy.run_path(path, run_name='__main__')",
  ],
};

interface Received {
  readonly method: string;
  readonly url: string;
  readonly headers: Headers;
  readonly body: string;
}

const folder = freshFolder();
const environment = { TOKEN: 'the-token', HOME: process.env.HOME ?? folder };

const received: Received[] = [];
const server = Bun.serve({
  hostname: '127.0.0.1',
  port: 0,
  async fetch(request) {
    const { method, url, headers } = request;
    received.push({ method, url, headers, body: await request.text() });
    return new Response('{"answer": true}', { status: 422 });
  },
});
const fileOf = (language: string, id: string) => join(folder, language, id, FILES[language] ?? '');
const requests = new Map<string, HttpRequest>();

const api = apiOf(openApiDocument('http://127.0.0.1:8080', '0') as ApiDocument);
for (const [id, operation] of api.operations) {
  const request = requestOf(operation, draftOf(operation), `http://127.0.0.1:${server.port}/`);
  requests.set(id, request);
  for (const { language, text } of examplesOf(request)) {
    mkdirSync(join(folder, language, id), { recursive: true });
    writeFileSync(fileOf(language, id), `${text}\n`);
  }
}
afterAll(() => server.stop(true));

/** Runs the examples of all operations: each prints status and body, and the server receives exactly the documented requests. */
async function expectExamples(language: string, command: readonly string[]): Promise<void> {
  received.length = 0;
  const { code, stdout, stderr } = await runCommand(command, environment);
  if (language !== 'curl')
    expect([code, stdout, stderr]).toEqual([0, '422 {"answer": true}\n'.repeat(requests.size), '']);
  expect(received.map(({ method, url }) => [method, url])).toEqual(
    [...requests.values()].map(({ method, url }) => [method, url]),
  );
  for (const [index, [id, request]] of [...requests].entries()) expectRequest(id, received[index], request);
}

function expectRequest(id: string, sent: Received | undefined, request: HttpRequest): void {
  const { headers, form, body, isSigned } = request;
  expect([id, sent?.headers.get('authorization')]).toEqual([id, isSigned ? 'Bearer the-token' : null]);
  for (const [name, value] of Object.entries(headers))
    expect([id, sent?.headers.get(name)]).toEqual([id, value]);
  if (form.length > 0) {
    expect(sent?.headers.get('content-type')).toStartWith('application/x-www-form-urlencoded');
    expect([...new URLSearchParams(sent?.body)]).toEqual(form.map(([name, value]) => [name, value]));
  } else if (body === undefined) expect([id, sent?.body]).toEqual([id, '']);
  else expect([id, JSON.parse(sent?.body ?? '')]).toEqual([id, JSON.parse(body)]);
}

describe.each(['curl', 'TypeScript', 'Python'])('%s', (language) => {
  test(`the ${language} example of every operation sends the documented request`, async () => {
    expect(requests.size).toBeGreaterThan(60);
    const files = [...requests.keys()].map((id) => fileOf(language, id));
    await expectExamples(language, [...(COMMANDS[language] ?? []), ...files]);
  }, 300_000);
});

test('the TypeScript examples compile strictly', async () => {
  const compilerOptions = {
    strict: true,
    noEmit: true,
    module: 'esnext',
    target: 'esnext',
    lib: ['esnext', 'dom'],
  };
  const types = { types: ['bun'], typeRoots: [join(ROOT, 'node_modules/@types')], moduleDetection: 'force' };
  const options = { ...compilerOptions, ...types, skipLibCheck: true, moduleResolution: 'bundler' };
  writeFileSync(
    join(folder, 'tsconfig.json'),
    JSON.stringify({ compilerOptions: options, include: ['TypeScript'] }),
  );
  const { code, stdout } = await runCommand([join(ROOT, 'node_modules/.bin/tsc'), '-p', folder]);
  expect([code, stdout]).toEqual([0, '']);
}, 300_000);

/** One program that runs all Go examples. */
async function buildGoExamples(): Promise<string> {
  const program = join(folder, 'program');
  mkdirSync(program);
  const ids = [...requests.keys()];
  for (const [index, id] of ids.entries()) {
    const text = readFileSync(fileOf('Go', id), 'utf8');
    writeFileSync(join(program, `${id}.go`), text.replace('func main()', `func example${index}()`));
  }
  writeFileSync(join(program, 'go.mod'), 'module examples\n\ngo 1.19\n');
  writeFileSync(
    join(program, 'main.go'),
    `package main\n\nfunc main() {\n${ids.map((_, index) => `\texample${index}()\n`).join('')}}\n`,
  );
  const { code, stderr } = await runCommand(
    ['sh', '-c', `cd ${program} && go vet && go build -o examples`],
    environment,
  );
  expect([code, stderr]).toEqual([0, '']);
  return join(program, 'examples');
}

describe('Go', () => {
  test('the Go example of every operation passes go vet and sends the documented request', async () => {
    await expectExamples('Go', [await buildGoExamples()]);
  }, 300_000);

  test('the Go examples are formatted', async () => {
    const { code, stdout } = await runCommand(['gofmt', '-l', join(folder, 'Go')], environment);
    expect([code, stdout]).toEqual([0, '']);
  });
});
