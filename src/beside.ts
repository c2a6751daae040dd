import { fileURLToPath } from 'node:url';
import type { SearchFile } from './audit/port.ts';
import { openChildren } from './children.ts';
import { LIMITS } from './domain/limits.ts';
import type { Role } from './roles/roles.ts';

/** As bin/authrealm has it: no file of the working folder says what the runtime does. */
const RUNTIME_OPTIONS = ['--no-env-file', '--config=/dev/null', '--tsconfig-override=/dev/null'];

/** The command line of another process of this program: what it does there, and on what. */
export function besideCommand(does: Role | 'worker', ...words: readonly string[]): readonly string[] {
  return [
    process.execPath,
    ...RUNTIME_OPTIONS,
    fileURLToPath(new URL('main.ts', import.meta.url)),
    does,
    ...words,
  ];
}

/** What a searcher is asked. */
export interface SearchQuestion {
  readonly path: string;
  readonly texts: readonly string[];
}

/** Looks into files of databases by another process, which is ended by `close`. */
export function openSearch(): { readonly search: SearchFile; close(): Promise<void> } {
  const searchers = openChildren({
    command: besideCommand('searcher'),
    atOnce: 1,
    waitingMax: LIMITS.listsWaitingMax,
    waitMsMax: LIMITS.questionMsMax,
  });
  return {
    search: (path, texts) => searchers.ask<boolean>({ path, texts } satisfies SearchQuestion),
    close: searchers.close,
  };
}
