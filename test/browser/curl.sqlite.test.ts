import { expect, test } from 'bun:test';
import fc from 'fast-check';
import { type ApiDocument, apiOf } from '../../console/openapi/document.ts';
import { curlOf, draftOf, type HttpRequest, requestOf } from '../../console/openapi/request.ts';
import { runCommand } from '../support/processes.ts';
import { startService } from '../support/service.ts';

/** The curl commands of the console, parsed by a real shell. */

const service = await startService();
const api = apiOf((await (await service.get('/openapi.json')).json()) as ApiDocument);

/** The arguments that curl receives. */
async function wordsOf(command: string): Promise<readonly string[]> {
  const script = `curl() { printf '%s\\0' "$@"; }\n${command}\n`;
  const { code, stdout, stderr } = await runCommand(['sh', '-euc', script], { TOKEN: 'the token' });
  expect([code, stderr]).toEqual([0, '']);
  return stdout.split('\0').slice(0, -1);
}

const PLAIN: HttpRequest = {
  ...{ method: 'PUT', url: 'https://idp.example/x', headers: {}, form: [], body: undefined, isSigned: true },
};

const STRANGE = [
  "O'Brien",
  '"$HOME"',
  '`id`',
  '$(id)',
  'a\\',
  "'",
  '!!',
  '%s\n\ttwo lines',
  '@/etc/passwd',
  '-x',
];

test('a shell passes body, header and form values of a copied curl command unchanged', async () => {
  const text = fc.oneof(fc.constantFrom(...STRANGE), fc.string({ unit: 'binary', maxLength: 60 }));
  const word = text.map((each) => each.replaceAll('\0', '').replace(/[\ud800-\udfff]/gu, ''));
  const requestOfWords = ([one, other]: readonly [string, string]): HttpRequest => ({
    ...PLAIN,
    ...{ headers: { 'X-One': one }, form: [['name', other]], body: other },
  });
  await fc.assert(
    fc.asyncProperty(fc.array(fc.tuple(word, word), { minLength: 30, maxLength: 60 }), async (pairs) => {
      const commands = pairs.map((pair) => curlOf(requestOfWords(pair)));
      expect(await wordsOf(commands.join('\n'))).toEqual(
        pairs.flatMap(([one, other]) => [
          ...['-X', 'PUT', 'https://idp.example/x', '-H', 'Authorization: Bearer the token'],
          ...['-H', `X-One: ${one}`, '--data-urlencode', `name=${other}`, '--data-raw', other],
        ]),
      );
    }),
    { numRuns: 5 },
  );
}, 300_000);

test('every operation of /openapi.json yields a curl command from its examples', async () => {
  expect(api.operations.size).toBeGreaterThan(60);
  const operations = [...api.operations.values()];
  const commands = operations.map((operation) =>
    curlOf(requestOf(operation, draftOf(operation), 'https://x/')),
  );
  const words = await wordsOf(commands.map((command) => `${command}; printf 'next command\\0'`).join('\n'));
  const each = words
    .join('\0')
    .split(/\0?next command(?:\0|$)/)
    .slice(0, -1);
  expect(each).toHaveLength(operations.length);
  for (const [index, operation] of operations.entries()) {
    expect(each[index]).toContain('https://x/');
    expect(each[index]).not.toMatch(/https:\S*[{}]/);
    expect(each[index]?.includes('Bearer the token')).toBe(operation.scopes !== undefined);
  }
});
