interface FormActionsProps {
  readonly submit: string;
  readonly isOff: boolean;
  readonly isDanger?: boolean;
  readonly onCancel: () => void;
}

/** What ends a form: it is sent, or left. */
export function FormActions({ submit, isOff, isDanger = false, onCancel }: FormActionsProps) {
  return (
    <div class="actions">
      <button type="submit" class={isDanger ? 'button button-danger' : 'button button-main'} disabled={isOff}>
        {submit}
      </button>
      <button type="button" class="button" onClick={onCancel}>
        Cancel
      </button>
    </div>
  );
}
