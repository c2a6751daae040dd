import { exampleOf, type Operation, type Parameter, type Schema } from './document.ts';

/** Where a value of a request goes. */
type Route = Parameter['in'] | 'form';

/** A value that may be sent, with what the document says of it. */
export interface RequestField {
  /** `query.filter`: names it within its operation. */
  readonly key: string;
  readonly place: Route;
  readonly name: string;
  readonly isRequired: boolean;
  readonly description: string | undefined;
  readonly example: string;
  readonly choices: readonly string[];
}

/** What is about to be sent. */
export interface Draft {
  /** By the key of their slot: those that are sent. */
  readonly values: Readonly<Record<string, string>>;
  /** JSON; undefined where the operation takes none. */
  readonly body: string | undefined;
}

const FORM = 'application/x-www-form-urlencoded';
const JSON_TYPE = 'application/json';

/** Everything that a request of an operation can say, beside a JSON body. */
export function requestFields({ parameters, body }: Operation): readonly RequestField[] {
  return [...parameters.map(fieldOfParameter), ...(body?.mediaType === FORM ? formFields(body.content) : [])];
}

function fieldOfParameter({
  in: place,
  name,
  required = false,
  description,
  example,
  schema,
}: Parameter): RequestField {
  return {
    ...{ key: `${place}.${name}`, place, name, description },
    isRequired: required || place === 'path',
    example: textOf(example),
    choices: (schema?.enum ?? []).map(textOf),
  };
}

function formFields(content: NonNullable<Operation['body']>['content']): readonly RequestField[] {
  const examples = (exampleOf(content) ?? {}) as Readonly<Record<string, unknown>>;
  const { properties = {}, required = [] } = content.schema ?? ({} as Schema);
  return Object.entries(properties).map(([name, { description, enum: choices = [] }]) => ({
    ...{ key: `form.${name}`, place: 'form', name, description },
    isRequired: required.includes(name),
    example: textOf(examples[name]),
    choices: choices.map(textOf),
  }));
}

function textOf(value: unknown): string {
  if (value === undefined || value === null) return '';
  return typeof value === 'string' ? value : JSON.stringify(value);
}

/** What the document gives as an example: all that has to be said, and of a form all that it shows. */
export function draftOf(operation: Operation): Draft {
  const { body } = operation;
  const filledIn = requestFields(operation).filter(({ isRequired, place, example }) =>
    place === 'form' ? example !== '' : isRequired,
  );
  return {
    values: Object.fromEntries(filledIn.map(({ key, example }) => [key, example])),
    body: body?.mediaType === JSON_TYPE ? JSON.stringify(exampleOf(body.content) ?? {}, null, 2) : undefined,
  };
}

export interface HttpRequest {
  readonly method: string;
  readonly url: string;
  /** Without `Authorization`. */
  readonly headers: Readonly<Record<string, string>>;
  readonly form: readonly (readonly [name: string, value: string])[];
  readonly body: string | undefined;
  readonly isSigned: boolean;
}

/** The request that a draft comes to; `base` ends with a slash. */
export function requestOf(operation: Operation, { values, body }: Draft, base: string): HttpRequest {
  const sent = requestFields(operation).flatMap(({ key, place, name }) => {
    const value = values[key];
    return value === undefined ? [] : [{ place, name, value }];
  });
  const of = (wanted: Route) => sent.filter(({ place }) => place === wanted);
  const path = operation.path.replace(/\{([^}]+)\}/g, (_, name: string) =>
    encodeURIComponent(values[`path.${name}`] ?? ''),
  );
  const query = new URLSearchParams(
    of('query').map(({ name, value }): [string, string] => [name, value]),
  ).toString();
  return {
    method: operation.method,
    url: base + path.replace(/^\//, '') + (query === '' ? '' : `?${query}`),
    headers: {
      ...(body === undefined ? {} : { 'Content-Type': JSON_TYPE }),
      ...Object.fromEntries(of('header').map(({ name, value }) => [name, value])),
    },
    form: of('form').map(({ name, value }) => [name, value]),
    body,
    isSigned: operation.scopes !== undefined,
  };
}

/** The same as a command for `sh`; the token stays in the variable TOKEN of whoever runs it. */
export function curlOf({ method, url, headers, form, body, isSigned }: HttpRequest): string {
  const isPlain = method === 'GET' || (method === 'POST' && (body !== undefined || form.length > 0));
  return [
    `curl ${isPlain ? '' : `-X ${method} `}${quoted(url)}`,
    ...(isSigned ? ['-H "Authorization: Bearer $TOKEN"'] : []),
    ...Object.entries(headers).map(([name, value]) => `-H ${quoted(`${name}: ${value}`)}`),
    ...form.map(([name, value]) => `--data-urlencode ${quoted(`${name}=${value}`)}`),
    ...(body === undefined ? [] : [`--data-raw ${quoted(body)}`]),
  ].join(' \\\n  ');
}

/** A word as a POSIX shell reads it back, whatever stands in it. */
function quoted(word: string): string {
  return `'${word.replaceAll("'", "'\\''")}'`;
}
