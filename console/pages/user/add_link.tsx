import { useAsked } from '../../api/answers.ts';
import { pagesOf } from '../../api/pages.ts';
import type { Shown } from '../../api/records.ts';
import { CreateDialog } from '../../form/creating.tsx';
import type { Values } from '../../form/values.ts';
import { plainText } from '../../parts/characters.ts';
import { Dialog } from '../../parts/dialog.tsx';
import { Answered } from '../../parts/notices.tsx';
import { nounOf } from '../../parts/nouns.ts';
import type { LinkKind } from './reading.ts';

interface AddLinkProps {
  readonly realm: string;
  readonly user: string;
  readonly kind: LinkKind;
  readonly onDone: () => void;
  readonly onClose: () => void;
}

/** Adds a way to sign in. Of its profile it takes over what the two should have in common. */
export function AddLinkDialog({ realm, user, kind, onDone, onClose }: AddLinkProps) {
  const { description, profiles, by } = kind;
  const asked = useAsked((signal) => pagesOf(profiles, [realm], 'created_at')('', signal), []);
  if (!asked.answer) {
    return (
      <Dialog title={`New ${nounOf(description.name).one}`} onClose={onClose}>
        <Answered asked={asked}>{() => null}</Answered>
      </Dialog>
    );
  }
  const { items, next } = asked.answer;
  const options = items.map(({ id, name }) => ({ id, label: plainText(String(name)) }));
  const begin = { [by]: items.length === 1 ? items[0]?.id : undefined };
  return (
    <CreateDialog
      description={description}
      above={[realm, user]}
      begin={taken(kind, items, begin)}
      options={{ [by]: next === undefined ? options : undefined }}
      follow={(name, values) => (name === by ? taken(kind, items, values) : values) as Values}
      onDone={onDone}
      onClose={onClose}
    />
  );
}

/** The same with what the profile that is named says of it. */
function taken(
  { description, by }: LinkKind,
  profiles: readonly Shown[],
  values: Readonly<Record<string, unknown>>,
): Readonly<Record<string, unknown>> {
  const profile = profiles.find(({ id }) => id === values[by]);
  const same = description.fields.flatMap(({ name, sameAs }) =>
    profile && sameAs ? [[name, profile[sameAs.member]] as const] : [],
  );
  return { ...values, ...Object.fromEntries(same) };
}
