import { cpSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { type CoveredLines, isCovered, readCoveredLines } from './covered_lines.ts';
import { type Mutant, mutantsOf } from './mutants.ts';

/**
 * Takes every single check out of the access code, or turns it round, and has the matrix and the suites of access find it.
 * What they do not find stands with its reason in test/http/matrix/survivors.md; the two lists must be the same. Each suite
 * first passes by itself, which tells how long it takes and which lines it reaches: it is asked only about those.
 */

const ROOT = fileURLToPath(new URL('../..', import.meta.url));
const SURVIVORS = join(ROOT, 'test/http/matrix/survivors.md');
const COPIED = ['src', 'test', 'bin', 'docs', 'bench', 'deploy', 'scripts', 'package.json', 'bunfig.toml'];
/** A suite is late after so many times as long as it takes by itself, and so long beside. */
const SUITE_TIMES_MAX = 5;
const SUITE_MS_MAX = 30_000;
const TRIAL_MS_MAX = 600_000;
/** A suite that takes longer by itself starts processes, hashes passwords, or waits. */
const PROMPT_MS_MAX = 3_000;
/** How often it may fail for no reason of the mutant's. */
const TRIES_MAX = 5;

const OF_TOKENS = ['token', 'token_grant', 'rights', 'matrix', 'parsers'];
const OF_EXTERNAL = ['external_tokens', 'issuers_file', 'external_provider', 'issuer_keys'];
const OF_CONSOLE = ['console_links', 'console_id_tokens', 'console_entry', 'console_provider'];
const OF_PATHS = [
  ...['api/check_order', 'lookup', 'api/conditional', 'api/not_found', 'matrix', 'api/request_variants'],
  'overload_before_authentication',
];
const OF_CLIENTS = ['auth/clients', 'token_grant', 'rights', 'admin/clients'];
const OF_KEYS = ['sealed_secrets', 'doctor_access', 'rewrap'];
const OF_FEED = ['change_feed', 'change_feed_of_user', 'matrix', 'change_streams'];

/** The files, and the suites that hold their checks. */
const SUITES: Readonly<Record<string, readonly string[]>> = {
  'src/auth/clients/bootstrap.ts': ['bootstrap'],
  'src/auth/tokens/claim_rights.ts': OF_EXTERNAL,
  'src/auth/clients/client_credentials.ts': ['token_grant', 'revocation', 'rights'],
  'src/auth/clients/clients.ts': [...OF_CLIENTS, 'bootstrap'],
  'src/auth/sessions/console_links.ts': OF_CONSOLE,
  'src/auth/sessions/console_providers.ts': OF_CONSOLE,
  'src/auth/tokens/external_tokens.ts': OF_EXTERNAL,
  'src/auth/tokens/token_grant.ts': [...OF_TOKENS, 'grants_logged'],
  'src/auth/keys/imported_keys.ts': ['imported_keys', 'auth_cache'],
  'src/auth/inspection.ts': ['doctor_access'],
  'src/auth/issuers/issuer_keys.ts': ['issuer_key_sets', ...OF_EXTERNAL],
  'src/auth/tokens/external_jwt.ts': [...OF_EXTERNAL, ...OF_CONSOLE],
  'src/auth/issuers/issuers_file.ts': ['issuers_file', 'issuers_console', 'external_tokens', 'console_entry'],
  'src/auth/issuers/jwk_set.ts': ['issuer_key_sets', ...OF_EXTERNAL],
  'src/auth/keys/keyring.ts': OF_KEYS,
  'src/auth/keys/live_keyring.ts': OF_KEYS,
  'src/auth/keys/master_key.ts': ['master_key', ...OF_KEYS],
  'src/auth/keys/rewrap.ts': ['rewrap'],
  'src/auth/issuers/provider_metadata.ts': OF_CONSOLE,
  'src/auth/sessions/sessions.ts': OF_CONSOLE,
  'src/auth/keys/signing.ts': [...OF_TOKENS, 'signing', 'clock_skew', 'admin/signing_keys'],
  'src/auth/tokens/unique_key_json.ts': OF_EXTERNAL,
  'src/auth/tokens/auth_cache.ts': ['auth_cache', ...OF_TOKENS, 'clock_skew'],
  'src/auth/tokens/token.ts': [
    ...['auth_cache', ...OF_TOKENS, 'external_tokens', 'revocation', 'clock_skew'],
    'bad_tokens',
    'console_links',
  ],
  'src/auth/tokens/introspection.ts': ['revocation'],
  'src/auth/tokens/client_usage.ts': ['refused_access_log', 'token_grant', 'external_tokens'],
  'src/auth/tokens/verified_tokens.ts': ['verified_token_cache', ...OF_TOKENS, 'external_tokens'],
  'src/domain/principal.ts': [...OF_TOKENS, 'issuers_file', 'bootstrap', 'admin/clients'],
  'src/domain/token_buckets.ts': ['token_buckets', 'rate_limits'],
  'src/events/feed/cursor.ts': OF_FEED,
  'src/events/feed/write_events.ts': OF_FEED,
  'src/http/operations/admin/clients.ts': ['admin/clients', 'matrix'],
  'src/http/operations/admin/realms.ts': ['admin/clients', 'admin/invalid_webhooks', 'openapi'],
  'src/http/operations/admin/operation.ts': ['matrix', 'admin/clients', 'admin/log', 'admin/signing_keys'],
  'src/http/operations/admin/signing_keys.ts': ['admin/signing_keys', 'matrix'],
  'src/http/pipeline/bearer.ts': ['token', 'matrix', 'bad_tokens', 'rate_limits', 'issuer_keys'],
  'src/http/server/caller_address.ts': ['caller_address', 'rate_limits'],
  'src/http/operations/changes.ts': OF_FEED,
  'src/http/operations/feed.ts': OF_FEED,
  'src/http/operations/change_streams.ts': ['stream_polling', ...OF_FEED],
  'src/http/operations/console_sessions.ts': [...OF_CONSOLE, 'external_tokens', 'matrix'],
  'src/http/operations/search_realm_by_realm.ts': [
    'search_realm_by_realm',
    'search_all_realms',
    'search_many_realms',
  ],
  'src/http/operations/search_all_realms.ts': ['search_all_realms', 'search_many_realms'],
  'src/http/operations/reverse_lookup.ts': [
    'reverse_lookup',
    'overload_before_authentication',
    'matrix',
    'search_all_realms',
  ],
  'src/http/operations/lists.ts': ['matrix', 'paging', 'reverse_lookup', 'list'],
  'src/http/operations/oauth.ts': ['token_grant', 'revocation', 'rate_limits'],
  'src/http/operations/oauth_form.ts': [
    'token_grant',
    'revocation',
    'bad_tokens',
    'rate_limits',
    'refused_access_log',
  ],
  'src/http/operations/record_writes.ts': [
    ...OF_PATHS,
    'api/precondition',
    'api/write_responses',
    'api/deletes',
    'api/idempotency',
  ],
  'src/http/server/own_origin.ts': ['console_links', 'matrix'],
  'src/http/pipeline/pipeline.ts': OF_PATHS,
  'src/http/server/rate_limits.ts': ['rate_limits', 'bad_tokens'],
  'src/http/operations/resources.ts': ['matrix', 'reverse_lookup', 'openapi'],
};

const { values: given } = parseArgs({
  options: {
    only: { type: 'string', multiple: true, default: [''] },
    workers: { type: 'string', default: '2' },
  },
});
const access = [...new Bun.Glob('src/auth/**/*.ts').scanSync(ROOT)];
const unheld = access.filter((path) => !(path in SUITES) && path !== 'src/auth/port.ts');
if (unheld.length > 0) throw new Error(`no suites are named for ${unheld.join(', ')}`);
const isChosen = (line: string): boolean => given.only.some((part) => line.includes(part));
const mutants = (await mutantsOf(ROOT, Object.keys(SUITES))).filter((each) => isChosen(lineOf(each)));
const paths = [...new Set(mutants.map(({ path }) => path))];
const folders = Array.from({ length: Number(given.workers) }, () =>
  mkdtempSync(join(tmpdir(), 'authrealm-mutations-')),
);
const survivors: string[] = [];
try {
  for (const folder of folders) copyTo(folder);
  const suites = [...new Set(paths.flatMap((path) => SUITES[path] ?? []))];
  const trials = new Map<string, Trial>();
  await each(suites, async (name, folder) => {
    const trial = await tried(folder, name);
    trials.set(name, trial);
    console.error(`${name} passes in ${Math.round(trial.ms)} ms`);
  });
  await each(mutants, async (mutant, folder, place) => {
    const finder = await finderIn(folder, mutant, trials);
    if (!finder) survivors.push(lineOf(mutant));
    const said = finder ? `found by ${finder}` : 'SURVIVES';
    console.error(`${place + 1}/${mutants.length} ${said}: ${lineOf(mutant)}`);
  });
} finally {
  for (const folder of folders) rmSync(folder, { recursive: true });
}
const known = readSurvivors().filter(isChosen);
const unargued = survivors.filter((line) => !known.includes(line)).sort();
const gone = known.filter((line) => !survivors.includes(line));
for (const line of unargued) console.log(`survives without a reason: ${line}`);
for (const line of gone) console.log(`is listed and does not survive: ${line}`);
console.log(
  `${mutants.length} mutants of ${paths.length} files: ${mutants.length - survivors.length} found, ${survivors.length} survive, ` +
    `${unargued.length} of them without a reason`,
);
process.exitCode = unargued.length + gone.length === 0 ? 0 : 1;

/** How a mutant stands in the list of survivors, and what `--only` chooses by. */
function lineOf({ path, name }: Mutant): string {
  return `${path} ${name}`;
}

/** What a suite comes to where nothing is taken out. */
interface Trial {
  readonly ms: number;
  readonly reached: CoveredLines;
}

/** Does something with each of these, one after the other in every folder. */
async function each<T>(
  all: readonly T[],
  act: (one: T, folder: string, place: number) => Promise<void>,
): Promise<void> {
  const waiting = [...all.entries()];
  await Promise.all(
    folders.map(async (folder) => {
      for (let next = waiting.shift(); next; next = waiting.shift()) await act(next[1], folder, next[0]);
    }),
  );
}

function copyTo(folder: string): void {
  for (const name of COPIED) cpSync(join(ROOT, name), join(folder, name), { recursive: true });
  symlinkSync(join(ROOT, 'node_modules'), join(folder, 'node_modules'));
}

/** Runs a suite over what stands here. Throws where it does not pass: then it would find everything. */
async function tried(folder: string, suite: string): Promise<Trial> {
  const into = join(folder, '.reached', suite);
  const counting = ['--coverage', '--coverage-reporter=lcov', `--coverage-dir=${into}`];
  for (let tries = 1; ; tries += 1) {
    const start = performance.now();
    const ended = await endOf(folder, suite, TRIAL_MS_MAX, counting);
    const ms = performance.now() - start;
    if (ended === 'passed') return { ms, reached: readCoveredLines(join(into, 'lcov.info')) };
    if (tries === TRIES_MAX) throw new Error(`${suite} does not pass by itself`);
  }
}

/** The suite that finds this mutant, the quickest asked first. */
async function finderIn(
  folder: string,
  { path, lines, text }: Mutant,
  trials: ReadonlyMap<string, Trial>,
): Promise<string | undefined> {
  const asked = (SUITES[path] ?? []).flatMap((name) => {
    const trial = trials.get(name);
    return trial && isCovered(trial.reached, path, lines) ? [{ name, ms: trial.ms }] : [];
  });
  const original = readFileSync(join(folder, path), 'utf8');
  try {
    for (const { name, ms } of asked.sort((one, other) => one.ms - other.ms)) {
      const msMax = ms * SUITE_TIMES_MAX + SUITE_MS_MAX;
      const isPrompt = ms < PROMPT_MS_MAX;
      if (await finds(name, { folder, path, text, original, msMax, isPrompt })) return name;
    }
    return undefined;
  } finally {
    writeFileSync(join(folder, path), original);
  }
}

interface Asking {
  readonly folder: string;
  readonly path: string;
  readonly text: string;
  readonly original: string;
  readonly msMax: number;
  readonly isPrompt: boolean;
}

/**
 * Whether a suite fails with the mutant, twice: it may have failed because the machine has too much else to do. One that
 * came too late, or takes long, is believed where it passes without the mutant in between.
 */
async function finds(
  name: string,
  { folder, path, text, original, msMax, isPrompt }: Asking,
): Promise<boolean> {
  const run = (content: string) => {
    writeFileSync(join(folder, path), content);
    return endOf(folder, name, msMax);
  };
  for (let tries = 0; tries < TRIES_MAX; tries += 1) {
    const ended = await run(text);
    if (ended === 'passed') return false;
    if (ended === 'failed' && isPrompt) {
      if ((await run(text)) === 'failed') return true;
      continue;
    }
    if ((await run(original)) === 'passed') return (await run(text)) !== 'passed';
  }
  throw new Error(`${name} does not pass by itself any more: the machine has too much else to do`);
}

/** Runs a suite. `late`: a test took longer than it may, or all of them did. */
async function endOf(
  folder: string,
  suite: string,
  msMax: number,
  words: readonly string[] = [],
): Promise<'passed' | 'failed' | 'late'> {
  const command = [process.execPath, 'test', '--bail', ...words, `./${pathOf(folder, suite)}`];
  // A group of its own, so that what it started ends with it.
  const child = Bun.spawn(command, { cwd: folder, stdio: ['ignore', 'ignore', 'pipe'], detached: true });
  let isLate = false;
  const timer = setTimeout(() => {
    isLate = true;
    process.kill(-child.pid, 'SIGKILL');
  }, msMax);
  const said = await new Response(child.stderr).text();
  const code = await child.exited;
  clearTimeout(timer);
  if (code === 0) return 'passed';
  return isLate || /timed out after/.test(said) ? 'late' : 'failed';
}

/** The one file of a suite, whose name may also say on which engine and when it runs. */
function pathOf(folder: string, suite: string): string {
  const found = [...new Bun.Glob(`test/**/${suite}{.*,}.test.ts`).scanSync(folder)];
  const [path, ...others] = found.filter((each) => !each.startsWith('test/browser/'));
  if (path === undefined || others.length > 0) throw new Error(`no suite, or several, named ${suite}`);
  return path;
}

/** The survivors that have their reason: a list item each, with what it is indented below. */
function readSurvivors(): readonly string[] {
  const lines: string[] = [];
  let path = '';
  for (const block of readFileSync(SURVIVORS, 'utf8').split(/\n(?=## |- )/)) {
    const [head = '', ...reason] = block.split('\n');
    if (head.startsWith('## ')) path = head.slice(3);
    if (!head.startsWith('- ')) continue;
    if (reason.join('').trim() === '') throw new Error(`${SURVIVORS}: no reason for ${head}`);
    lines.push(`${path} ${head.slice(2)}`);
  }
  return lines;
}
