import { join } from 'node:path';
import { findProblems, idsIn, type KillTarget, killAfter, missingIds } from './killed_process.ts';
import { AUTHREALM, runCommand } from './processes.ts';

/** Most of it is spent writing, a part of it starting. */
const LIFE_MS = 700;

/** Two processes that write single records to one database, killed in the same moment. */
export async function writersTarget(folder: string): Promise<KillTarget> {
  const path = join(folder, 'writers.db');
  const realm = await createRealm(path);
  const command = [process.execPath, join(import.meta.dir, 'killed_writer.ts'), `sqlite:${path}`, realm];
  const before = idsIn(path);
  const asked = new Set<string>();
  const kept = new Set<string>();
  return {
    name: 'single writes',
    async round(chance) {
      const moment = chance() * LIFE_MS;
      const ends = await Promise.all([killAfter(command, moment), killAfter(command, moment)]);
      const crashed = ends.filter(({ isKilled }) => !isKilled);
      const said = ends.map(({ stdout }) => stdout).join('');
      for (const id of idsInLines('asking', said)) asked.add(id);
      const acknowledged = idsInLines('kept', said);
      for (const id of acknowledged) kept.add(id);
      const complaints = [
        ...crashed.map(({ stderr }) => `a writer ended by itself: ${stderr}`),
        ...(await findProblems(path)),
        ...missingIds(path, kept).map((id) => `${id} was acknowledged and is lost`),
        ...[...idsIn(path)]
          .filter((id) => !before.has(id) && !asked.has(id))
          .map((id) => `nobody asked for ${id}`),
      ];
      return { acknowledged: acknowledged.length, problems: complaints };
    },
  };
}

/** A database with one realm; answers the realm. */
export async function createRealm(path: string): Promise<string> {
  const { stdout, stderr } = await runCommand([AUTHREALM, 'init', '--database', `sqlite:${path}`]);
  const realm = /^realm +(\S+)$/m.exec(stdout)?.[1];
  if (realm === undefined) throw new Error(`init failed: ${stderr}`);
  return realm;
}

/** The identifiers in the lines of a writer that begin with a word. */
export function idsInLines(word: 'asking' | 'kept' | 'failed', said: string): readonly string[] {
  return [...said.matchAll(new RegExp(`^${word} (\\S{36})\\b.*\\n`, 'gm'))].map(([, id]) => id ?? '');
}
