import { cpSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { type CoveredLines, isCovered, readCoveredLines } from './covered_lines.ts';
import { type Mutant, mutantsOf } from './mutants.ts';

/**
 * Removes or inverts every check of the access code, one at a time, and runs the matrix and the access suites on each mutant.
 * Mutants that no suite finds must be listed, with a reason, in test/http/matrix/survivors.md, and no others. Each suite first
 * runs on the original code, to measure its duration and the lines it covers: it only runs on mutants of those lines.
 */

const ROOT = fileURLToPath(new URL('../..', import.meta.url));
const SURVIVORS = join(ROOT, 'test/http/matrix/survivors.md');
const COPIED = ['src', 'test', 'bin', 'docs', 'bench', 'deploy', 'scripts', 'package.json', 'bunfig.toml'];
/** A suite times out after this multiple of its usual duration, plus this time. */
const SUITE_TIMES_MAX = 5;
const SUITE_MS_MAX = 30_000;
const BASELINE_MS_MAX = 600_000;
/** Slower suites start processes, hash passwords or wait, so that a failure may come from load. */
const FAST_SUITE_MS_MAX = 3_000;
/** How often a suite may fail for another reason than the mutant. */
const TRIES_MAX = 5;

const TOKEN_SUITES = ['token', 'token_grant', 'rights', 'matrix', 'parsers'];
const EXTERNAL_TOKEN_SUITES = ['external_tokens', 'issuers_file', 'external_provider', 'issuer_keys'];
const CONSOLE_SUITES = [
  'console_links',
  'console_sessions',
  'console_id_tokens',
  'console_entry',
  'console_provider',
  'admin/console_access',
];
const PIPELINE_SUITES = [
  ...['api/check_order', 'lookup', 'api/conditional', 'api/not_found', 'matrix', 'api/request_variants'],
  'overload_before_authentication',
];
const CLIENT_SUITES = [
  ...['access/clients', 'implicit_grant', 'token_grant', 'rights', 'admin/clients', 'admin/changes'],
  'end_user_address',
];
const IDENTITY_SUITES = [
  ...['identity_by_code', 'identity_by_token', 'identity_providers', 'identity_at_real_provider'],
];
const KEY_SUITES = ['sealed_secrets', 'keyring', 'doctor_access', 'rewrap'];
const SIGN_IN_SUITES = ['account_tokens', 'renewal', 'password_checks', 'throttling.serial'];
const FEED_SUITES = ['change_feed', 'matrix', 'change_streams'];

/** The suites that test the checks of each file. */
const SUITES: Readonly<Record<string, readonly string[]>> = {
  'src/access/clients/bootstrap.ts': ['bootstrap'],
  'src/access/tokens/claim_rights.ts': EXTERNAL_TOKEN_SUITES,
  'src/access/clients/client_credentials.ts': [
    ...['token_grant', 'implicit_grant', 'revocation', 'rights', 'auth_cache', 'refused_access_log'],
  ],
  'src/access/clients/clients.ts': [...CLIENT_SUITES, 'bootstrap', 'forged_rows'],
  'src/access/sessions/console_links.ts': CONSOLE_SUITES,
  'src/access/sessions/console_providers.ts': CONSOLE_SUITES,
  'src/access/issuers/code_flow.ts': [...IDENTITY_SUITES, ...CONSOLE_SUITES],
  'src/access/issuers/identity_providers.ts': IDENTITY_SUITES,
  'src/access/tokens/external_tokens.ts': EXTERNAL_TOKEN_SUITES,
  'src/access/tokens/token_grant.ts': [...TOKEN_SUITES, 'implicit_grant', 'grants_logged'],
  'src/access/keys/imported_keys.ts': ['imported_keys', 'auth_cache'],
  'src/ops/doctor/key_inspection.ts': ['doctor_access'],
  'src/access/issuers/issuer_keys.ts': ['issuer_key_sets', ...EXTERNAL_TOKEN_SUITES],
  'src/access/tokens/external_jwt.ts': [...EXTERNAL_TOKEN_SUITES, ...CONSOLE_SUITES, ...IDENTITY_SUITES],
  'src/access/issuers/issuers_file.ts': [
    'issuers_file',
    'issuers_console',
    'external_tokens',
    'console_entry',
  ],
  'src/access/issuers/jwk_set.ts': ['issuer_key_sets', ...EXTERNAL_TOKEN_SUITES],
  'src/access/keys/keyring.ts': KEY_SUITES,
  'src/access/keys/master_key.ts': ['master_key', ...KEY_SUITES],
  'src/access/keys/rewrap.ts': ['rewrap'],
  'src/access/issuers/provider_metadata.ts': [...IDENTITY_SUITES, ...CONSOLE_SUITES],
  'src/access/issuers/shared_read.ts': ['issuer_key_sets', ...IDENTITY_SUITES],
  'src/access/sessions/sessions.ts': CONSOLE_SUITES,
  'src/access/keys/signing.ts': [
    ...TOKEN_SUITES,
    'signing',
    'clock_skew',
    'admin/signing_keys',
    'forged_rows',
  ],
  'src/access/tokens/unique_key_json.ts': EXTERNAL_TOKEN_SUITES,
  'src/access/tokens/auth_cache.ts': ['auth_cache', ...TOKEN_SUITES, 'clock_skew', 'forged_rows'],
  'src/access/tokens/own_jwts.ts': [
    ...['auth_cache', ...TOKEN_SUITES, 'external_tokens', 'bad_tokens'],
    'renewal',
  ],
  'src/access/tokens/token.ts': [
    ...['auth_cache', ...TOKEN_SUITES, 'external_tokens', 'revocation', 'clock_skew'],
    'bad_tokens',
    'console_links',
  ],
  'src/access/tokens/introspection.ts': ['revocation'],
  'src/access/tokens/verified_tokens.ts': ['verified_token_cache', ...TOKEN_SUITES, 'external_tokens'],
  'src/model/managed.ts': ['forged_rows', ...CLIENT_SUITES],
  'src/model/principal.ts': ['principal', ...TOKEN_SUITES, 'issuers_file', 'bootstrap', 'admin/clients'],
  'src/model/token_buckets.ts': ['token_buckets', 'rate_limits'],
  'src/deliver/feed/cursor.ts': [...FEED_SUITES, 'change_search'],
  'src/deliver/feed/search_feed.ts': ['change_search'],
  'src/http/operations/change_events.ts': FEED_SUITES,
  'src/compat/account_members.ts': ['account_members', 'renewal', 'overload_before_authentication'],
  'src/compat/account_tokens.ts': [...SIGN_IN_SUITES, 'overload_before_authentication'],
  'src/http/operations/admin/console_access.ts': ['admin/console_access', 'matrix'],
  'src/http/operations/admin/clients.ts': ['admin/clients', 'end_user_address', 'implicit_grant', 'matrix'],
  'src/http/operations/admin/realms.ts': ['admin/clients', 'admin/invalid_webhooks', 'openapi'],
  'src/http/operations/admin/operation.ts': ['matrix', 'admin/clients', 'admin/log', 'admin/signing_keys'],
  'src/http/operations/admin/signing_keys.ts': ['admin/signing_keys', 'matrix'],
  'src/http/pipeline/bearer.ts': ['token', 'matrix', 'bad_tokens', 'rate_limits', 'issuer_keys'],
  'src/http/server/caller_address.ts': ['caller_address', 'rate_limits'],
  'src/http/operations/changes.ts': [...FEED_SUITES, 'change_search'],
  'src/http/operations/change_streams.ts': ['stream_polling', ...FEED_SUITES],
  'src/http/operations/console_sessions.ts': [...CONSOLE_SUITES, 'external_tokens', 'matrix'],
  'src/http/operations/search_all_realms.ts': ['search_all_realms', 'search_many_realms'],
  'src/http/operations/reverse_lookup.ts': [
    'reverse_lookup',
    'overload_before_authentication',
    'matrix',
    'search_all_realms',
  ],
  'src/http/operations/batch.ts': [
    ...['api/batch', 'api/batch_log', 'api/batch_outcome'],
    'overload_before_authentication',
    'matrix',
  ],
  'src/http/operations/batch_items.ts': ['api/batch'],
  'src/http/operations/included.ts': [
    'api/include',
    'api/include_in_lists',
    'api/create_with_links',
    'api/write_responses',
    'api/idempotency',
    'matrix',
  ],
  'src/http/operations/lists.ts': ['matrix', 'paging', 'reverse_lookup', 'list'],
  'src/http/operations/oauth.ts': ['token_grant', 'revocation', 'rate_limits'],
  'src/http/operations/oauth_form.ts': [
    'token_grant',
    'revocation',
    'bad_tokens',
    'rate_limits',
    'refused_access_log',
    'grants_logged',
  ],
  'src/http/operations/password_checks.ts': ['password_checks', 'overload_before_authentication'],
  'src/http/operations/password_request.ts': [...SIGN_IN_SUITES, 'self_signup'],
  'src/http/operations/record_writes.ts': [
    ...PIPELINE_SUITES,
    'api/precondition',
    'api/write_responses',
    'api/deletes',
    'api/idempotency',
  ],
  'src/compat/settings_table.ts': ['compat/settings', 'account_settings'],
  'src/compat/settings.ts': [
    ...['compat/settings', 'account_settings', 'account_members', 'overload_before_authentication'],
  ],
  'src/http/operations/user_sign_ins.ts': [
    ...['throttle_lifted', 'sign_in/sign_in_state', 'overload_before_authentication'],
  ],
  'src/http/server/own_origin.ts': ['console_links', 'matrix'],
  'src/http/pipeline/loop_budget.ts': ['loop_budget', 'loop_turns', 'loop_use'],
  'src/http/pipeline/admission.ts': [
    ...['http/admission', ...PIPELINE_SUITES, 'api/include_in_lists'],
    ...['console_sessions', 'password_checks', 'rate_limits'],
  ],
  'src/http/pipeline/pipeline.ts': PIPELINE_SUITES,
  'src/http/server/rate_limits.ts': ['rate_limits', 'implicit_grant', 'bad_tokens', 'grants_logged'],
  'src/http/operations/resources.ts': ['matrix', 'reverse_lookup', 'openapi'],
  'src/compat/account_token.ts': ['renewal', 'account_tokens'],
  'src/sign_in/budgets.ts': ['sign_in/budgets', 'budget_rows'],
  'src/sign_in/credentials.ts': ['password_hash', 'sign_in/rehash', 'access/rehash'],
  'src/sign_in/decoys.ts': ['decoys', 'decoy_hashes'],
  'src/sign_in/device_token.ts': ['device_token'],
  'src/sign_in/password_check.ts': ['sign_in/password_check', 'account_tokens'],
  'src/sign_in/queue.ts': ['sign_in/queue'],
  'src/model/password_hash.ts': ['password_hash', 'access/rehash', 'checks', 'import_lines'],
  'src/sign_in/store/credentials.ts': ['access/rehash', 'forged_credentials', 'store'],
  'src/ops/workers/checker.ts': ['checks', 'access/rehash'],
  'src/log/store/row_macs.ts': ['forged_rows', ...CLIENT_SUITES],
  'src/records/store/lists/realm_search.ts': [
    ...['realm_search', 'realm_search_turns', 'search_all_realms', 'search_many_realms', 'search_words'],
  ],
};

const { values: options } = parseArgs({
  options: {
    only: { type: 'string', multiple: true, default: [''] },
    workers: { type: 'string', default: '2' },
  },
});
const authFiles = [...new Bun.Glob('src/{access,sign_in}/**/*.ts').scanSync(ROOT)];
const filesWithoutSuites = authFiles.filter(
  (path) => !(path in SUITES) && !/\/(store|outbound)\/|\/log_secret\./.test(path),
);
if (filesWithoutSuites.length > 0)
  throw new Error(`no suites are listed for ${filesWithoutSuites.join(', ')}`);
const isSelected = (line: string): boolean => options.only.some((part) => line.includes(part));
const mutants = (await mutantsOf(ROOT, Object.keys(SUITES))).filter((each) => isSelected(lineOf(each)));
const paths = [...new Set(mutants.map(({ path }) => path))];
const folders = Array.from({ length: Number(options.workers) }, () =>
  mkdtempSync(join(tmpdir(), 'authrealm-mutations-')),
);
const survivors: string[] = [];
try {
  for (const folder of folders) copyTo(folder);
  const suites = [...new Set(paths.flatMap((path) => SUITES[path] ?? []))];
  const baselines = new Map<string, Baseline>();
  await forEachInFolders(suites, async (name, folder) => {
    const baseline = await measureBaseline(folder, name);
    baselines.set(name, baseline);
    console.error(`${name} passes in ${Math.round(baseline.ms)} ms`);
  });
  await forEachInFolders(mutants, async (mutant, folder, place) => {
    const foundBy = await findingSuite(folder, mutant, baselines);
    if (!foundBy) survivors.push(lineOf(mutant));
    const stderr = foundBy ? `found by ${foundBy}` : 'SURVIVES';
    console.error(`${place + 1}/${mutants.length} ${stderr}: ${lineOf(mutant)}`);
  });
} finally {
  for (const folder of folders) rmSync(folder, { recursive: true });
}
const known = readSurvivors().filter(isSelected);
const withoutReason = survivors.filter((line) => !known.includes(line)).sort();
const notSurviving = known.filter((line) => !survivors.includes(line));
for (const line of withoutReason) console.log(`survives and is not in survivors.md: ${line}`);
for (const line of notSurviving) console.log(`is in survivors.md and does not survive: ${line}`);
console.log(
  `${mutants.length} mutants of ${paths.length} files: ${mutants.length - survivors.length} found, ${survivors.length} survive, ` +
    `${withoutReason.length} of them without a reason`,
);
process.exitCode = withoutReason.length + notSurviving.length === 0 ? 0 : 1;

/** The line of a mutant in the list of survivors, which `--only` is matched with. */
function lineOf({ path, name }: Mutant): string {
  return `${path} ${name}`;
}

/** Duration and coverage of a suite on the original code. */
interface Baseline {
  readonly ms: number;
  readonly covered: CoveredLines;
}

/** Processes all items, one at a time in each folder. */
async function forEachInFolders<T>(
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

/** Runs a suite on the original code. Throws when it fails, because then it would find every mutant. */
async function measureBaseline(folder: string, suite: string): Promise<Baseline> {
  const into = join(folder, '.reached', suite);
  const counting = ['--coverage', '--coverage-reporter=lcov', `--coverage-dir=${into}`];
  for (let tries = 1; ; tries += 1) {
    const start = performance.now();
    const result = await runSuite(folder, suite, BASELINE_MS_MAX, counting);
    const ms = performance.now() - start;
    if (result === 'passed') return { ms, covered: readCoveredLines(join(into, 'lcov.info')) };
    if (tries === TRIES_MAX) throw new Error(`${suite} fails on the original code`);
  }
}

/** The suite that finds this mutant; the fastest suites run first. */
async function findingSuite(
  folder: string,
  { path, lines, text }: Mutant,
  baselines: ReadonlyMap<string, Baseline>,
): Promise<string | undefined> {
  const suites = (SUITES[path] ?? []).flatMap((name) => {
    const baseline = baselines.get(name);
    return baseline && isCovered(baseline.covered, path, lines) ? [{ name, ms: baseline.ms }] : [];
  });
  const original = readFileSync(join(folder, path), 'utf8');
  try {
    for (const { name, ms } of suites.sort((one, other) => one.ms - other.ms)) {
      const msMax = ms * SUITE_TIMES_MAX + SUITE_MS_MAX;
      const isFast = ms < FAST_SUITE_MS_MAX;
      if (await failsWithMutant(name, { folder, path, text, original, msMax, isFast })) return name;
    }
    return undefined;
  } finally {
    writeFileSync(join(folder, path), original);
  }
}

interface MutantRun {
  readonly folder: string;
  readonly path: string;
  readonly text: string;
  readonly original: string;
  readonly msMax: number;
  readonly isFast: boolean;
}

/**
 * Whether a suite fails with the mutant, twice, because once may be due to load. After a timeout, and for a slow suite, it must
 * also pass without the mutant in between.
 */
async function failsWithMutant(
  name: string,
  { folder, path, text, original, msMax, isFast }: MutantRun,
): Promise<boolean> {
  const run = (content: string) => {
    writeFileSync(join(folder, path), content);
    return runSuite(folder, name, msMax);
  };
  for (let tries = 0; tries < TRIES_MAX; tries += 1) {
    const result = await run(text);
    if (result === 'passed') return false;
    if (result === 'failed' && isFast) {
      if ((await run(text)) === 'failed') return true;
      continue;
    }
    if ((await run(original)) === 'passed') return (await run(text)) !== 'passed';
  }
  throw new Error(`${name} now fails on the original code: the machine is too busy`);
}

/** Runs a suite. `late`: a test, or the suite, timed out. */
async function runSuite(
  folder: string,
  suite: string,
  msMax: number,
  words: readonly string[] = [],
): Promise<'passed' | 'failed' | 'late'> {
  const command = [process.execPath, 'test', '--bail', ...words, `./${pathOf(folder, suite)}`];
  // A process group of its own, so that its children are killed with it.
  const child = Bun.spawn(command, { cwd: folder, stdio: ['ignore', 'ignore', 'pipe'], detached: true });
  let isLate = false;
  const timer = setTimeout(() => {
    isLate = true;
    process.kill(-child.pid, 'SIGKILL');
  }, msMax);
  const stderr = await new Response(child.stderr).text();
  const code = await child.exited;
  clearTimeout(timer);
  if (code === 0) return 'passed';
  return isLate || /timed out after/.test(stderr) ? 'late' : 'failed';
}

/** The file of a suite. Its name may have suffixes for engine and schedule. */
function pathOf(folder: string, suite: string): string {
  const found = [...new Bun.Glob(`test/**/${suite}{.*,}.test.ts`).scanSync(folder)];
  const [path, ...others] = found.filter((each) => !each.startsWith('test/browser/'));
  if (path === undefined || others.length > 0)
    throw new Error(`there must be exactly one suite named ${suite}, outside test/browser`);
  return path;
}

/** Reads the listed survivors: list items, each with its reason indented below. */
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
