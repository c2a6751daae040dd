import { LIMITS } from '../domain/limits.ts';
import type { WebhookStore } from '../webhooks/port.ts';
import type { Dialect, ListDialect } from './dialect.ts';
import type { Transactions } from './transactions.ts';
import { first, type Long } from './work.ts';

const SINCE = `select behind_since from webhook_progress where webhook_id = ? and behind_since > 0
  order by behind_since limit 1`;
const REALMS = `select count(*) as n from (select 1 from webhook_progress
  where webhook_id = ? and behind_since > 0 limit ?) as counted`;
const lettersBy = ({ by }: ListDialect): string => `select count(*) as n from (select 1
  from dead_letter${by('dead_letter_left')} where webhook_id = ? and redelivered_at is null limit ?) as counted`;

/** What receivers are owed, for whoever watches. */
export function openArrears(
  { read }: Pick<Transactions, 'read'>,
  { lists }: Dialect,
): Pick<WebhookStore, 'arrears'> {
  const letters = lettersBy(lists);
  return {
    arrears: (webhookId) =>
      read(function* () {
        const since = (yield* first<{ readonly behind_since: Long }>(SINCE, webhookId))?.behind_since;
        const counted = [];
        for (const text of [REALMS, letters]) {
          counted.push(
            Number((yield* first<{ readonly n: Long }>(text, webhookId, LIMITS.arrearsCountedMax))?.n),
          );
        }
        const [realms = 0, left = 0] = counted;
        return { since: since === undefined ? undefined : Number(since), realms, letters: left };
      }),
  };
}

/** Every text about arrears. */
export const arrearsTexts = ({ lists }: Dialect): readonly string[] => [SINCE, REALMS, lettersBy(lists)];
