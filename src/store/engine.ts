import type { Eraser, LogStore, ScrubOptions, ScrubResult } from '../audit/port.ts';
import type { AuthStore, SealedStore } from '../auth/port.ts';
import type { LeaseStore } from '../directory/leases.ts';
import type { Loader, MaybePromise, Scanner, Store } from '../directory/store.ts';
import type { Inspection } from '../doctor/inspection.ts';
import type { FeedStore } from '../events/feed/port.ts';
import type { WebhookStore } from '../events/webhooks/port.ts';
import type { ReaderClient } from './lists/lists.ts';

/** An open database: a port for each of those who use it. */
export interface Engine {
  /** What it is at; costs nothing to read. */
  figures(): EngineFigures;
  readonly records: Store & Loader & Scanner & Eraser;
  readonly access: AuthStore;
  readonly sealed: SealedStore;
  readonly log: LogStore;
  readonly leases: LeaseStore;
  /**
   * Sees to it that these texts, which no record holds any more, stand in no file of the database; of one that others run,
   * as far as this role may.
   */
  scrub(texts: readonly string[], how: ScrubOptions): Promise<ScrubResult>;
  readonly feed: FeedStore;
  readonly webhooks: WebhookStore;
  /** What only a database inside this process needs and can; undefined for one that others run. */
  readonly embedded: Embedded | undefined;
  close(): MaybePromise<void>;
}

/** What the engine of one process has come to. */
export interface EngineFigures extends WriterFigures {
  /** Long lists; undefined where another process reads them. */
  readonly lists: QueueFigures | undefined;
}

export interface WriterFigures {
  readonly writesWaiting: number;
  readonly commits: number;
  /** How often a commit had to wait, or to begin again, because somebody else was in the way. */
  readonly retries: number;
}

export interface QueueFigures {
  readonly waiting: number;
  readonly working: number;
}

/** A database that lives in this process and a file. */
export interface Embedded {
  /** `records.list` for a process that must not stop for it: what could touch many rows is asked of another one. */
  listDelegating(ask: ReaderClient): Store['list'];
  /** Copies everything into a new file, complete and consistent, while the service runs. */
  copyTo(path: string): Promise<void>;
}

export interface EmbeddedEngine extends Engine {
  readonly embedded: Embedded;
}

/** A database that is looked at, whatever its schema. */
export interface EngineInspection extends Inspection {
  /** The parts of the access ports that only read. Their questions reject where the tables are not there. */
  readonly accessOf: () => {
    readonly access: Pick<AuthStore, 'state' | 'signingKeys' | 'keyChecks' | 'secret'>;
    readonly sealed: Pick<SealedStore, 'values'>;
  };
}
