import { curlOf, type HttpRequest } from './request.ts';

/** A request as a program, in one language. */
interface Example {
  readonly language: string;
  readonly text: string;
}

/** The request in each language. The token is in the environment variable TOKEN. */
export function examplesOf(request: HttpRequest): readonly Example[] {
  return [
    { language: 'curl', text: curlOf(request) },
    { language: 'TypeScript', text: typeScriptOf(request) },
    { language: 'Python', text: pythonOf(request) },
    { language: 'Go', text: goOf(request) },
  ];
}

/** With `fetch`: Node.js, Bun, Deno. */
function typeScriptOf({ method, url, headers, form, body, isSigned }: HttpRequest): string {
  const headerLines = [
    ...(isSigned ? ["Authorization: 'Bearer ' + process.env.TOKEN"] : []),
    ...Object.entries(headers).map(([name, value]) => `${memberName(name)}: ${JSON.stringify(value)}`),
  ];
  const options = [
    `method: '${method}'`,
    ...(headerLines.length === 0 ? [] : [`headers: {\n    ${headerLines.join(',\n    ')},\n  }`]),
    ...(form.length === 0
      ? []
      : [`body: new URLSearchParams(${indented(JSON.stringify(Object.fromEntries(form), null, 2))})`]),
    ...(body === undefined ? [] : [`body: ${jsonText(body)}`]),
  ];
  return `const response = await fetch(${JSON.stringify(url)}, {
  ${options.join(',\n  ')},
});
console.log(response.status, await response.text());`;
}

function memberName(name: string): string {
  return /^[A-Za-z_]\w*$/.test(name) ? name : `'${name}'`;
}

/** `JSON.stringify` of the value that the text has; another text as a string. */
function jsonText(body: string): string {
  const value = parsed(body);
  return value === undefined
    ? JSON.stringify(body)
    : `JSON.stringify(${indented(JSON.stringify(value, null, 2))})`;
}

/** Continues a text of several lines two columns further in. */
function indented(text: string): string {
  return text.replaceAll('\n', '\n  ');
}

/** With the standard library alone. */
function pythonOf({ method, url, headers, form, body, isSigned }: HttpRequest): string {
  const value = body === undefined ? undefined : parsed(body);
  const json = `json.dumps(${pythonLiteral(value, '    ')}).encode()`;
  const text = value === undefined ? `${JSON.stringify(body)}.encode()` : json;
  const formText = `urllib.parse.urlencode(${pythonLiteral(Object.fromEntries(form), '    ')}).encode()`;
  const headerLines = [
    ...(isSigned ? [`"Authorization": f"Bearer {os.environ['TOKEN']}"`] : []),
    ...Object.entries(headers).map(([name, each]) => `${JSON.stringify(name)}: ${JSON.stringify(each)}`),
  ];
  const options = [
    JSON.stringify(url),
    `method="${method}"`,
    ...(headerLines.length === 0 ? [] : [`headers={\n        ${headerLines.join(',\n        ')},\n    }`]),
    ...(form.length === 0 ? [] : [`data=${formText}`]),
    ...(body === undefined ? [] : [`data=${text}`]),
  ];
  const modules = [
    ...(value === undefined ? [] : ['json']),
    ...(isSigned ? ['os'] : []),
    'urllib.error',
    ...(form.length === 0 ? [] : ['urllib.parse']),
    'urllib.request',
  ];
  return `${modules.map((each) => `import ${each}`).join('\n')}

request = urllib.request.Request(
    ${options.join(',\n    ')},
)
try:
    response = urllib.request.urlopen(request)
except urllib.error.HTTPError as error:
    response = error
print(response.status, response.read().decode())`;
}

/** A JSON value as a Python literal. */
function pythonLiteral(value: unknown, indent: string): string {
  const inner = `${indent}    `;
  if (value === null) return 'None';
  if (typeof value === 'boolean') return value ? 'True' : 'False';
  if (typeof value !== 'object') return JSON.stringify(value);
  const isList = Array.isArray(value);
  const entries = isList
    ? value.map((each) => pythonLiteral(each, inner))
    : Object.entries(value).map(([name, each]) => `${JSON.stringify(name)}: ${pythonLiteral(each, inner)}`);
  const [open, close] = isList ? '[]' : '{}';
  if (entries.length === 0) return `${open}${close}`;
  return `${open}\n${entries.map((each) => `${inner}${each},\n`).join('')}${indent}${close}`;
}

/** With the standard library alone. */
function goOf({ method, url, headers, form, body, isSigned }: HttpRequest): string {
  const text = form.length > 0 ? new URLSearchParams(Object.fromEntries(form)).toString() : body;
  const headerLines = [
    ...(isSigned ? ['"Authorization", "Bearer "+os.Getenv("TOKEN")'] : []),
    ...Object.entries(headers).map(([name, value]) => `${JSON.stringify(name)}, ${JSON.stringify(value)}`),
    ...(form.length > 0 ? ['"Content-Type", "application/x-www-form-urlencoded"'] : []),
  ];
  const packages = [
    ...['fmt', 'io', 'log', 'net/http'],
    ...(isSigned ? ['os'] : []),
    ...(text === undefined ? [] : ['strings']),
  ];
  const reader = text === undefined ? 'nil' : `strings.NewReader(${goString(text)})`;
  return `package main

import (
${packages.map((each) => `\t"${each}"`).join('\n')}
)

func main() {
\trequest, err := http.NewRequest("${method}", ${JSON.stringify(url)}, ${reader})
\tif err != nil {
\t\tlog.Fatal(err)
\t}
${headerLines.map((each) => `\trequest.Header.Set(${each})\n`).join('')}\tresponse, err := http.DefaultClient.Do(request)
\tif err != nil {
\t\tlog.Fatal(err)
\t}
\tdefer response.Body.Close()
\ttext, err := io.ReadAll(response.Body)
\tif err != nil {
\t\tlog.Fatal(err)
\t}
\tfmt.Println(response.StatusCode, string(text))
}`;
}

/** A raw string, if the text permits one. */
function goString(text: string): string {
  return /[`\r]/.test(text) || !text.includes('\n') ? JSON.stringify(text) : `\`${text}\``;
}

function parsed(json: string): unknown {
  try {
    return JSON.parse(json);
  } catch {
    return undefined;
  }
}
