import { SQL } from 'bun';
import { quantilesOf } from './pgbench.ts';
import { lookupStatements } from './postgres_population.ts';

/**
 * The driver by itself, in a process of its own: one caller who selects one row after the other, prepared. Arguments:
 * the URL, how many users there are, seconds. Prints what it came to as JSON.
 */
const [url = '', users = '', seconds = ''] = process.argv.slice(2);
const sql = new SQL(url, { max: 1 });
const statements = lookupStatements(Number(users), 20_000);
const latencies: number[] = [];
const end = performance.now() + (1 + Number(seconds)) * 1000;
const warm = performance.now() + 1000;
for (let index = 0; performance.now() < end; index += 1) {
  const { text, values } = statements[index % statements.length] as (typeof statements)[number];
  const start = performance.now();
  const rows = await sql.unsafe(text, [...values]);
  if (rows.length !== 1) throw new Error('a row is missing');
  if (start > warm) latencies.push(performance.now() - start);
}
await sql.close();
console.log(
  JSON.stringify({ requestsPerSecond: latencies.length / Number(seconds), ...quantilesOf(latencies) }),
);
