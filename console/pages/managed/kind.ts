import type { ComponentType } from 'preact';
import type { Collection } from '../../api/admin.ts';
import type { Verb } from '../../form/record_form.tsx';

/** What is done with one after asking, besides that it is edited. */
export type Action = 'rotate' | 'disable' | 'enable' | 'delete';

export interface FormProps<UntrustedText, Created = UntrustedText> {
  readonly initial: UntrustedText;
  readonly verb: Verb;
  readonly save: (input: Created) => Promise<void>;
  readonly onCancel: () => void;
}

/** Clients, or webhook targets: where their pages differ. */
export interface Kind<UntrustedText, Created = UntrustedText> {
  /** `client`, `webhook`; `title` as it begins a line. */
  readonly what: string;
  readonly title: string;
  /** The page of all of them. */
  readonly home: { readonly label: string; readonly href: string };
  readonly collection: Collection<UntrustedText, Created>;
  /** What a new one begins with. */
  readonly blank: UntrustedText;
  /** Every member that is said, and what a form calls it. */
  readonly labels: Readonly<Record<keyof UntrustedText & string, string>>;
  readonly Form: ComponentType<FormProps<UntrustedText, Created>>;
  readonly words: {
    /** What comes of an act, behind the name. */
    readonly of: Readonly<Record<Action, string>>;
    /** The state of one, and what an act has led to. */
    readonly isEnabled: string;
    readonly isDisabled: string;
    readonly enabledMessage: string;
    /** What the secret before still does. */
    readonly previousSecret: string;
  };
}
