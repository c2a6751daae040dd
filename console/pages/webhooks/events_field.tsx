import { DESCRIBED } from 'authrealm:described';
import { useId, useState } from 'preact/hooks';
import type { Wish } from '../../api/webhooks.ts';
import { nounOf } from '../../parts/nouns.ts';

type Events = Wish['events'];

interface EventsFieldProps {
  readonly events: Events;
  readonly complaint: string;
  readonly onEvents: (events: Events) => void;
}

/** Every event, or some of them. */
export function EventsField({ events, complaint, onEvents }: EventsFieldProps) {
  const group = useId();
  const [some, setSome] = useState<readonly string[]>(events === '*' ? [] : events);
  const isAll = events === '*';
  const choose = (chosen: readonly string[]) => {
    setSome(chosen);
    onEvents(chosen);
  };
  return (
    <fieldset class="choices" aria-describedby={complaint === '' ? undefined : `${group}-complaint`}>
      <legend>Events</legend>
      <label class="check">
        <input type="radio" name={group} checked={isAll} onChange={() => onEvents('*')} />
        Every event, also those of later releases
      </label>
      <label class="check">
        <input
          type="radio"
          name={group}
          checked={!isAll}
          aria-invalid={complaint !== ''}
          onChange={() => onEvents(some)}
        />
        Only some
      </label>
      {!isAll && (
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
      {complaint !== '' && (
        <p class="complaint" id={`${group}-complaint`}>
          {complaint}
        </p>
      )}
    </fieldset>
  );
}

/** `user-authentication-info.updated` is `user updated`. */
export function eventWords(event: string): string {
  const dot = event.lastIndexOf('.');
  return `${nounOf(event.slice(0, dot)).one} ${event.slice(dot + 1)}`;
}
