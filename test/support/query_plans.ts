/** The searches by which SQLite finds the number of a realm, or the ID that a number belongs to. */
const OF_REALM_NUMBER =
  /^(?:CORRELATED )?SCALAR SUBQUERY \d+$|^SEARCH realm_clock USING COVERING INDEX sqlite_autoindex_realm_clock_1 \(realm_id=\?\)$|^SEARCH k USING (?:INTEGER PRIMARY KEY \(rowid=\?\)|COVERING INDEX sqlite_autoindex_realm_clock_1 \(realm_id[=>]\?\))$/;

/** The steps of a query plan besides those that find the number of a realm, each of which is one search in the index of clocks. */
export function withoutRealmNumbers(steps: readonly string[]): readonly string[] {
  return steps.filter((step) => !OF_REALM_NUMBER.test(step));
}
