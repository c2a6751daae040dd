import { exampleOf, type Operation, type Parameter, type Schema } from './document.ts';

/** Where a value of a request is sent. */
type Route = Parameter['in'] | 'form';

/** An input of a request, as documented. */
export interface RequestField {
  /** Unique within the operation, such as `query.filter`. */
  readonly key: string;
  readonly place: Route;
  readonly name: string;
  readonly isRequired: boolean;
  readonly description: string | undefined;
  readonly example: string;
  readonly choices: readonly string[];
}

/** The edited request. */
export interface Draft {
  /** The values to send, by key. */
  readonly values: Readonly<Record<string, string>>;
  /** JSON text; undefined if the operation takes no JSON body. */
  readonly body: string | undefined;
}

const FORM = 'application/x-www-form-urlencoded';
const JSON_TYPE = 'application/json';

/** The inputs of an operation, except a JSON body. */
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

/** A draft from the examples of the document: required parameters, and all form fields. */
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

/** Builds the request of a draft; `base` ends with a slash. */
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

/** The request as a curl command for `sh`; the token is in the variable TOKEN. */
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

/** Quotes a word for a POSIX shell. */
function quoted(word: string): string {
  return `'${word.replaceAll("'", "'\\''")}'`;
}
