import type { ComponentType } from 'preact';
import type { Collection } from '../../api/admin.ts';
import type { Verb } from '../../form/record_form.tsx';

/** What is done with one after asking, besides that it is edited. */
export type Act = 'rotate' | 'disable' | 'enable' | 'delete';

export interface FormProps<Said, Created = Said> {
  readonly begin: Said;
  readonly verb: Verb;
  readonly save: (said: Created) => Promise<void>;
  readonly onCancel: () => void;
}

/** Clients, or webhook targets: where their pages differ. */
export interface Kind<Said, Created = Said> {
  /** `client`, `webhook`; `title` as it begins a line. */
  readonly what: string;
  readonly title: string;
  /** The page of all of them. */
  readonly home: { readonly label: string; readonly href: string };
  readonly collection: Collection<Said, Created>;
  /** What a new one begins with. */
  readonly blank: Said;
  /** Every member that is said, and what a form calls it. */
  readonly labels: Readonly<Record<keyof Said & string, string>>;
  readonly Form: ComponentType<FormProps<Said, Created>>;
  readonly words: {
    /** What comes of an act, behind the name. */
    readonly of: Readonly<Record<Act, string>>;
    /** The state of one, and what an act has led to. */
    readonly isOn: string;
    readonly isOff: string;
    readonly turnedOn: string;
    /** What the secret before still does. */
    readonly before: string;
  };
}
