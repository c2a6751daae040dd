import type { AuthStore } from '../../access/store/access.ts';
import type { SealedStore } from '../../access/store/sealed.ts';
import type { FeedStore } from '../../deliver/store/feed.ts';
import type { WebhookStore } from '../../deliver/store/webhooks.ts';
import type { Eraser } from '../../log/store/erase.ts';
import type { LogStore } from '../../log/store/reading.ts';
import type { ErasedBytes } from '../../model/log/erasure.ts';
import type { Loader, MaybePromise, Scanner, Store } from '../../model/store.ts';
import type { ReaderClient } from '../../records/store/lists/lists.ts';
import type { BudgetStore } from '../../sign_in/store/budgets.ts';
import type { CredentialStore } from '../../sign_in/store/credentials.ts';
import type { LeaseStore } from '../../sql/leases.ts';
import type { WriterFigures } from '../../sql/transactions.ts';
import type { Inspection } from '../doctor/inspection.ts';
import type { openInspectedStores } from './inspected_stores.ts';

/** An open database, with one port for each module that uses it. */
export interface Engine {
  /** Current metrics; reading them costs nothing. */
  figures(): EngineFigures;
  /** Milliseconds of the event loop that work other than lookups has taken when no request ran, such as commits. */
  workMs(): number;
  readonly records: Store & Loader & Scanner & Eraser;
  readonly access: AuthStore;
  readonly credentials: CredentialStore;
  readonly sealed: SealedStore;
  readonly budgets: BudgetStore;
  readonly log: LogStore;
  readonly leases: LeaseStore;
  /** Removes what is left of deleted data from the files of an embedded database. */
  removeErasedBytes(): Promise<ErasedBytes>;
  /** Updates the planner's statistics after many writes. Where it fails, or the role may not, it resolves: a server does it later. */
  updateStatistics(): Promise<void>;
  readonly feed: FeedStore;
  readonly webhooks: WebhookStore;
  /** Functions of a database inside this process only; undefined for a database server. */
  readonly embedded: Embedded | undefined;
  close(): MaybePromise<void>;
}

/** Metrics of the engine in one process. */
export interface EngineFigures extends WriterFigures {
  /** Long lists; undefined if reader processes read them. */
  readonly lists: QueueFigures | undefined;
}

export interface QueueFigures {
  readonly waiting: number;
  readonly working: number;
}

/** A database that lives in this process and a file. */
export interface Embedded {
  /** `records.list` that delegates lists of many rows to a reader process, so that this process does not block. */
  listDelegating(send: ReaderClient): Store['list'];
  /** `records.searchRealms` that delegates searches without an index. */
  searchDelegating(searchWhole: Store['searchRealms']): Store['searchRealms'];
  /** The bytes of the write-ahead log. */
  logBytes(): number;
}

/** A read-only view of a database with any schema. */
export interface EngineInspection extends Inspection {
  readonly accessOf: () => ReturnType<typeof openInspectedStores>;
}
