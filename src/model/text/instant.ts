/** RFC 3339, 5.6, without leap seconds: the day, the time, the fraction of a second, and the offset unless it is Z. */
const INSTANT =
  /^(\d{4}-\d\d-\d\d)T((?:[01]\d|2[0-3]):[0-5]\d:[0-5]\d)(?:\.(\d+))?(?:Z|([+-])([01]\d|2[0-3]):([0-5]\d))$/i;

/** An instant of a day that exists, cut to the millisecond, since the epoch; undefined for any other text. */
export function parseInstant(raw: string): number | undefined {
  const [, day, time, fraction = '', sign, hours, minutes] = INSTANT.exec(raw) ?? [];
  const local = Date.parse(`${day}T${time}.${fraction.slice(0, 3).padEnd(3, '0')}Z`);
  // Some days that no month has are taken for days of the next one.
  if (Number.isNaN(local) || !new Date(local).toISOString().startsWith(`${day}T`)) return undefined;
  const offset =
    sign === undefined ? 0 : Number(`${sign}1`) * (Number(hours) * 60 + Number(minutes)) * 60_000;
  return local - offset;
}
