import { join } from 'node:path';
import { findProblems, idsIn, type KillTarget, killAfter, missingIds } from './killed_process.ts';
import { AUTHREALM, runCommand } from './processes.ts';

/** The longest life of a writer, which includes its start. */
const LIFE_MS = 700;

/** Two processes that write single records to one database, and are killed at the same time. */
export async function writersTarget(folder: string): Promise<KillTarget> {
  const path = join(folder, 'writers.db');
  const realm = await createRealm(path);
  const command = [process.execPath, join(import.meta.dir, 'killed_writer.ts'), `sqlite:${path}`, realm];
  const before = idsIn(path);
  const requested = new Set<string>();
  const committed = new Set<string>();
  return {
    name: 'single writes',
    async round(chance) {
      const moment = chance() * LIFE_MS;
      const ends = await Promise.all([killAfter(command, moment), killAfter(command, moment)]);
      const crashed = ends.filter(({ isKilled }) => !isKilled);
      const output = ends.map(({ stdout }) => stdout).join('');
      for (const id of idsInLines('requested', output)) requested.add(id);
      const acknowledged = idsInLines('committed', output);
      for (const id of acknowledged) committed.add(id);
      const complaints = [
        ...crashed.map(({ stderr }) => `a writer exited: ${stderr}`),
        ...(await findProblems(path)),
        ...missingIds(path, committed).map((id) => `${id} was acknowledged and is lost`),
        ...[...idsIn(path)]
          .filter((id) => !before.has(id) && !requested.has(id))
          .map((id) => `${id} was never requested`),
      ];
      return { acknowledged: acknowledged.length, problems: complaints };
    },
  };
}

/** Creates a database with one realm, and returns its ID. */
export async function createRealm(path: string): Promise<string> {
  const { stdout, stderr } = await runCommand([AUTHREALM, 'init', '--database', `sqlite:${path}`]);
  const realm = /^realm +(\S+)$/m.exec(stdout)?.[1];
  if (realm === undefined) throw new Error(`init failed: ${stderr}`);
  return realm;
}

/** The IDs in the output lines of a writer that begin with this word. */
export function idsInLines(word: 'requested' | 'committed' | 'failed', output: string): readonly string[] {
  return [...output.matchAll(new RegExp(`^${word} (\\S{36})\\b.*\\n`, 'gm'))].map(([, id]) => id ?? '');
}
