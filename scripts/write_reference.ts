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
  return page(
    'Settings',
    'src/app/config/settings.ts',
    `A flag takes precedence over its environment variable, and that over the settings file. All mistakes are printed at once, and the
command does not start. A variable that begins with \`AUTHREALM_\`, and is neither listed here nor [of a client](../client.md#at-a-terminal), is
a mistake. The service reads no \`.env\` file. The value of a switch is \`true\` or \`false\`.

The first ${DATABASE_SETTINGS.length}, \`--config\` to \`--migrate\`, are the *database settings*.`,
    ...Object.values<Setting>(SETTINGS).map((setting) => {
      const { flag, value, env, defaultValue, expects, doc, details } = setting;
      const names = flag === undefined ? [env] : [value ? `--${flag} ${value}` : `--${flag}`, code(env)];
      const range = / (from .+ to .+)/.exec(expects)?.[1];
      const facts = [
        ...names,
        ...(defaultValue ? [`default ${code(defaultValue)}`] : []),
        ...(range ? [range] : []),
      ];
      return definition(facts, [sentence(doc), details].filter(Boolean).join(' '));
    }),
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
  return page(
    'Log events',
    'src/ops/process/log.ts',
    `Standard error has one line of JSON, or text, for each event: \`level\` (30 information, 40 warning, 50 error), \`time\`, \`event\` and the members below; one
with \`?\` may be absent. No member has a request's URL, a header, an error message or a record's value. See
[logs](../guides/monitoring.md#logs). An event with \`count\` is logged at once; further ones of a second are one line with their number.`,
    ...Object.entries(LOG_LEVELS).map(([event, level]) => {
      const [, members = ''] = new RegExp(`event: '${event}';?([^}]*)\\}`).exec(source) ?? [];
      const names = [...members.matchAll(/readonly (\w+\??):/g)].map(([, name = '']) => code(name));
      return definition([event, String(level), ...names], meanings(event));
    }),
  );
}

function metricsPage(): string {
  return page(
    'Metrics',
    'src/ops/metrics/declarations.ts',
    `With \`--metrics\`, \`GET /metrics\` on a separate listener returns these metrics in the Prometheus text format: see
[metrics](../guides/monitoring.md#metrics). \`method\` and \`route\` are the method and the path pattern of an operation; \`webhook\` is the
identifier of one of at most ${LIMITS.webhooksMax} targets. Values of several serving processes are added, except for a minimum (\`min\`) or maximum (\`max\`).`,
    ...Object.values<MetricDeclaration>(METRICS).map(
      ({ kind, across = 'sum', name, labels = [], help, details }) => {
        const facts = [...labels.map((label) => code(label)), ...(across === 'sum' ? [] : [across])];
        return definition([name, kind, ...facts], [help, details].filter(Boolean).join(' '));
      },
    ),
  );
}

async function cliPage(): Promise<string> {
  const program = await createProgram({}, () => undefined);
  const meanings = commentsIn('src/ops/process/exit.ts');
  const described = new Map<string, string>();
  const sections = program.commands.flatMap((command) => sectionsOf(command, described));
  const names = sections.flatMap((part) => (part.startsWith('## ') ? [part.slice('## '.length)] : []));
  return page(
    'Commands',
    'src/cli/',
    `If its section does not say otherwise, a command takes the [database settings](settings.md). It may run while the service runs, except
\`restore\` and \`compact\`. Commands that call a running service take \`--url\` and a client: see
[the commands for records](../client.md#at-a-terminal).`,
    names.map((name) => `[${name}](#${name.replaceAll(' ', '-')})`).join(', '),
    '## Exit codes',
    ...Object.entries(EXIT).map(([name, number]) => definition([String(number)], meanings(name))),
    ...sections,
  );
}

/** An option of the commands for records alone. */
const RECORD_OPTION = '--client-secret-file';

/**
 * A section for a command, or one for each of its subcommands. An option that an earlier command of the same group has in the same words is
 * only named: `described` has the section of each.
 */
function sectionsOf(command: Command, described: Map<string, string>): readonly string[] {
  const help = command.createHelp();
  const children = help.visibleCommands(command).filter((child) => child.name() !== 'help');
  if (children.length > 0) return children.flatMap((child) => sectionsOf(child, described));
  if (!command.parent || !help.visibleCommands(command.parent).includes(command)) return [];
  const settings = new Set(
    command.options.map(({ long }) => long ?? '').filter((long) => SETTING_FLAGS.has(long)),
  );
  const name = help
    .commandUsage(command)
    .replace(/^authrealm /, '')
    .replace(/ ?[<[].*/, '');
  const options = help
    .visibleOptions(command)
    .filter(({ long }) => !settings.has(long ?? '') && long !== '--help');
  const group = options.some(({ long }) => long === RECORD_OPTION)
    ? RECORD_OPTION
    : name.replace(/ ?[^ ]+$/, '') || name;
  const named: Record<string, string[]> = {};
  const terms = [
    ...help.visibleArguments(command).map((argument) => ({
      words: [help.argumentTerm(argument)],
      meaning: help.argumentDescription(argument),
    })),
    ...options.map((option) => ({
      words: [help.optionTerm(option), ...(option.mandatory ? ['required'] : [])],
      meaning: help.optionDescription(option),
    })),
  ].flatMap(({ words, meaning }) => {
    const [term = ''] = words;
    const key = [group, term, meaning.replace(/ \(default: .+\)$/, '')].join(' ');
    const first = described.get(key);
    if (first === undefined) {
      described.set(key, name);
      return [definition(words, sentence(meaning))];
    }
    named[first] = [...(named[first] ?? []), code(term)];
    return [];
  });
  return [
    `## ${name}`,
    [sentence(help.commandDescription(command)), settingsSentence(settings)].filter(Boolean).join(' '),
    `\`\`\`\n${examplesOf(name).join('\n')}\n\`\`\``,
    ...terms,
    ...Object.entries(named).map(
      ([first, words]) => `As for [${first}](#${first.replaceAll(' ', '-')}): ${words.join(', ')}.`,
    ),
  ];
}

const flagOf = (setting: Setting): string => (setting.flag === undefined ? '' : `--${setting.flag}`);
const SETTING_FLAGS = new Set(Object.values<Setting>(SETTINGS).map(flagOf).filter(Boolean));
const DATABASE_FLAGS = DATABASE_SETTINGS.map((name) => flagOf(SETTINGS[name])).filter(Boolean);

/** Which settings a command takes, if not those of the database alone. */
function settingsSentence(flags: ReadonlySet<string>): string {
  if (flags.size === SETTING_FLAGS.size) return 'Takes all [settings](settings.md).';
  if (flags.size === 0) return 'Takes no settings.';
  const opensDatabase = DATABASE_FLAGS.every((flag) => flags.has(flag));
  const others = [...flags]
    .filter((flag) => !opensDatabase || !DATABASE_FLAGS.includes(flag))
    .map((flag) => code(flag));
  if (others.length === 0) return '';
  return `Takes ${opensDatabase ? 'also' : 'only'} ${others.join(', ')}.`;
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
function definition([term = '', ...facts]: readonly string[], meaning: string): string {
  return `${[`**${code(term)}**`, ...facts].join(', ')}\\\n${meaning}`;
}

function page(title: string, source: string, ...parts: readonly string[]): string {
  const origin = `Written by \`npm run reference\` from \`${source}\`: edit the texts there.`;
  return `${[`# ${title}`, ...parts, origin].join('\n\n')}\n`;
}

if (import.meta.main) {
  mkdirSync(join(ROOT, 'docs/reference'), { recursive: true });
  for (const [path, text] of Object.entries(await referencePages())) writeFileSync(join(ROOT, path), text);
}
