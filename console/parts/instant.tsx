const HERE = new Intl.DateTimeFormat(undefined, { dateStyle: 'medium', timeStyle: 'medium' });
const ZONE = new Intl.DateTimeFormat(undefined, { timeZoneName: 'long' });

/** A moment in the zone of the reader; in UTC for who points at it. `at` is ISO 8601. */
export function Instant({ at }: { readonly at: string }) {
  const date = new Date(at);
  if (Number.isNaN(date.getTime())) return <span>{at}</span>;
  const utc = `${date.toISOString().replace('T', ' ').replace('Z', '')} UTC`;
  return (
    <time dateTime={date.toISOString()} title={utc}>
      {HERE.format(date)}
    </time>
  );
}

/** What the zone of the reader is called. */
export function zoneName(): string {
  return ZONE.formatToParts(new Date()).find(({ type }) => type === 'timeZoneName')?.value ?? 'local time';
}
