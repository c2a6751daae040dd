import { cpSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { type Mutant, mutantsOf } from './mutants.ts';

/**
 * Takes every single check out of the access code, or turns it round, and has the matrix and the suites of access find it.
 * What they do not find stands with its reason in test/matrix/survivors.md; the two lists must be the same.
 */

const ROOT = fileURLToPath(new URL('..', import.meta.url));
const SURVIVORS = join(ROOT, 'test/matrix/survivors.md');
const COPIED = [
  'src',
  'test',
  'prove',
  'bin',
  'docs',
  'bench',
  'deploy',
  'scripts',
  'package.json',
  'bunfig.toml',
];
/** A mutant that keeps a suite busy for so long is found. */
const SUITE_MS_MAX = 90_000;

const OF_TOKENS = ['token', 'grant', 'rights', 'matrix', 'parsers'];
const OF_EXTERNAL = ['external_tokens', 'issuers_file', 'external_provider', 'issuer_keys'];
const OF_PATHS = ['api/order', 'lookup', 'api/conditional', 'api/absence', 'matrix', 'api/spelling'];

/** The files, and the suites that hold their checks, the quickest first. */
const SUITES: Readonly<Record<string, readonly string[]>> = {
  'src/access/bootstrap.ts': ['cli'],
  'src/access/claim_rights.ts': OF_EXTERNAL,
  'src/access/client_credentials.ts': ['grant', 'revocation', 'rights'],
  'src/access/clients.ts': ['grant', 'rights', 'cli'],
  'src/access/external_tokens.ts': OF_EXTERNAL,
  'src/access/grant.ts': OF_TOKENS,
  'src/access/inspection.ts': ['doctor', 'doctor_faults'],
  'src/access/issuer_keys.ts': OF_EXTERNAL,
  'src/access/issuers_file.ts': ['issuers_file', 'external_tokens'],
  'src/access/jwk_set.ts': OF_EXTERNAL,
  'src/access/keyring.ts': ['keyring', 'rewrap'],
  'src/access/live_keyring.ts': ['keyring', 'rewrap'],
  'src/access/master_key.ts': ['keyring', 'rewrap', 'cli'],
  'src/access/rewrap.ts': ['rewrap'],
  'src/access/signing.ts': [...OF_TOKENS, 'signing', 'clock_skew', 'cli'],
  'src/access/sole_members.ts': OF_EXTERNAL,
  'src/access/table.ts': [...OF_TOKENS, 'clock_skew'],
  'src/access/token.ts': [...OF_TOKENS, 'external_tokens', 'revocation', 'clock_skew'],
  'src/access/token_desk.ts': ['revocation'],
  'src/access/verified.ts': [...OF_TOKENS, 'external_tokens'],
  'src/domain/principal.ts': [...OF_TOKENS, 'issuers_file', 'cli'],
  'src/http/bearer.ts': ['token', 'matrix', 'bad_tokens', 'rate_limits'],
  'src/http/finding.ts': ['matrix', 'find', 'document'],
  'src/http/lists.ts': ['matrix', 'paging', 'find', 'list'],
  'src/http/operations.ts': [
    ...OF_PATHS,
    'api/precondition',
    'api/writing',
    'api/removal',
    'api/idempotency',
  ],
  'src/http/pipeline.ts': OF_PATHS,
};

const { values: given } = parseArgs({
  options: {
    only: { type: 'string', multiple: true, default: [''] },
    workers: { type: 'string', default: '2' },
  },
});
const access = [...new Bun.Glob('src/access/*.ts').scanSync(ROOT)];
const unheld = access.filter((path) => !(path in SUITES) && path !== 'src/access/port.ts');
if (unheld.length > 0) throw new Error(`no suites are named for ${unheld.join(', ')}`);
const paths = Object.keys(SUITES).filter((path) => given.only.some((part) => path.includes(part)));
const mutants = await mutantsOf(ROOT, paths);
const waiting = [...mutants.entries()];
const survivors: string[] = [];
await Promise.all(Array.from({ length: Number(given.workers) }, work));
const known = readSurvivors().filter((line) => paths.some((path) => line.startsWith(`${path} `)));
const unargued = survivors.filter((line) => !known.includes(line)).sort();
const gone = known.filter((line) => !survivors.includes(line));
for (const line of unargued) console.log(`survives without a reason: ${line}`);
for (const line of gone) console.log(`is listed and does not survive: ${line}`);
console.log(
  `${mutants.length} mutants of ${paths.length} files: ${mutants.length - survivors.length} found, ${survivors.length} survive, ` +
    `${unargued.length} of them without a reason`,
);
process.exitCode = unargued.length + gone.length === 0 ? 0 : 1;

/** Tries one mutant after the other, in a copy of the tree of its own. */
async function work(): Promise<void> {
  const folder = mkdtempSync(join(tmpdir(), 'authrealm-mutations-'));
  try {
    for (const name of COPIED) cpSync(join(ROOT, name), join(folder, name), { recursive: true });
    symlinkSync(join(ROOT, 'node_modules'), join(folder, 'node_modules'));
    for (let next = waiting.shift(); next; next = waiting.shift()) {
      const [place, mutant] = next;
      const isFound = await isFoundIn(folder, mutant);
      if (!isFound) survivors.push(`${mutant.path} ${mutant.name}`);
      console.error(
        `${place + 1}/${mutants.length} ${isFound ? 'found' : 'SURVIVES'} ${mutant.path} ${mutant.name}`,
      );
    }
  } finally {
    rmSync(folder, { recursive: true });
  }
}

async function isFoundIn(folder: string, { path, text }: Mutant): Promise<boolean> {
  const original = readFileSync(join(folder, path), 'utf8');
  writeFileSync(join(folder, path), text);
  try {
    for (const suite of SUITES[path] ?? []) if (!(await passes(folder, suite))) return true;
    return false;
  } finally {
    writeFileSync(join(folder, path), original);
  }
}

async function passes(folder: string, suite: string): Promise<boolean> {
  const command = [process.execPath, 'test', '--bail', `./test/${suite}.test.ts`];
  // A group of its own, so that what it started ends with it.
  const child = Bun.spawn(command, { cwd: folder, stdio: ['ignore', 'ignore', 'ignore'], detached: true });
  const timer = setTimeout(() => process.kill(-child.pid, 'SIGKILL'), SUITE_MS_MAX);
  const code = await child.exited;
  clearTimeout(timer);
  return code === 0;
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
