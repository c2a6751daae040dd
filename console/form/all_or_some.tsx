import type { ComponentChildren } from 'preact';
import { useId, useState } from 'preact/hooks';

type Chosen = '*' | readonly string[];

interface AllOrSomeProps {
  readonly legend: string;
  /** The words of either choice. */
  readonly all: string;
  readonly some: string;
  readonly value: Chosen;
  readonly complaint: string;
  readonly onValue: (value: Chosen) => void;
  /** How some are chosen, where not all are. */
  readonly children: (
    some: readonly string[],
    choose: (chosen: readonly string[]) => void,
  ) => ComponentChildren;
}

/** All there are, or some of them; who goes to all and back finds what was chosen. */
export function AllOrSome({ legend, all, some: words, value, complaint, onValue, children }: AllOrSomeProps) {
  const group = useId();
  const [some, setSome] = useState<readonly string[]>(value === '*' ? [] : value);
  const isAll = value === '*';
  const choose = (chosen: readonly string[]) => {
    setSome(chosen);
    onValue(chosen);
  };
  return (
    <fieldset class="choices" aria-describedby={complaint === '' ? undefined : `${group}-complaint`}>
      <legend>{legend}</legend>
      <label class="check">
        <input type="radio" name={group} checked={isAll} onChange={() => onValue('*')} />
        {all}
      </label>
      <label class="check">
        <input
          type="radio"
          name={group}
          checked={!isAll}
          aria-invalid={complaint !== ''}
          onChange={() => onValue(some)}
        />
        {words}
      </label>
      {!isAll && children(some, choose)}
      {complaint !== '' && (
        <p class="complaint" id={`${group}-complaint`}>
          {complaint}
        </p>
      )}
    </fieldset>
  );
}
