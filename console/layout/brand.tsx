/** A user and two ways to sign in. */
export function Brand() {
  return (
    <svg class="brand-mark" viewBox="0 0 24 24" width="26" height="26" aria-hidden="true" focusable="false">
      <rect width="24" height="24" rx="6" />
      <g>
        <circle cx="7" cy="12" r="2.5" />
        <circle cx="17" cy="7" r="2.5" />
        <circle cx="17" cy="17" r="2.5" />
        <path d="m9.3 10.9 5.4-2.8M9.3 13.1l5.4 2.8" />
      </g>
    </svg>
  );
}
