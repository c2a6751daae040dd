import type { ComponentChildren } from 'preact';
import { useMemo, useState } from 'preact/hooks';
import { type Order, pagesOf } from '../../api/pages.ts';
import type { Key, Shown } from '../../api/records.ts';
import type { Description } from '../../description.ts';
import { Icon } from '../../parts/icon.tsx';
import { Instant } from '../../parts/instant.tsx';
import { LongList } from '../../parts/long_list.tsx';
import { nounOf } from '../../parts/nouns.ts';
import { Said } from '../../parts/said.tsx';

interface RecordListProps {
  readonly description: Description;
  readonly above: Key;
  readonly hrefOf: (record: Shown) => string;
  /** Beside the name. */
  readonly more: (record: Shown) => string;
  readonly empty: ComponentChildren;
}

/** The records of a collection, the newest first or the oldest. */
export function RecordList({ description, above, hrefOf, more, empty }: RecordListProps) {
  const [order, setOrder] = useState<Order>('-created_at');
  const read = useMemo(() => pagesOf(description, above, order), [description, above.join('/'), order]);
  const { many, icon } = nounOf(description.name);
  const other = order === 'created_at' ? '-created_at' : 'created_at';
  return (
    <div class="stack-tight">
      <div class="list-tools">
        <button type="button" class="text-button" onClick={() => setOrder(other)}>
          <Icon name="order" /> {order === 'created_at' ? 'Oldest first' : 'Newest first'}
        </button>
      </div>
      <LongList
        label={many}
        read={read}
        empty={empty}
        row={(record) => (
          <a class="row" href={hrefOf(record)}>
            <Icon name={icon} />
            <span class="row-main">
              <span>
                <Said text={String(record.name)} />
              </span>
              <span class="faint">
                <Said text={more(record)} />
              </span>
            </span>
            <span class="row-side faint small">
              <Instant at={record.created_at} />
            </span>
          </a>
        )}
      />
    </div>
  );
}
