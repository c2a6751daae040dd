import { fileURLToPath } from 'node:url';
import type { SearchFile } from './audit/port.ts';
import { openChildren } from './children.ts';
import { LIMITS } from './domain/limits.ts';

/** As bin/authrealm has it: no file of the working folder says what the runtime does. */
const RUNTIME_OPTIONS = ['--no-env-file', '--config=/dev/null', '--tsconfig-override=/dev/null'];

/** The command line of a hidden command of this program, for another process of it. */
export function besideCommand(...words: readonly string[]): readonly string[] {
  return [process.execPath, ...RUNTIME_OPTIONS, fileURLToPath(new URL('main.ts', import.meta.url)), ...words];
}

/** The hidden command of a process that reads lists and counts beside a service. */
export const READER_COMMAND = 'reader';

/** The hidden command of a process that looks for texts in a file that this one has open. */
export const SEARCHER_COMMAND = 'searcher';

/** What a searcher is asked. */
export interface SearchQuestion {
  readonly path: string;
  readonly texts: readonly string[];
}

/** Looks into files of databases by another process, which is ended by `close`. */
export function openSearch(): { readonly search: SearchFile; close(): Promise<void> } {
  const searchers = openChildren({
    command: besideCommand(SEARCHER_COMMAND),
    atOnce: 1,
    waitingMax: LIMITS.listsWaitingMax,
    waitMsMax: LIMITS.questionMsMax,
  });
  return {
    search: (path, texts) => searchers.ask<boolean>({ path, texts } satisfies SearchQuestion),
    close: searchers.close,
  };
}
