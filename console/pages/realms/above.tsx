import { useAsked } from '../../api/answers.ts';
import { readRealmName } from '../../api/realm_names.ts';
import { href } from '../../layout/router.ts';
import { Said } from '../../parts/said.tsx';

/** The pages above whatever belongs to a realm. */
export function aboveIn(realm: string) {
  return [
    { label: 'Realms', href: href('realms') },
    { label: <RealmName realm={realm} />, href: href('realms', realm) },
  ];
}

function RealmName({ realm }: { readonly realm: string }) {
  const { answer: name } = useAsked((signal) => readRealmName(realm, signal), [realm]);
  return name === undefined ? <>Realm</> : <Said text={name} />;
}
