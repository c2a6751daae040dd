let format: Intl.DateTimeFormat | undefined;

/** Of the language and the zone of the reader. The first one takes a browser as long as all else that a page begins with. */
function formatHere(): Intl.DateTimeFormat {
  format ??= new Intl.DateTimeFormat(undefined, { dateStyle: 'medium', timeStyle: 'medium' });
  return format;
}

// Made while the first answers are on their way.
setTimeout(formatHere);

/** A moment in the zone of the reader; in UTC for who points at it. `at` is ISO 8601. */
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
