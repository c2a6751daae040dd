import { describe, expect, test } from 'bun:test';
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { openApiDocument } from '../../src/app/api/document.ts';
import { SETTINGS } from '../../src/app/config/settings.ts';
import { BOUNDS } from '../../src/client/bounds.ts';
import { accountSettingsOf } from '../../src/model/account_settings.ts';
import { FAULTS } from '../../src/model/fault.ts';
import { LIMITS } from '../../src/model/limits.ts';
import { compileErrors, installTypedClientLibrary } from '../support/client_library.ts';
import { type Block, blocksOf, proseOf, readGuide, runBlocksInTime } from '../support/guides.ts';
import type { JsonObject } from '../support/json_schema.ts';
import { operationsOf, successOf } from '../support/openapi_client.ts';
import { freshFolder } from '../support/service.ts';

/** Runs the requests of the pages in docs/tasks, and compares what the pages say with the program. */

const ROOT = fileURLToPath(new URL('../..', import.meta.url));
const OPERATIONS = operationsOf(openApiDocument('https://idp.example', '0') as JsonObject);

const operation = (id: string) => {
  const found = OPERATIONS.find((each) => each.id === id);
  if (found === undefined) throw new Error(`no operation ${id}`);
  return found;
};
const success = (id: string) => successOf(operation(id));
const shown = (count: number) => count.toLocaleString('en-US');
const SECONDS_PER_DAY = 86_400;
const lookup = operation('get-user-authentication-oidc-profile-info');
const limit = operation('list-changes').parameters.find(({ name }) => name === 'limit');

/** What each page says in figures, without the statuses of errors. */
const FIGURES = {
  'look-up-a-link': [
    `it gets the status ${Object.keys(lookup.responses).find((status) => status.startsWith('3'))}, without a body`,
    `any number by ID, ${LIMITS.filterValuesMax} in a request`,
    `valid for ${shown(Number(SETTINGS.tokenLifetime.defaultValue))} seconds by default`,
    `repeats a request up to ${BOUNDS.retries} times`,
  ],
  'find-a-user': [
    `with the status ${success('search-user-authentication-info')}`,
    `at most ${LIMITS.filterTermsMax} terms and ${shown(LIMITS.filterBytesMax)} bytes`,
    `**Pages** have ${LIMITS.pageRecordsDefault} records by default`,
    `"page": {"limit": ${LIMITS.pageRecordsMax}, "offset": 0}`,
    '/v2/user-authentication-info/search',
  ],
  'create-a-user': [
    `The status is ${success('create-user-authentication-info')}`,
    '/included/0/subject',
    `up to ${LIMITS.fieldErrorsMax}`,
    `**At most ${LIMITS.recordsPerRequestMax} links** come with a user, ${LIMITS.passwordsPerRequestMax} of them with a password`,
    `at least ${LIMITS.passwordCharactersMin} characters`,
    `repeatable for ${LIMITS.idempotencyMsMax / 3_600_000} hours`,
    `at most ${LIMITS.idempotencyKeyCharactersMax} characters`,
  ],
  'change-a-link': [
    `The status is ${success('delete-user-authentication-oidc-profile-info')}, without a body`,
    `up to ${BOUNDS.modifyAttemptsMax} times`,
    `at most ${LIMITS.recordsPerRequestMax} records`,
    '/requests/1/body/data/subject',
  ],
  'follow-changes': [
    'counts the changes of a realm from 1.',
    `at most ${limit?.schema.maximum} events`,
    '`/v2/changes`',
    `serves ${LIMITS.streamsMax} streams, ${LIMITS.streamsPerClientMax} of each client`,
  ],
  'sign-a-person-in': [
    `has the status ${success('check-password')}`,
    `The status is ${success('create-account-management-authentication-token')}:`,
    `valid for ${shown(accountSettingsOf({}).account_management_authentication_token_timeout_secs)} seconds by default`,
    `renewed up to ${LIMITS.accountSignInSecondsMax / SECONDS_PER_DAY} days after the sign-in`,
  ],
} as const;

const pageOf = (name: string) => `../tasks/${name}.md`;
const PAGES = Object.keys(FIGURES).map(pageOf);

/** Statuses of errors with their codes. */
const ERRORS = /\*\*(\d{3}) `(\w+)`/g;

describe.each(Object.entries(FIGURES))('docs/tasks/%s.md', (name, figures) => {
  const page = `docs/tasks/${name}.md`;
  const prose = proseOf(readGuide(pageOf(name)));
  const [beforeOperations = '', named = ''] = prose.split(/Operations? in `\/openapi\.json`:/);
  const operations = [...named.matchAll(/`([a-z-]+)`/g)].map(([, id]) => operation(id ?? ''));

  test(`${page} names operations of the service, and the scopes that they need`, () => {
    expect(operations).not.toEqual([]);
    const scopes = [...new Set(beforeOperations.match(/(?<=`)(?:[\w-]+:(?:read|write)|sign-in)(?=`)/g))];
    const required = operations.map(({ scopes = [], furtherScopes }) => [...scopes, ...furtherScopes]);
    expect(scopes.filter((scope) => !required.flat().includes(scope))).toEqual([]);
    expect(required.filter((each) => !each.some((scope) => scopes.includes(scope)))).toEqual([]);
  });

  test(`${page} has every figure as the program has it, and no other`, () => {
    for (const figure of figures) expect(prose).toContain(figure);
    const rest = figures.reduce((text: string, figure) => text.replace(figure, ''), prose);
    expect(rest.replaceAll(ERRORS, '').match(/.{0,30}\d.{0,30}/g) ?? []).toEqual([]);
  });

  test(`${page} names errors by status and code as operations of it answer them`, () => {
    const errors = [...prose.matchAll(ERRORS)].map(([, status, code]) => [status, code]);
    expect(errors).not.toEqual([]);
    const statuses = operations.flatMap(({ responses }) => Object.keys(responses));
    for (const [status = '', code = ''] of errors) {
      const fault = FAULTS[code as keyof typeof FAULTS];
      expect([code, String(fault?.status), statuses.includes(status)]).toEqual([code, status, true]);
    }
  });

  test(`${page} names headers that the service reads or sends`, () => {
    const headers = OPERATIONS.flatMap(({ parameters, responses }) => [
      ...parameters.filter((each) => each.in === 'header').map((each) => each.name),
      ...Object.values(responses).flatMap((response) => Object.keys(response.headers ?? {})),
    ]);
    const types = OPERATIONS.flatMap(({ responses }) =>
      Object.values(responses).flatMap(({ content = {} }) =>
        Object.keys(content).map((type) => `Accept: ${type}`),
      ),
    );
    const inProse = prose.match(/(?<=`)[A-Z]+[a-z][\w:/ -]*(?=`)/g) ?? [];
    expect(inProse.filter((header) => ![...headers, ...types].includes(header))).toEqual([]);
  });
});

const sh = (text: string): Block => ({ language: 'sh', text });

/** What the reader has: a service. */
const SERVICE = sh(`authrealm init >init.txt
authrealm serve --offline >serve.log 2>&1 &
service=$!
until curl -sf http://127.0.0.1:8080/readyz || ! kill -0 "$service"; do sleep 0.1; done
`);

/** Runs shell blocks with a service. Returns their outputs. */
async function runWithService(blocks: readonly Block[], environment: Record<string, string> = {}) {
  const { outputs } = await runBlocksInTime(
    [SERVICE, ...blocks, sh('kill "$service"\n')],
    { PATH: `${join(ROOT, 'bin')}:${process.env.PATH}`, ...environment },
    async () => freshFolder(),
  );
  return outputs.slice(1, -1);
}

/** Values that differ from run to run, by their form. */
const FORMS: readonly (readonly [RegExp, string])[] = [
  [/\bhttp:\/\/127\.0\.0\.1:\d+/g, '<service>'],
  [/\b\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z\b/g, '<time>'],
  [/^\d+-[\da-f]{16}$/, '<event>'],
  [/^[\da-f]{16}$/, '<revision>'],
  [/^\d{15}$/, '<sequence>'],
  [/^"[\da-f]{16}-[\w-]{8}"$/, '<etag>'],
  [/^[\da-f]{20}-[\da-z]+$/, '<request>'],
  [/^ey[\w-]+\.[\w-]+\.[\w-]+$/, '<token>'],
  [/^[\w-]{60,}$/, '<opaque>'],
];
const ID = /[\da-f]{8}(?:-[\da-f]{4}){3}-[\da-f]{12}/g;

/** An answer with the forms of such values, and IDs numbered by their first place in it. */
function formOf(json: string): unknown {
  const ids: string[] = [];
  const numberOf = (id: string) => {
    if (!ids.includes(id)) ids.push(id);
    return `<ID ${ids.indexOf(id)}>`;
  };
  return JSON.parse(json, (_, value) =>
    typeof value === 'string'
      ? FORMS.reduce((text, [form, name]) => text.replace(form, name), value).replaceAll(ID, numberOf)
      : value,
  );
}

test('the pages of docs/tasks show each answer as the service gives it to the request before', async () => {
  const blocks = PAGES.flatMap(blocksOf).filter(({ language }) => language !== 'ts');
  const requests = blocks.filter(({ language }) => language === 'sh');
  const outputs = await runWithService(requests);
  const outputOf = (words: string) =>
    outputs[requests.findIndex(({ text }) => text.includes(words))] ?? `no request with ${words}`;
  let answered = 0;
  for (const [index, { language, text }] of blocks.entries()) {
    const request = blocks[index - 1];
    if (language !== 'json' || request === undefined) continue;
    expect(formOf(outputs[requests.indexOf(request)] ?? '')).toEqual(formOf(text));
    answered += 1;
  }
  expect(answered).toBe(10);
  // The requests without an answer on their page.
  expect(JSON.parse(outputOf('eq(username,JANE)')).data).toEqual([
    expect.objectContaining({ username: 'jane' }),
  ]);
  expect(outputOf('-X DELETE')).toBe('204\n');
}, 300_000);

test('the programs of docs/tasks compile under strict TypeScript, and do what their pages say', async () => {
  const folder = join(freshFolder(), 'programs');
  mkdirSync(folder);
  await installTypedClientLibrary(folder);
  const [variables] = blocksOf(PAGES[0] ?? '');
  if (variables === undefined) throw new Error('the first page has no block');
  const programs = PAGES.flatMap(blocksOf).filter(({ language }) => language === 'ts');
  const files = programs.map((_, index) => `program_${index}.mts`);
  for (const [index, { text }] of programs.entries()) writeFileSync(join(folder, files[index] ?? ''), text);
  expect(await compileErrors(folder, files, 'nodenext')).toEqual([]);

  const runs = files.map((file) => sh(`"$RUNTIME" "$PROGRAMS/${file}"\n`));
  const environment = { RUNTIME: process.execPath, PROGRAMS: folder };
  const [, ...outputs] = await runWithService([variables, ...runs], environment);
  const [looked, found, created, changed, followed, signedIn] = outputs.map((output) =>
    output.replaceAll(ID, '<ID>'),
  );
  expect([looked, found, created, changed, signedIn]).toEqual([
    '108204268033311374519 https://accounts.google.com\n',
    'Jane Doe\nJane Doe\nJane Doe jane@example.com <ID>\n',
    'John Doe john\n',
    '108204268033311374520\n',
    'signed in <ID>\n',
  ]);
  const feed = (followed ?? '').split('\n');
  expect(feed[0]).toBe('authentication-realm.created <ID>');
  expect(feed.at(-3)).toStartWith(
    'user-authentication-oidc-profile-info.deleted user-authentication-info/<ID>',
  );
}, 300_000);
