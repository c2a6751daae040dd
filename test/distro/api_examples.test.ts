import { afterAll, beforeAll, describe, expect, test } from 'bun:test';
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { type ApiDocument, apiOf } from '../../console/openapi/document.ts';
import { examplesOf } from '../../console/openapi/languages.ts';
import { draftOf, type HttpRequest, requestOf } from '../../console/openapi/request.ts';
import { openApiDocument } from '../../src/http/openapi/document.ts';
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
const COMMANDS: Readonly<Record<string, readonly string[]>> = {
  curl: ['sh', '-eu'],
  TypeScript: [process.execPath],
  Python: [await pythonProgram()],
};

/** The interpreter itself: a launcher of several versions takes longer than an example. */
async function pythonProgram(): Promise<string> {
  const { stdout } = await runCommand(['python3', '-c', 'import sys; print(sys.executable)'], {
    HOME: process.env.HOME ?? '',
  });
  return stdout.trim();
}

interface Received {
  readonly method: string;
  readonly url: string;
  readonly headers: Headers;
  readonly body: string;
}

const folder = freshFolder();
const environment = { TOKEN: 'the-token', HOME: process.env.HOME ?? folder };

let received: Received | undefined;
const server = Bun.serve({
  hostname: '127.0.0.1',
  port: 0,
  async fetch(request) {
    const { method, url, headers } = request;
    received = { method, url, headers, body: await request.text() };
    return new Response('{"answer": true}', { status: 422 });
  },
});
const requests = new Map<string, HttpRequest>();

beforeAll(async () => {
  const api = apiOf(openApiDocument('http://127.0.0.1:8080', '0') as ApiDocument);
  for (const [id, operation] of api.operations) {
    const request = requestOf(operation, draftOf(operation), `http://127.0.0.1:${server.port}/`);
    requests.set(id, request);
    for (const { language, text } of examplesOf(request)) {
      mkdirSync(join(folder, language, id), { recursive: true });
      writeFileSync(fileOf(language, id), `${text}\n`);
    }
  }
});
afterAll(() => server.stop(true));

const fileOf = (language: string, id: string) => join(folder, language, id, FILES[language] ?? '');

/** Runs an example: it prints status and body, and the server receives exactly the documented request. */
async function expectExample(language: string, id: string, command: readonly string[]): Promise<void> {
  received = undefined;
  const { code, stdout, stderr } = await runCommand(command, environment);
  if (language !== 'curl') expect([id, code, stdout, stderr]).toEqual([id, 0, '422 {"answer": true}\n', '']);
  const { url, method, headers, form, body, isSigned } = requests.get(id) as HttpRequest;
  expect(received).toMatchObject({ url, method });
  const sent = received as Received | undefined;
  expect(sent?.headers.get('authorization')).toBe(isSigned ? 'Bearer the-token' : null);
  for (const [name, value] of Object.entries(headers)) expect(sent?.headers.get(name)).toBe(value);
  if (form.length > 0) {
    expect(sent?.headers.get('content-type')).toStartWith('application/x-www-form-urlencoded');
    expect([...new URLSearchParams(sent?.body)]).toEqual(form.map(([name, value]) => [name, value]));
  } else if (body === undefined) expect(sent?.body).toBe('');
  else expect(JSON.parse(sent?.body ?? '')).toEqual(JSON.parse(body));
}

describe.each(['curl', 'TypeScript', 'Python'])('%s', (language) => {
  test(`the ${language} example of every operation sends the documented request`, async () => {
    expect(requests.size).toBeGreaterThan(60);
    for (const id of requests.keys())
      await expectExample(language, id, [...(COMMANDS[language] ?? []), fileOf(language, id)]);
  }, 120_000);
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
}, 120_000);

/** One program of all Go examples, which runs the one whose number is its argument. */
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
    `package main\n\nimport (\n\t"os"\n\t"strconv"\n)\n\nfunc main() {
\tindex, _ := strconv.Atoi(os.Args[1])
\t[]func(){${ids.map((_, index) => `example${index}`).join(', ')}}[index]()\n}\n`,
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
    const program = await buildGoExamples();
    for (const [index, id] of [...requests.keys()].entries())
      await expectExample('Go', id, [program, String(index)]);
  }, 300_000);

  test('the Go examples are formatted', async () => {
    const { code, stdout } = await runCommand(['gofmt', '-l', join(folder, 'Go')], environment);
    expect([code, stdout]).toEqual([0, '']);
  });
});
