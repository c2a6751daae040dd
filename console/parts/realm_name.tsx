import type { ComponentChildren } from 'preact';
import { readRealmName } from '../api/realm_names.ts';
import { useFetch } from '../api/use_fetch.ts';
import { UntrustedText } from './untrusted_text.tsx';

interface RealmNameProps {
  readonly id: string;
  /** In place of a name that is not known, or not yet. Default: the ID. */
  readonly children?: ComponentChildren;
}

export function RealmName({ id, children = id }: RealmNameProps) {
  const { answer: name } = useFetch(() => readRealmName(id), [id]);
  return name === undefined ? children : <UntrustedText text={name} />;
}
