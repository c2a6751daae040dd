import { SQL } from 'bun';
import { quantilesOf } from './pgbench.ts';
import { lookupStatements } from './postgres_population.ts';

/**
 * The driver without the service, in a separate process: one caller that selects one row after another with prepared
 * statements. Arguments: database URL, number of users, seconds. Prints its `Load` as JSON.
 */
const [url = '', users = '', seconds = ''] = process.argv.slice(2);
const sql = new SQL(url, { max: 1 });
const statements = lookupStatements(Number(users), 20_000);
const latencies: number[] = [];
const end = performance.now() + (1 + Number(seconds)) * 1000;
const warmUpEnd = performance.now() + 1000;
for (let index = 0; performance.now() < end; index += 1) {
  const { text, values } = statements[index % statements.length] as (typeof statements)[number];
  const start = performance.now();
  const rows = await sql.unsafe(text, [...values]);
  if (rows.length !== 1) throw new Error('a row is missing');
  if (start > warmUpEnd) latencies.push(performance.now() - start);
}
await sql.close();
console.log(
  JSON.stringify({ requestsPerSecond: latencies.length / Number(seconds), ...quantilesOf(latencies) }),
);
