import { useMemo } from 'preact/hooks';
import type { ReadPage } from '../../api/pages.ts';
import { Icon } from '../../parts/icon.tsx';
import { LongList } from '../../parts/long_list.tsx';
import { Said } from '../../parts/said.tsx';
import type { Refused } from './import_run.ts';
import { saveFile } from './saving.ts';

interface RefusalsProps {
  readonly refused: readonly Refused[];
  /** Of the file they stand in. */
  readonly name: string;
}

const PAGE = 500;

/** The lines that were not taken, and why: to read, and to keep. */
export function Refusals({ refused, name }: RefusalsProps) {
  const read = useMemo((): ReadPage<Refused> => {
    return async (cursor) => {
      const from = Number(cursor);
      const next = from + PAGE < refused.length ? String(from + PAGE) : undefined;
      return { items: refused.slice(from, from + PAGE), next };
    };
  }, [refused]);
  if (refused.length === 0) return null;
  const save = () => {
    const text = refused.map(({ line, reason }) => `line ${line}: ${reason}\n`).join('');
    saveFile(`${name}.refused.txt`, new Blob([text], { type: 'text/plain' }));
  };
  return (
    <section class="stack-tight" aria-label="Refused lines">
      <div class="card-head refused-head">
        <h3>{refused.length === 1 ? '1 line was' : `${numbered(refused.length)} lines were`} refused</h3>
        <button type="button" class="button" onClick={save}>
          <Icon name="transfer" /> Save this list
        </button>
      </div>
      <LongList
        label="Refused lines"
        read={read}
        empty={null}
        isStop={true}
        row={({ line, reason }) => (
          <div class="row">
            <span class="row-main">
              <span>Line {line}</span>
              <span class="faint">
                <Said text={reason} />
              </span>
            </span>
          </div>
        )}
      />
    </section>
  );
}

const NUMBERS = new Intl.NumberFormat();

export function numbered(count: number): string {
  return NUMBERS.format(count);
}
