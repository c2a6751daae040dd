import { SQL } from 'bun';
import { quantilesOf } from './pgbench.ts';
import { lookupStatements } from './postgres_population.ts';

/**
 * The driver without the service, in a separate process: one caller that selects one row after another with prepared
 * statements. Arguments: database URL, number of users, seconds. Prints its `RequestTimes` as JSON.
 */
const [url = '', users = '', seconds = ''] = process.argv.slice(2);
const sql = new SQL(url, { max: 1 });
const statements = lookupStatements(Number(users), 20_000);
const latencies: number[] = [];
const end = performance.now() + (1 + Number(seconds)) * 1000;
const warmUpEnd = performance.now() + 1000;
let requests = 0;
for (; performance.now() < end; requests += 1) {
  const { text, values } = statements[requests % statements.length] as (typeof statements)[number];
  const start = performance.now();
  const rows = await sql.unsafe(text, [...values]);
  if (rows.length !== 1) throw new Error('a row is missing');
  if (start > warmUpEnd) latencies.push(performance.now() - start);
}
await sql.close();
console.log(
  JSON.stringify({
    requests,
    requestsPerSecond: latencies.length / Number(seconds),
    ...quantilesOf(latencies),
  }),
);
