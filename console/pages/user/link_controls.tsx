import { useObserved } from '../../observable.ts';
import { plainText } from '../../parts/characters.ts';
import { Copy } from '../../parts/copy.tsx';
import { Icon } from '../../parts/icon.tsx';
import { may, session } from '../../session/session.ts';
import type { Act } from './acts.tsx';
import { type Link, nameOf } from './reading.ts';

/** What can be done with a link: its history for who may read changes, the rest for who may write. */
export function LinkControls({ link, onAct }: { readonly link: Link; readonly onAct: (act: Act) => void }) {
  const state = useObserved(session);
  const isWriter = may(state, `${link.description.scope}:write`);
  const name = plainText(nameOf(link));
  const button = (
    kind: 'history' | 'editLink' | 'removeLink',
    icon: 'history' | 'edit' | 'remove',
    words: string,
  ) => (
    <button
      type="button"
      class="icon-button"
      aria-label={`${words} ${name}`}
      title={words}
      onClick={() => onAct({ kind, link })}
    >
      <Icon name={icon} />
    </button>
  );
  return (
    <>
      <Copy text={link.record.id} what="the ID of the link" />
      {may(state, 'changes:read') && button('history', 'history', 'History of')}
      {isWriter && button('editLink', 'edit', 'Edit')}
      {isWriter && button('removeLink', 'remove', 'Remove')}
    </>
  );
}
