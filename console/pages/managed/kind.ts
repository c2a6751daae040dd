import type { ComponentType } from 'preact';
import type { Collection } from '../../api/admin.ts';
import type { Verb } from '../../form/record_form.tsx';

/** Actions with a confirmation. */
export type Action = 'rotate' | 'disable' | 'enable' | 'delete';

export interface FormProps<Input, Created = Input> {
  readonly initial: Input;
  readonly verb: Verb;
  readonly save: (input: Created) => Promise<void>;
  readonly onCancel: () => void;
}

/** The differences between the pages of clients and webhook targets. */
export interface Kind<Input, Created = Input> {
  /** `client`, `webhook` or `invitation`. */
  readonly what: string;
  /** The list page. */
  readonly home: { readonly label: string; readonly href: string };
  readonly collection: Collection<Input, Created>;
  /** Initial values of all writable members. */
  readonly blank: Input;
  readonly Form: ComponentType<FormProps<Input, Created>>;
  readonly words: {
    /** The consequence of an action, following the name. */
    readonly of: Readonly<Record<Action, string>>;
    /** Descriptions of the state. */
    readonly isEnabled: string;
    readonly isDisabled: string;
    /** What the previous secret is still good for. */
    readonly previousSecret: string;
  };
}
