import { readFileSync, rmSync } from 'node:fs';
import { dirname, join, relative } from 'node:path';
import { fileURLToPath } from 'node:url';
import { plugin } from 'bun';
import type { Node } from 'typescript/unstable/ast';
import {
  isArrowFunction,
  isBlock,
  isConstructorDeclaration,
  isFunctionDeclaration,
  isFunctionExpression,
  isGetAccessorDeclaration,
  isMethodDeclaration,
} from 'typescript/unstable/ast/is';
import { API } from 'typescript/unstable/async';

/**
 * Counts the functions and files of src/ that run during one GET of a record by ID and one POST of an OIDC link, with a cached
 * token, on both engines. `--names` lists them.
 */

const ROOT = join(dirname(fileURLToPath(import.meta.url)), '..');
const REQUESTS = 5;
/** Spreads the requests over several periods of every timer, so that no timer runs during all of them. */
const PAUSE_MS = 150;

interface Insertion {
  readonly at: number;
  readonly text: string;
}

/** `path:line` and first line of every function; the index is its ID. */
const functions: string[] = [];
let calls = new Map<number, number>();
Object.assign(globalThis, {
  countCall: (id: number) => {
    calls.set(id, (calls.get(id) ?? 0) + 1);
  },
});

const sources = await instrument();
plugin({
  name: 'count functions',
  setup(build) {
    build.onLoad({ filter: /\/src\/.*\.ts$/ }, ({ path }) => ({
      loader: 'ts',
      contents: sources.get(path) ?? readFileSync(path, 'utf8'),
    }));
  },
});
// Imported after the plugin was installed: modules loaded earlier are not instrumented.
const support = await import('../test/support/service.ts');
const { endServers } = await import('../test/support/postgres_server.ts');

for (const engine of ['sqlite', 'postgres']) {
  process.env.AUTHREALM_TEST_ENGINE = engine;
  const service = await support.startService();
  const fixture = await support.createFixture(service.db);
  const token = await service.token('profile-infos:read profile-infos:write');
  const path = support.oidcPath(fixture);
  report(`GET by ID, ${engine}`, await measure(() => service.get(path, token)));
  const collection = path.slice(0, path.lastIndexOf('/'));
  const relationships = { oidc_profile_id: fixture.oidcProfile };
  report(
    `POST, ${engine}`,
    await measure(() => {
      const members = { subject: crypto.randomUUID(), issuer: support.ISSUER, ...relationships };
      return service.post(collection, token, {
        data: { type: 'user_authentication_oidc_profile_info', ...members },
      });
    }),
  );
  await service.stop();
}
await endServers();
rmSync(support.RUN_FOLDER, { recursive: true, force: true });
process.exit();

/** The text of every file of src/ with a counting call at the start of each function. */
async function instrument(): Promise<ReadonlyMap<string, string>> {
  const api = new API({ cwd: ROOT });
  const snapshot = await api.updateSnapshot({ openProjects: [join(ROOT, 'tsconfig.json')] });
  const [project] = snapshot.getProjects();
  const instrumented = new Map<string, string>();
  for (const path of new Bun.Glob('src/**/*.ts').scanSync({ cwd: ROOT, absolute: true })) {
    const file = await project?.program.getSourceFile(path);
    if (!file) continue;
    const insertions: Insertion[] = [];
    const visit = (node: Node): undefined => {
      insertions.push(...callAtStart(node, relative(ROOT, path), file.text));
      node.forEachChild(visit);
      return undefined;
    };
    visit(file);
    // From the end, so that earlier positions remain valid.
    const fromEnd = insertions.toSorted((a, b) => b.at - a.at);
    instrumented.set(
      path,
      fromEnd.reduce((text, { at, text: more }) => text.slice(0, at) + more + text.slice(at), file.text),
    );
  }
  await api.close();
  return instrumented;
}

function callAtStart(node: Node, path: string, text: string): readonly Insertion[] {
  const isFunction =
    isArrowFunction(node) ||
    isFunctionDeclaration(node) ||
    isFunctionExpression(node) ||
    isMethodDeclaration(node) ||
    isGetAccessorDeclaration(node) ||
    isConstructorDeclaration(node);
  if (!isFunction || !node.body) return [];
  const start = node.getStart();
  const line = text.slice(0, start).split('\n').length;
  const id = functions.push(`${path}:${line} ${text.slice(start).split('\n')[0]?.slice(0, 70)}`) - 1;
  const { body } = node;
  if (isBlock(body)) return [{ at: body.getStart() + 1, text: ` countCall(${id});` }];
  return [
    { at: body.getStart(), text: `(countCall(${id}), (` },
    { at: body.end, text: '))' },
  ];
}

/** The functions that run during every request; those that run during some only were started by timers. */
async function measure(send: () => Promise<Response>): Promise<ReadonlyMap<number, number>> {
  await send();
  let common: Map<number, number> | undefined;
  for (let at = 0; at < REQUESTS; at += 1) {
    await Bun.sleep(PAUSE_MS);
    calls = new Map();
    const response = await send();
    const ran = calls;
    calls = new Map();
    if (!response.ok) throw new Error(`the service returned ${response.status}: ${await response.text()}`);
    common = common ? new Map([...common].filter(([id]) => ran.has(id))) : ran;
  }
  return common ?? new Map();
}

function report(request: string, ran: ReadonlyMap<number, number>): void {
  const names = [...ran.keys()].map((id) => functions[id] as string);
  const files = new Set(names.map((name) => name.slice(0, name.indexOf(':'))));
  const sum = [...ran.values()].reduce((total, count) => total + count, 0);
  console.log(`${request}: ${ran.size} functions in ${files.size} files, ${sum} calls`);
  if (process.argv.includes('--names')) console.log(names.toSorted().join('\n'));
}
