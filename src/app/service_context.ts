import type { LoopBudget } from '../http/pipeline/loop_budget.ts';
import type { Clock } from '../model/id.ts';
import type { Log } from '../ops/process/log.ts';
import type { Settings } from './config/parse.ts';
import type { OpenDatabase } from './open_database.ts';

/** What the parts of a serving process are made of. */
export interface ServiceContext extends Pick<OpenDatabase, 'engine' | 'keyring' | 'logKeys'> {
  readonly settings: Settings;
  readonly loopBudget: LoopBudget;
  readonly log: Log;
  readonly clock: Clock;
}
