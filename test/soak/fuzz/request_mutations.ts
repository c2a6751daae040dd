import { bodyMembers } from '../../support/openapi_bodies.ts';
import type { Draw } from './draw.ts';
import { type DraftContext, drawMisfit, encoded, type RequestDraft } from './request_draft.ts';
import { hostileText, hostileValue, withText } from './texts.ts';

/** Makes one part of a request invalid, or at least unusual. */
type Mutation = (draft: RequestDraft, workshop: DraftContext, mark: string) => void | Promise<void>;

const pathParameter: Mutation = (draft, { draw, observed: finds }, mark) => {
  const names = Object.keys(draft.path);
  if (names.length === 0) return;
  const name = draw.one(names);
  const value = draft.path[name] ?? '';
  draft.path[name] = draw.one([
    finds.id(draw),
    value.toUpperCase(),
    value.slice(1),
    `${value}${mark}`,
    hostileText(draw, mark),
    crypto.randomUUID(),
  ]);
};

const pathSpelling: Mutation = (draft, { draw }, mark) => {
  draft.rewritePath = draw.one<(path: string) => string>([
    (path) => `${path}/`,
    (path) => path.replaceAll('/', '//'),
    (path) => path.replace(/(?<=.)\/(?=[^/]*$)/, '%2F'),
    (path) => path.replace('-', '%2D'),
    (path) => path.toUpperCase(),
    (path) => `${path}/${mark}`,
    (path) => path.replace(/[^/]+$/, '..'),
    (path) => `${path};${mark}`,
    (path) => `/${mark}/..${path}`,
    (path) => path.replace(/[^/]+$/, '%zz'),
    (path) => `${path}%00`,
  ]);
};

const queryParameter: Mutation = (draft, { draw, observed: finds }, mark) => {
  const names = draft.operation.parameters.filter((each) => each.in === 'query').map(({ name }) => name);
  const name = draw.one([...names, 'filter', 'sort', 'page[after]', 'page[limit]', 'include', mark]);
  const value = draw.one([
    hostileText(draw, mark),
    finds.cursor(draw),
    filterOf(draw, mark),
    String(draw.below(20_000)),
  ]);
  const isRaw = draw.happens(0.15);
  const pair = `${draw.happens(0.5) ? encoded(name) : name}=${isRaw ? draw.one(['%', '%zz', '%ff', '+', '']) : encoded(value)}`;
  const at = draft.query.findIndex((each) => decodeURIComponent(each.split('=')[0] ?? '') === name);
  // Replaces the parameter, or repeats it.
  if (at >= 0 && draw.happens(0.6)) draft.query[at] = pair;
  else draft.query.push(pair);
};

const ATTRIBUTES = [
  'id',
  'name',
  'email',
  'subject',
  'issuer',
  'username',
  'created_at',
  'password_profile_id',
  'none',
];
const OPERATORS = ['eq', 'in', 'like', 'ilike', 'gt', 'ge', 'lt', 'le', 'text', 'is_null', 'EQ', ''];

/** A text that resembles a filter. */
function filterOf(draw: Draw, mark: string): string {
  const term = (depth: number): string => {
    if (depth > 0 && draw.happens(0.3)) return `(${term(depth - 1)}|${term(depth - 1)})`;
    const value = draw.one([
      mark,
      `"${mark}"`,
      `'${mark}`,
      '*',
      `*${mark}*`,
      hostileText(draw, mark),
      `(${mark})`,
      `${mark},x`,
    ]);
    return `${draw.one(OPERATORS)}(${draw.one(ATTRIBUTES)}${draw.one([',', ',', ',', '', ',,'])}${value})`;
  };
  return Array.from({ length: 1 + draw.below(draw.one([2, 3, 14])) }, () => term(2)).join(
    draw.one([':', ':', '|', ' ']),
  );
}

const HEADERS = [
  'X-Request-Id',
  'If-Match',
  'If-None-Match',
  'Idempotency-Key',
  'Accept',
  'Origin',
  'X-Forwarded-For',
  'Forwarded',
  'Traceparent',
  'Range',
  'Expect-None',
  'Cookie',
  'Last-Event-ID',
  'X-HTTP-Method-Override',
];

const header: Mutation = (draft, { draw, observed: finds }, mark) => {
  const own = draft.operation.parameters.filter((each) => each.in === 'header').map(({ name }) => name);
  const name = draw.one([...own, ...own, ...own, ...HEADERS]);
  const etag = finds.etag(draw);
  const value = draw.one([
    hostileText(draw, mark),
    '',
    '*',
    `${etag}, "${mark}"`,
    Array.from({ length: 300 }, () => etag).join(','),
    `W/${etag}`,
    etag.slice(1),
    mark.repeat(draw.one([6, 22, 200])),
  ]);
  draft.headers[name] = sendable(value);
};

/** The part of a text that a header can carry: one line of bytes. */
function sendable(text: string): string {
  return Buffer.from(text.toWellFormed())
    .toString('latin1')
    .replace(/[\0-\x08\x0a-\x1f\x7f]/g, '')
    .slice(0, 4_000)
    .trim();
}

const token: Mutation = async (draft, { draw, accessTokens: rights }, mark) => {
  const wrong = await rights.wrong(draft.operation, draw, mark);
  if (wrong === undefined) delete draft.headers.Authorization;
  else draft.headers.Authorization = wrong;
};

const member: Mutation = (draft, { draw }, mark) => {
  if (draft.json === undefined) return form(draft, draw, mark);
  const places = bodyMembers(draft.operation.body?.media.schema ?? {}).map(({ at }) => at);
  const at = draw.one([
    ...places,
    ['data', mark],
    [mark],
    ['data', '__proto__'],
    ['data', 'id'],
    ['data', 'relationships'],
  ]);
  const misfit = draw.happens(0.4) ? drawMisfit(draft.operation, draw) : undefined;
  const { at: place, text } = misfit ?? { at, text: hostileValue(draw, mark) };
  draft.body = withText(draft.json, place, text);
  draft.json = undefined;
};

/** Adds a form parameter, or replaces or repeats one. */
function form(draft: RequestDraft, draw: Draw, mark: string): void {
  if (typeof draft.body !== 'string' || draft.body === '') return;
  const names = ['grant_type', 'client_id', 'client_secret', 'scope', 'token', 'token_type_hint', mark];
  const more = `${draw.one(names)}=${encoded(hostileText(draw, mark))}`;
  const parts = draft.body.split('&');
  if (draw.happens(0.5)) parts.push(more);
  else parts[draw.below(parts.length)] = more;
  draft.body = parts.join('&');
}

const body: Mutation = (draft, { draw }, mark) => {
  const text = typeof draft.body === 'string' ? draft.body : '{}';
  const bytes = Buffer.from(text);
  const at = draw.below(Math.max(text.length, 1));
  draft.json = undefined;
  draft.body = draw.one<() => RequestDraft['body']>([
    () => text.slice(0, at),
    () => text + text,
    () => `\ufeff${text}`,
    () => text.replace(/"(\w+)":/, `"$1":"${mark}","$1":`),
    () => text.replace(/("(?:name|type)":)/, `$1"${mark}",$1`),
    () => `${' '.repeat(draw.one([10, 66_000]))}${text}`,
    () =>
      text.replace(mark, () => draw.one(['\\ud800', '\\u0000', '\\u202e', '\\x', '\n', '\\uD83D\\uDE00'])),
    () =>
      new Uint8Array(
        Buffer.concat([bytes.subarray(0, at), Buffer.from([0xff, 0xc0, 0x80]), bytes.subarray(at)]),
      ),
    () => new Uint8Array(Buffer.from(text, 'utf16le')),
    () => text.replace(/}$/, `,"a":${'['.repeat(draw.one([63, 64, 9_000]))}`),
    () =>
      draw.one([
        '',
        'null',
        '0',
        '"',
        '[]',
        '{}',
        '{"data":{}}',
        '{"data":null}',
        `{"${mark}":{}}`,
        '[{"data":{}}]',
      ]),
    () => `${text},`,
    () => text.replaceAll('"', "'"),
    () => `{"data":${'{"data":'.repeat(70)}1${'}'.repeat(71)}`,
    () => `{"data":{${Array.from({ length: 3_000 }, (_, name) => `"${mark}${name}":0`).join()}}}`,
  ])();
};

const MEDIA = [
  'text/plain',
  'application/json; charset=utf-16',
  'application/json;',
  'APPLICATION/JSON',
  'application/vnd.api+json',
  'multipart/form-data; boundary=x',
  'application/x-www-form-urlencoded',
  'application/octet-stream',
  'json',
  '*/*',
  '',
];

const mediaType: Mutation = (draft, { draw }) => {
  draft.headers['Content-Type'] = draw.one(MEDIA);
};

const method: Mutation = (draft, { draw }) => {
  draft.method = draw.one(['GET', 'HEAD', 'POST', 'PUT', 'DELETE', 'PATCH', 'OPTIONS']);
};

/** The mutations that find most errors are listed more often. */
export const MUTATIONS: readonly Mutation[] = [
  ...[pathParameter, pathParameter, pathSpelling, queryParameter, queryParameter, header, header],
  ...[token, member, member, member, body, body, mediaType, method],
];
