import { DESCRIBED } from 'authrealm:described';
import type { Wish } from '../../api/webhooks.ts';
import { AllOrSome } from '../../form/all_or_some.tsx';
import { nounOf } from '../../parts/nouns.ts';

type Events = Wish['events'];

interface EventsFieldProps {
  readonly events: Events;
  readonly complaint: string;
  readonly onEvents: (events: Events) => void;
}

/** Every event, or some of them. */
export function EventsField({ events, complaint, onEvents }: EventsFieldProps) {
  return (
    <AllOrSome
      legend="Events"
      all="Every event, also those of later releases"
      some="Only some"
      value={events}
      complaint={complaint}
      onValue={onEvents}
    >
      {(some, choose) => (
        <>
          <div class="choices-list">
            {DESCRIBED.events.map((event) => (
              <label key={event} class="check">
                <input
                  type="checkbox"
                  checked={some.includes(event)}
                  onChange={({ currentTarget }) =>
                    choose(
                      DESCRIBED.events.filter((each) =>
                        each === event ? currentTarget.checked : some.includes(each),
                      ),
                    )
                  }
                />
                {eventWords(event)}
              </label>
            ))}
          </div>
          <p class="hint">That a user was erased is told to every target.</p>
        </>
      )}
    </AllOrSome>
  );
}

/** `user-authentication-info.updated` is `user updated`. */
export function eventWords(event: string): string {
  const dot = event.lastIndexOf('.');
  return `${nounOf(event.slice(0, dot)).one} ${event.slice(dot + 1)}`;
}
