import { type Observable, observable } from '../observable.ts';
import { session } from './session.ts';

/**
 * Work that outlives a page, and a session that expired. It belongs to whoever began it: it is cancelled, and nothing is
 * left of it, where they sign out or somebody else signs in.
 */
export function belonging<T extends { cancel(): void }>(): Observable<T | undefined> {
  const work = observable<T | undefined>(undefined);
  let { person } = session.get();
  session.follow((state) => {
    if (state.person === person) return;
    person = state.person;
    work.get()?.cancel();
    work.set(undefined);
  });
  return work;
}
