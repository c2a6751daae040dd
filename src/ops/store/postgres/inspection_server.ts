import type { PostgresAddress } from '../../../sql/postgres/address.ts';
import { detectPooler, POOLER_ADVICE } from '../../../sql/postgres/pooler.ts';
import type { Primary } from '../../../sql/postgres/primary.ts';
import type { InspectionQuery } from '../../../sql/postgres/reading.ts';
import type { EngineState } from '../../doctor/inspection.ts';
import { clusterFindings } from './inspection_cluster.ts';

/** The PostgreSQL releases that this program is tested on. */
const MAJOR_MIN = 15;
const MAJOR_MAX = 18;

const SETTINGS = [
  'fsync',
  'synchronous_commit',
  'full_page_writes',
  'data_checksums',
  'synchronous_standby_names',
] as const;

interface ServerSettings extends Readonly<Record<(typeof SETTINGS)[number], string>> {
  readonly version: number;
  readonly unlogged: string | null;
}

/** The settings of this session: a role or a database may override those of the server. */
const SELECT_SETTINGS = `
  select current_setting('server_version_num')::integer / 10000 as version,
    ${SETTINGS.map((name) => `current_setting('${name}') as ${name}`).join(', ')},
    (select string_agg(relname::text, ', ' order by relname) from pg_class
      where relnamespace = to_regnamespace(quote_ident(current_schema())) and relkind = 'r'
        and relpersistence = 'u') as unlogged`;

/** Checks the server version, the settings on which durability depends, the nodes of a cluster, and the pooler, if any. */
export async function serverState(
  rows: InspectionQuery,
  address: PostgresAddress,
  primary: Primary,
): Promise<EngineState> {
  const [settings] = await rows<ServerSettings>(SELECT_SETTINGS);
  if (!settings) return { facts: [], findings: ['the server did not return its settings'] };
  const pooler = await detectPooler(address, primary);
  return {
    facts: [
      ...SETTINGS.map((name) => `${name} = ${settings[name]}`),
      ...(pooler.isPresent ? ['a pooler shares connections between transactions'] : []),
    ],
    findings: [
      ...durabilityFindings(settings),
      ...(await clusterFindings(rows)),
      ...(pooler.sharesStatementNames ? [`${POOLER_ADVICE} --database`] : []),
    ],
  };
}

function durabilityFindings({
  version,
  fsync,
  synchronous_commit,
  full_page_writes,
  unlogged,
}: ServerSettings): readonly string[] {
  const found: (string | false)[] = [
    (version < MAJOR_MIN || version > MAJOR_MAX) &&
      `this is PostgreSQL ${version}, but this program is tested on ${MAJOR_MIN} to ${MAJOR_MAX}`,
    fsync === 'off' && 'fsync is off: a crash of the machine can damage every table or lose committed writes',
    synchronous_commit === 'off' && 'synchronous_commit is off: a crash loses the last acknowledged writes',
    full_page_writes === 'off' &&
      'full_page_writes is off: a crash of the machine can damage pages unless the file system writes them atomically',
    unlogged !== null && `${unlogged}: unlogged tables, which a crash empties: run alter table … set logged`,
  ];
  return found.filter((finding) => finding !== false);
}
