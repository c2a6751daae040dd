import { describe, expect, test } from 'bun:test';
import { LIMITS } from '../../../src/model/limits.ts';
import { exchangeBytes, getRequest } from '../../support/raw_http.ts';
import {
  createParents,
  createRecord,
  FULL_SCOPE,
  KINDS,
  OFFLINE,
  type RecordBody,
  rowCounts,
} from '../../support/resource_cases.ts';
import { comparableResponse, errorsOf, startService } from '../../support/service.ts';

/** The form of a request body: JSON of one media type, of a bounded size, with `data`. */

const service = await startService(OFFLINE);
const token = await service.token(FULL_SCOPE);
const home = await createParents(service, token);

const JSON_TYPE = { 'Content-Type': 'application/json' };
const bytes = (...parts: (string | number)[]) =>
  Buffer.concat(parts.map((part) => Buffer.from(typeof part === 'string' ? part : [part])));

/**
 * Bodies that every resource rejects, with the pointer of the error; the empty pointer is the whole body. `text` is a
 * valid body.
 */
const REJECTED: [what: string, body: (text: string) => string | Buffer, pointer: string][] = [
  ['an empty body', () => '', ''],
  ['a space', () => ' ', ''],
  ['invalid JSON', () => '{data:{}}', ''],
  ['half of the text', (text) => text.slice(0, -1), ''],
  ['a bracket after it', (text) => `${text}]`, ''],
  ['two JSON texts', (text) => text + text, ''],
  ['a byte order mark', (text) => bytes(0xef, 0xbb, 0xbf, text), ''],
  ['a comment', (text) => `/* */${text}`, ''],
  ['a trailing comma', (text) => text.replace(/}}$/, '},}'), ''],
  ['single quotes', (text) => text.replaceAll('"', "'"), ''],
  ['NaN', (text) => text.replace('{"data":{', '{"data":{"x":NaN,'), ''],
  ['a raw line feed in a text', (text) => text.replace('{"data":{', '{"data":{"x":"a\nb",'), ''],
  ['a raw NUL', (text) => text.replace('{"data":{', '{"data":{"x":"\0",'), ''],
  ['a NUL after it', (text) => `${text}\0`, ''],
  ['a form', () => 'data=name&type=realm', ''],
  ['null', () => 'null', ''],
  ['an array', (text) => `[${text}]`, ''],
  ['a text', (text) => JSON.stringify(text), ''],
  ['a number', () => '7', ''],
  ['a boolean', () => 'true', ''],
  ['no data', () => '{}', '/data'],
  ['its members without data', (text) => JSON.stringify(JSON.parse(text).data), '/data'],
  ['data in another case', (text) => text.replace('"data"', '"Data"'), '/data'],
  ['data null', () => '{"data":null}', '/data'],
  ['data in an array', (text) => text.replace('"data":', '"data":[').replace(/}$/, ']}'), '/data'],
  ['data a text', () => '{"data":"long-enough"}', '/data'],
  ['data a number', () => '{"data":7}', '/data'],
  ['30,000 levels', () => '['.repeat(30_000), ''],
  ['30,000 levels, closed', () => '{"a":'.repeat(10_000) + '}'.repeat(10_000), ''],
  ['invalid UTF-8', (text) => bytes(text.slice(0, -2), ',"x":"', 0xff, '"}}'), ''],
  ['Latin-1', (text) => bytes(text.slice(0, -2), ',"x":"', 0xfc, '"}}'), ''],
  ['overlong UTF-8', (text) => bytes(text.slice(0, -2), ',"x":"', 0xc0, 0xaf, '"}}'), ''],
  ['a surrogate in UTF-8', (text) => bytes(text.slice(0, -2), ',"x":"', 0xed, 0xa0, 0x80, '"}}'), ''],
  ['half a character', (text) => bytes(text.slice(0, -2), ',"x":"', 0xe2, 0x82), ''],
  ['UTF-16', (text) => Buffer.from(text, 'utf16le'), ''],
];

/** Values with this nesting depth. */
const nested = (levels: number) => '{"a":'.repeat(levels) + 1 + '}'.repeat(levels);
const arrays = (levels: number) => '['.repeat(levels) + ']'.repeat(levels);

/** Unusual bodies that are accepted. */
const ACCEPTED: [what: string, body: (text: string) => string][] = [
  ['10,000 levels of objects', (text) => text.replace('{"data":{', `{"data":{"x":${nested(10_000)},`)],
  ['30,000 levels of arrays', (text) => text.replace('{"data":{', `{"data":{"x":${arrays(30_000)},`)],
  ['brackets in a string', (text) => text.replace('{"data":{', `{"data":{"x":"\\"${'['.repeat(99)}\\\\",`)],
  ['white space between all tokens', (text) => `\r\n\t ${text.replaceAll(':{', ' :\n{')} \r\n`],
  ['escaped names', (text) => text.replace('"data"', '"\\u0064ata"').replace('"type"', '"t\\u0079pe"')],
  ['further members next to data', (text) => text.replace('{"data"', '{"links":{},"meta":[],"data"')],
  ['data twice', (text) => text.replace('{"data"', '{"data":{"type":7},"data"')],
  ['a member twice', (text) => text.replace('"type":', '"type":"long-enough","type":')],
];

const ACCEPTED_TYPES = [
  ...['application/json', 'APPLICATION/JSON', 'application/json;charset=utf-8', 'application/json ; v=1'],
  'application/json; charset="x"; q=0.1',
];
const REJECTED_TYPES = [
  ...['text/plain', 'text/json', 'application/x-www-form-urlencoded', 'multipart/form-data; boundary=x'],
  ...['application/jsonp', 'application/vnd.api+json', 'application/ld+json', 'json', '*/*', 'application/*'],
  ...['application/json, text/plain', 'application/xml;application/json'],
];

describe.each([...KINDS])('$name', async (kind) => {
  const { type } = kind.resource;
  const { path } = await createRecord(service, token, { kind, home });

  /** Sends a POST and a PUT with a body made from a valid one; returns the responses. */
  async function both(spell: (text: string) => string | Buffer, headers: Record<string, string> = JSON_TYPE) {
    const post = spell(JSON.stringify({ data: kind.fresh(home) }));
    const put = spell(JSON.stringify({ data: { type } }));
    const send = (body: string | Buffer) => new Uint8Array(Buffer.from(body));
    return [
      await service.post(kind.collection(home), token, send(post), headers),
      await service.put(path, token, send(put), headers),
    ];
  }

  test(`malformed bodies of POST and PUT of a ${kind.name} are 400, and nothing is written`, async () => {
    const before = await rowCounts(service);
    const record = await comparableResponse(await service.get(path, token));
    for (const [what, spell, pointer] of REJECTED) {
      for (const answer of await both(spell)) {
        const [error] = await errorsOf(answer);
        expect([what, answer.status, error?.source?.pointer]).toEqual([what, 400, pointer]);
      }
    }
    expect(await rowCounts(service)).toEqual(before);
    expect(await comparableResponse(await service.get(path, token))).toBe(record);
  });

  test(`unusual valid bodies of a ${kind.name} are accepted; of duplicate members the last one counts`, async () => {
    for (const [what, spell] of ACCEPTED) {
      expect([what, ...(await both(spell)).map(({ status }) => status)]).toEqual([what, 201, 200]);
    }
  });

  test(`a body of a ${kind.name} is 415 in another media type; JSON with parameters and no type are accepted`, async () => {
    for (const media of ACCEPTED_TYPES) {
      const answers = await both((text) => text, { 'Content-Type': media });
      expect([media, ...answers.map(({ status }) => status)]).toEqual([media, 201, 200]);
    }
    const untyped = await both((text) => text, {});
    expect(untyped.map(({ status }) => status)).toEqual([201, 200]);
    const before = await rowCounts(service);
    for (const media of REJECTED_TYPES) {
      const answers = await both((text) => text, { 'Content-Type': media });
      expect([media, ...answers.map(({ status }) => status)]).toEqual([media, 415, 415]);
    }
    expect(await rowCounts(service)).toEqual(before);
  });

  test(`a body of a ${kind.name} may have 65,536 bytes; a larger one is 413, with Content-Length and without`, async () => {
    const sized = (size: number) => (text: string) =>
      text.replace('{"data":{', `{"pad":"${'x'.repeat(size - text.length - '"pad":"",'.length)}","data":{`);
    const fits = await both(sized(LIMITS.bodyBytesMax));
    expect(fits.map(({ status }) => status)).toEqual([201, 200]);
    const before = await rowCounts(service);
    for (const size of [LIMITS.bodyBytesMax + 1, 2 ** 20]) {
      expect((await both(sized(size))).map(({ status }) => status)).toEqual([413, 413]);
      const stream = (text: string) => new Blob([sized(size)(text)]).stream();
      const post = await service.post(kind.collection(home), token, stream('{"data":{}}'), JSON_TYPE);
      const put = await service.put(path, token, stream('{"data":{}}'), JSON_TYPE);
      expect([post.status, put.status]).toEqual([413, 413]);
    }
    expect(await rowCounts(service)).toEqual(before);
  });

  test(`DELETE of a ${kind.name} ignores a body of any type and content`, async () => {
    const bodies: [string | undefined, Record<string, string>][] = [
      [undefined, JSON_TYPE],
      [JSON.stringify({ data: { type } }), JSON_TYPE],
      ['not JSON {', JSON_TYPE],
      ['text', { 'Content-Type': 'text/plain' }],
      ['x'.repeat(2 ** 20), JSON_TYPE],
    ];
    for (const [body, headers] of bodies) {
      const made = await createRecord(service, token, { kind, home });
      const answer = await service.del(made.path, token, headers, body);
      expect([answer.status, await answer.text()]).toEqual([204, '']);
      expect((await service.get(made.path, token)).status).toBe(404);
    }
  });

  test(`GET of a ${kind.name} ignores a body and a Content-Type`, async () => {
    const plain = await comparableResponse(await service.get(path, token));
    expect(await comparableResponse(await service.get(path, token, JSON_TYPE))).toBe(plain);
    const headers = `Authorization: Bearer ${token}\r\nContent-Type: text/plain\r\nContent-Length: 7\r\n`;
    const { responses } = await exchangeBytes(service.url, `${getRequest(path, headers)}{"data"`);
    const body = (await (await service.get(path, token)).json()) as RecordBody;
    expect(responses).toMatchObject([{ status: 200, body: JSON.stringify(body) }]);
  });
});

test('a write without the right to it is 401 or 403 before its body is read', async () => {
  const reader = await service.token('profile-infos:read users:read profiles:read realms:read');
  for (const kind of KINDS) {
    const { path } = await createRecord(service, token, { kind, home });
    const big = { 'Content-Type': 'text/plain' };
    for (const [bearer, status] of [
      ['nobody', 401],
      [reader, 403],
    ] as const) {
      const answers = [
        await service.post(kind.collection(home), bearer, 'x'.repeat(2 ** 17), big),
        await service.put(path, bearer, 'x'.repeat(2 ** 17), big),
        await service.del(path, bearer, big, 'x'.repeat(2 ** 17)),
      ];
      expect(answers.map((answer) => answer.status)).toEqual([status, status, status]);
      const challenge = answers[0]?.headers.get('www-authenticate') ?? '';
      if (status === 403) expect(challenge).toContain(`scope="${kind.resource.scope}:write"`);
    }
  }
});
