let format: Intl.DateTimeFormat | undefined;

/** Locale and time zone of the browser. Creating the first formatter is slow. */
export function formatHere(): Intl.DateTimeFormat {
  format ??= new Intl.DateTimeFormat(undefined, { dateStyle: 'medium', timeStyle: 'medium' });
  return format;
}

// Create it while the first responses are on their way.
setTimeout(formatHere);

/** A time in the local time zone, with UTC in its tooltip. `at` is ISO 8601. */
export function Timestamp({ at }: { readonly at: string }) {
  const date = new Date(at);
  if (Number.isNaN(date.getTime())) return <span>{at}</span>;
  const utc = `${date.toISOString().replace('T', ' ').replace('Z', '')} UTC`;
  return (
    <time dateTime={date.toISOString()} title={utc}>
      {formatHere().format(date)}
    </time>
  );
}
