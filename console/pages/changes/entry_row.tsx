import { Icon } from '../../parts/icon.tsx';
import { Instant } from '../../parts/instant.tsx';
import { nounOf } from '../../parts/nouns.ts';
import { Said } from '../../parts/said.tsx';
import type { Entry } from './entry.ts';
import { memberLabel } from './members.ts';

const BADGES: Readonly<Record<string, string>> = {
  created: 'badge badge-good',
  updated: 'badge',
  deleted: 'badge badge-warn',
  erased: 'badge badge-danger',
};

/** One change in a line; its address opens it. */
export function EntryRow({ entry, href }: { readonly entry: Entry; readonly href: string }) {
  const { kind, what, label, members, record, who, at } = entry;
  const { one, icon } = nounOf(kind);
  return (
    <a class="row entry-row" href={href}>
      <Icon name={icon} />
      <span class="entry-what">
        <span class="entry-noun">{one}</span> <span class={BADGES[what] ?? 'badge'}>{what}</span>
      </span>
      <span class="row-main">
        <span>{label === undefined ? <code class="small">{record}</code> : <Said text={label} />}</span>
        {members.length > 0 && <span class="faint">{members.map(memberLabel).join(', ')}</span>}
      </span>
      <span class="entry-who faint small">
        <Said text={who} />
      </span>
      <span class="row-side faint small">
        <Instant at={at} />
      </span>
    </a>
  );
}
