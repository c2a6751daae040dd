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
 * Counts the functions and files of src/ that run during one GET of a link by ID, one POST of a link and one PUT of it, with a
 * cached token, on both engines. Fails if a request runs through more than its ceiling. `--names` lists them.
 */

const ROOT = join(dirname(fileURLToPath(import.meta.url)), '..');

/** The most functions and files of a request. */
const CEILINGS: Readonly<
  Record<string, Readonly<Record<'GET by ID' | 'POST' | 'PUT', readonly [number, number]>>>
> = {
  sqlite: { 'GET by ID': [54, 21], POST: [197, 55], PUT: [195, 52] },
  postgres: { 'GET by ID': [76, 25], POST: [229, 59], PUT: [232, 57] },
};

/** Spread over several periods of every timer, so that no timer runs during all of them. */
const REQUESTS = 12;
const PAUSE_MS = 150;

interface Insertion {
  readonly at: number;
  readonly text: string;
}

/** `path:line` and first line of every function; the index is its ID. */
const functions: string[] = [];
/** The IDs of functions that ran. */
type Ran = ReadonlySet<number>;
let called = new Set<number>();
Object.assign(globalThis, { countCall: (id: number) => called.add(id) });

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

let isBeyond = false;
for (const [engine, ceilings] of Object.entries(CEILINGS)) {
  process.env.AUTHREALM_TEST_ENGINE = engine;
  const service = await support.startService();
  const fixture = await support.createFixture(service.db);
  const token = await service.token('profile-infos:read profile-infos:write');
  const path = support.oidcPath(fixture);
  const report = (request: keyof typeof ceilings, ran: Ran) => {
    isBeyond = reportCount(`${request}, ${engine}`, ran, ceilings[request]) || isBeyond;
  };
  report('GET by ID', await measure(() => service.get(path, token)));
  const collection = path.slice(0, path.lastIndexOf('/'));
  const linkOf = (relationships = {}) => ({
    data: {
      type: 'user_authentication_oidc_profile_info',
      subject: crypto.randomUUID(),
      issuer: support.ISSUER,
      ...relationships,
    },
  });
  const profile = { oidc_profile_id: fixture.oidcProfile };
  report('POST', await measure(() => service.post(collection, token, linkOf(profile))));
  report('PUT', await measure(() => service.put(path, token, linkOf())));
  await service.stop();
}
await endServers();
rmSync(support.RUN_FOLDER, { recursive: true, force: true });
process.exit(isBeyond ? 1 : 0);

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

/**
 * The functions that run during every request; those that run during some only were started by timers. What a request leaves to
 * the end of its turn of the event loop belongs to it, whether the response was read earlier or later.
 */
async function measure(send: () => Promise<Response>): Promise<Ran> {
  await send();
  let common: Ran | undefined;
  for (let at = 0; at < REQUESTS; at += 1) {
    await Bun.sleep(PAUSE_MS);
    const ran = new Set<number>();
    called = ran;
    const response = await send();
    await new Promise((resolve) => setImmediate(resolve));
    called = new Set();
    if (!response.ok) throw new Error(`the service returned ${response.status}: ${await response.text()}`);
    common = common ? common.intersection(ran) : ran;
  }
  return common ?? new Set();
}

/** Prints the functions and files of a request, and the ceiling. Returns whether they are beyond it. */
function reportCount(
  request: string,
  ran: Ran,
  [functionsMax, filesMax]: readonly [number, number],
): boolean {
  const names = [...ran].map((id) => functions[id] as string);
  const files = new Set(names.map((name) => name.slice(0, name.indexOf(':'))));
  console.log(
    `${request}: ${ran.size} functions in ${files.size} files, at most ${functionsMax} in ${filesMax}`,
  );
  if (process.argv.includes('--names')) console.log(names.toSorted().join('\n'));
  const isBeyond = ran.size > functionsMax || files.size > filesMax;
  if (isBeyond)
    console.error(
      `${request} runs through more than its ceiling: "npm run count -- --names" lists them; raise it only with a reason`,
    );
  return isBeyond;
}
