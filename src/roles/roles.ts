import { Refusal } from '../domain/fault.ts';
import { EXIT, tellRefusal } from '../exit.ts';

/**
 * What this program does beside a process of it, by the word it is started with. Each loads what it needs and nothing
 * else: a command line takes twice as long to begin with, and this may come at the lowest priority.
 */
const ROLES = {
  /** Hashes passwords. */
  async hasher() {
    const { serveHasher } = await import('../passwords/hasher.ts');
    await serveHasher();
  },
  /** Reads lists and counts in the file of a database. */
  async reader(path: string) {
    const { serveReader } = await import('./reader.ts');
    await serveReader(path);
  },
  /** Looks for texts in the file of a database that the parent has open. */
  async searcher() {
    const { serveSearcher } = await import('./searcher.ts');
    await serveSearcher();
  },
  /** Copies a database, or looks one through. */
  async archiver() {
    const { serveArchiver } = await import('./archiver.ts');
    await serveArchiver();
  },
} satisfies Readonly<Record<string, (path: string) => Promise<void>>>;

export type Role = keyof typeof ROLES;

export function isRole(word: string): word is Role {
  return Object.hasOwn(ROLES, word);
}

/** Does it until the parent is gone, and answers the exit code; what stood in the way is on standard error. */
export async function play(role: Role, path: string): Promise<number> {
  try {
    if (!process.send) throw new Refusal('this command is started by the program itself', { isUsage: true });
    await ROLES[role](path);
    return EXIT.done;
  } catch (error) {
    const { refusalOf } = await import('../store/advice.ts');
    const refusal = refusalOf(error, path || undefined);
    if (!(refusal instanceof Refusal)) throw error;
    return tellRefusal(refusal);
  }
}
