import type { SearchFile } from '../audit/port.ts';
import { LIMITS } from '../domain/limits.ts';
import { workerCommand } from './command.ts';
import { openPool } from './pool.ts';

export interface FileSearchRequest {
  readonly path: string;
  readonly texts: readonly string[];
}

/** Searches files of databases in a worker, which is ended by `close`. */
export function openSearcher(): { readonly search: SearchFile; close(): Promise<void> } {
  const pool = openPool({
    command: workerCommand('searcher'),
    workersMax: 1,
    waitingMax: LIMITS.listsWaitingMax,
    waitMsMax: LIMITS.doctorQueryMsMax,
  });
  return {
    search: (path, texts) => pool.request<boolean>({ path, texts } satisfies FileSearchRequest),
    close: pool.close,
  };
}
