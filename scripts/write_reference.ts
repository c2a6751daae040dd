import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { Command } from 'commander';
import { DATABASE_SETTINGS, SETTINGS } from '../src/app/config/parse.ts';
import type { Setting } from '../src/app/config/setting.ts';
import { createProgram } from '../src/cli/cli.ts';
import { examplesOf } from '../src/cli/examples.ts';
import { faultExample } from '../src/http/openapi/examples.ts';
import { FAULTS, GRANT_FAULTS, RETRYABLE, TITLES } from '../src/model/fault.ts';
import { LIMITS } from '../src/model/limits.ts';
import { METRICS, type MetricDeclaration } from '../src/ops/metrics/declarations.ts';
import { EXIT } from '../src/ops/process/exit.ts';
import { LOG_LEVELS } from '../src/ops/process/log.ts';

/** Writes the pages of docs/reference/ from the tables of the program: `npm run reference`. */

const ROOT = fileURLToPath(new URL('..', import.meta.url));

/** The text of each page, by its path. */
export async function referencePages(): Promise<Readonly<Record<string, string>>> {
  return {
    'docs/reference/settings.md': settingsPage(),
    'docs/reference/limits.md': limitsPage(),
    'docs/reference/faults.md': faultsPage(),
    'docs/reference/log-events.md': logEventsPage(),
    'docs/reference/metrics.md': metricsPage(),
    'docs/reference/cli.md': await cliPage(),
  };
}

function settingsPage(): string {
  const rows = Object.values<Setting>(SETTINGS).map((setting) => [
    setting.flag === undefined ? 'none' : code(`--${setting.flag}`, setting.value),
    code(setting.env),
    setting.defaultValue ? code(setting.defaultValue) : 'none',
    [sentence(setting.doc), setting.details].filter(Boolean).join(' '),
    plain(setting.expects),
  ]);
  return page(
    'Settings',
    'src/app/config/settings.ts',
    `A flag takes precedence over its environment variable, and that over the settings file. All mistakes are printed at once, and the command does not start. A
variable that begins with \`AUTHREALM_\`, and is neither listed here nor [of a client](../client.md#at-a-terminal), is a mistake.

The service reads no \`.env\` file. The value of a switch is \`true\`, \`false\`,
\`1\` or \`0\`. Commands that open the database take the first
${DATABASE_SETTINGS.length} settings, \`--config\` to \`--migrate\`, the *database settings*.`,
    table(['Flag', 'Variable', 'Default', 'Meaning', 'Value'], rows),
  );
}

/** The units in the names of limits, and how the page writes them after a number. */
const UNITS = {
  Bytes: 'bytes',
  Characters: 'characters',
  Ms: 'ms',
  Seconds: 's',
};

/** Marks the limits that callers meet. Only these are on the page. */
const MET_BY_CALLERS = ' @public';

function limitsPage(): string {
  const meanings = commentsIn('src/model/limits.ts');
  const met = Object.entries(LIMITS).filter(([name]) => meanings(name).endsWith(MET_BY_CALLERS));
  return page(
    'Limits',
    'src/model/limits.ts',
    `The bounds that callers meet, by their names in the program. They are not settings. Requests of a caller are limited only if
[rates](../guides/rates-and-overload.md) are set.`,
    ...met.map(([name, bound]) => {
      const [, unit] =
        Object.entries(UNITS).find(([part]) => new RegExp(`${part}(?:Max|Min)?$`).test(name)) ?? [];
      const value = [bound.toLocaleString('en-US'), unit].filter(Boolean).join(' ');
      return definition([name, value], meanings(name).slice(0, -MET_BY_CALLERS.length));
    }),
  );
}

function faultsPage(): string {
  const meanings = commentsIn('src/model/fault.ts');
  const rows = Object.entries(FAULTS).map(([name, { status, detail }]) => {
    return { name, status, detail: `${code(detail)}\\\n` };
  });
  // Token endpoints have no other text.
  const grants = Object.entries(GRANT_FAULTS).map(([name, status]) => ({ name, status, detail: '' }));
  const byStatus = Object.groupBy([...rows, ...grants], ({ status }) => status);
  return page(
    'Faults',
    'src/model/fault.ts',
    `Every error response is one of these, by status. Its body repeats no value of the request:`,
    `\`\`\`json\n${JSON.stringify(faultExample('invalid'))}\n\`\`\``,
    `There is one error for each member, parameter or header that broke a rule: \`detail\` says which, and \`source\` has its \`pointer\` or
\`parameter\`. Otherwise \`detail\` is the text below. ${[...RETRYABLE].join(' and ')} have \`Retry-After: 1\`: the same request may succeed later. Token
endpoints return the code as \`error\`. Requests that the runtime rejects have [no body](../guides/network.md#requests-that-the-runtime-rejects).`,
    ...Object.entries(byStatus).flatMap(([status, same = []]) => [
      `## ${status} ${TITLES[Number(status) as keyof typeof TITLES]}`,
      ...same.map(({ name, detail }) => `### ${name}\n\n${detail}${linked(meanings(name))}`),
    ]),
  );
}

/** Turns the citations of pages in a comment into links from a page of docs/reference/. */
function linked(text: string): string {
  return text.replaceAll(/\bdocs\/([\w/-]+\.md)(?:#([\w-]+))?/g, (_, path: string, anchor?: string) => {
    const name = anchor ?? path.replace(/^.*\/(?:\d+-)?|\.md$/g, '');
    return `[${name.replaceAll('-', ' ')}](../${path}${anchor ? `#${anchor}` : ''})`;
  });
}

function logEventsPage(): string {
  const meanings = commentsIn('src/ops/process/log.ts');
  const source = read('src/ops/process/log.ts');
  const rows = Object.entries(LOG_LEVELS).map(([event, level]) => {
    const [, members = ''] = new RegExp(`event: '${event}';?([^}]*)\\}`).exec(source) ?? [];
    const names = [...members.matchAll(/readonly (\w+\??):/g)].map(([, name = '']) => name);
    return [code(event), String(level), names.map((name) => code(name)).join(', '), meanings(event)];
  });
  return page(
    'Log events',
    'src/ops/process/log.ts',
    `Standard error has one line of JSON for each event, with the members \`level\`, \`time\`, \`event\` and those below; a member
with \`?\` may be absent. No member has a URL of a request, a header, an error message or a value of a record, so tokens, subjects,
usernames and secrets cannot be logged. See [logs](../guides/monitoring.md#logs).`,
    table(['Event', 'Level', 'Members', 'Meaning'], rows),
  );
}

function metricsPage(): string {
  const rows = Object.values<MetricDeclaration>(METRICS).map(
    ({ kind, across = 'sum', name, labels = [], help, details }) => [
      code(name),
      kind,
      labels.map((label) => code(label)).join(', '),
      [help, details].filter(Boolean).join(' '),
      across,
    ],
  );
  return page(
    'Metrics',
    'src/ops/metrics/declarations.ts',
    `With \`--metrics\`, \`GET /metrics\` on a separate listener returns these metrics in the Prometheus text format: see
[metrics](../guides/monitoring.md#metrics). \`method\` and \`route\` are the method and the path pattern of an operation. \`webhook\` is the
identifier of a target; there are at most ${LIMITS.webhooksMax}. The last column says how the values of several serving processes are combined.`,
    table(['Name', 'Kind', 'Labels', 'Meaning', 'Processes'], rows),
  );
}

async function cliPage(): Promise<string> {
  const program = await createProgram({}, () => undefined);
  const meanings = commentsIn('src/ops/process/exit.ts');
  const sections = program.commands.flatMap((command) => sectionsOf(command));
  const names = sections.flatMap((part) => (part.startsWith('## ') ? [part.slice('## '.length)] : []));
  const index = names.map((name) => `[${name}](#${name.replaceAll(' ', '-')})`).join(' · ');
  const codes = Object.entries(EXIT).map(([name, number]) => [String(number), meanings(name)]);
  return page(
    'Commands',
    'src/cli/',
    `Commands that open the database may run while the service runs, except \`restore\` and \`compact\`. Those that call a running service take
\`--url\` and a client instead: see [the commands for records](../client.md#at-a-terminal).`,
    index,
    '## Exit codes',
    table(['Code', 'Meaning'], codes),
    ...sections,
  );
}

/** A section for a command, or one for each of its subcommands. */
function sectionsOf(command: Command): readonly string[] {
  const help = command.createHelp();
  const children = help.visibleCommands(command).filter((child) => child.name() !== 'help');
  if (children.length > 0) return children.flatMap(sectionsOf);
  if (!command.parent || !help.visibleCommands(command.parent).includes(command)) return [];
  const settings = new Set(
    command.options.map(({ long }) => long ?? '').filter((long) => SETTING_FLAGS.has(long)),
  );
  const options = help
    .visibleOptions(command)
    .filter(({ long }) => long !== '--help' && !settings.has(long ?? ''))
    .map((option) => [
      code(help.optionTerm(option)),
      `${option.mandatory ? 'required: ' : ''}${plain(help.optionDescription(option))}`,
    ]);
  const terms = help
    .visibleArguments(command)
    .map((argument) => [code(help.argumentTerm(argument)), plain(help.argumentDescription(argument))]);
  const name = help
    .commandUsage(command)
    .replace(/^authrealm /, '')
    .replace(/ ?[<[].*/, '');
  return [
    `## ${name}`,
    sentence(help.commandDescription(command)),
    `\`\`\`\n${help.commandUsage(command)}\n\`\`\``,
    'For example:',
    `\`\`\`\n${examplesOf(name).join('\n')}\n\`\`\``,
    ...(settings.size > 0 ? [settingsSentence(settings)] : []),
    ...(terms.length + options.length > 0
      ? [table(['Argument or option', 'Meaning'], [...terms, ...options])]
      : []),
  ];
}

const flagOf = (setting: Setting): string => (setting.flag === undefined ? '' : `--${setting.flag}`);
const SETTING_FLAGS = new Set(Object.values<Setting>(SETTINGS).map(flagOf).filter(Boolean));
const DATABASE_FLAGS = DATABASE_SETTINGS.map((name) => flagOf(SETTINGS[name])).filter(Boolean);

function settingsSentence(flags: ReadonlySet<string>): string {
  if (flags.size === SETTING_FLAGS.size) return 'Takes all [settings](settings.md).';
  const opensDatabase = DATABASE_FLAGS.every((flag) => flags.has(flag));
  const others = [...flags].filter((flag) => !opensDatabase || !DATABASE_FLAGS.includes(flag));
  const parts = [...(opensDatabase ? ['the database settings'] : []), ...others.map((flag) => code(flag))];
  return `Takes ${parts.join(', ')}: see [settings](settings.md).`;
}

/** The comment before each member and each log event of a file, as one line. */
function commentsIn(path: string): (name: string) => string {
  const found = read(path).matchAll(
    /\/\*\*((?:(?!\*\/)[\s\S])*)\*\/\s*(?:\| \{\s*readonly event: '(\w+)'|(\w+):)/g,
  );
  const comments = new Map(
    [...found].map(([, text = '', event, member]) => [
      event ?? member,
      text.replaceAll(/\s*\n \s*\* /g, ' ').trim(),
    ]),
  );
  return (name) => {
    const comment = comments.get(name);
    if (comment === undefined) throw new Error(`${path}: ${name} needs a comment that describes it`);
    return comment;
  };
}

function read(path: string): string {
  return readFileSync(join(ROOT, path), 'utf8');
}

/** Formats a text as code; `value` is the placeholder of an option. */
function code(text: string, value?: string): string {
  return `\`${text}${value === undefined ? '' : ` ${value}`}\``;
}

function sentence(text: string): string {
  return plain(`${text.charAt(0).toUpperCase()}${text.slice(1)}.`);
}

/** Escapes the placeholders of a help text, which are not HTML. */
function plain(text: string): string {
  return text.replaceAll('<', '\\<');
}

/** A term in bold, what belongs to it, and its meaning in the next line. */
function definition([term, ...facts]: readonly [string, ...string[]], meaning: string): string {
  return `${[`**${code(term)}**`, ...facts].join(', ')}\\\n${meaning}`;
}

function table(headings: readonly string[], rows: readonly (readonly string[])[]): string {
  const cell = (text: string) => (text === '' ? ' ' : ` ${text.replaceAll('|', '\\|')} `);
  const line = (cells: readonly string[]) => `|${cells.map(cell).join('|')}|`;
  return [line(headings), `|${'---|'.repeat(headings.length)}`, ...rows.map(line)].join('\n');
}

function page(title: string, source: string, ...parts: readonly string[]): string {
  const origin = `Written by \`npm run reference\` from \`${source}\`: edit the texts there.`;
  return `${[`# ${title}`, ...parts, origin].join('\n\n')}\n`;
}

if (import.meta.main) {
  mkdirSync(join(ROOT, 'docs/reference'), { recursive: true });
  for (const [path, text] of Object.entries(await referencePages())) writeFileSync(join(ROOT, path), text);
}
