import type { EngineState } from '../../doctor/inspection.ts';
import type { PostgresAddress } from './address.ts';
import type { InspectionQuery } from './inspection.ts';
import { detectPooler, POOLER_ADVICE } from './pooler.ts';

/** The releases that this program was run on. */
const MAJOR_MIN = 15;
const MAJOR_MAX = 18;

interface ServerSettings {
  readonly version: number;
  readonly fsync: string;
  readonly synchronous_commit: string;
  readonly full_page_writes: string;
  readonly data_checksums: string;
  readonly synchronous_standby_names: string;
  readonly unlogged: string | null;
}

const SETTINGS = [
  'fsync',
  'synchronous_commit',
  'full_page_writes',
  'data_checksums',
  'synchronous_standby_names',
];

/** As they are for whoever asks: a role or a database may have settings of its own. */
const SELECT_SETTINGS = `
  select current_setting('server_version_num')::integer / 10000 as version,
    ${SETTINGS.map((name) => `current_setting('${name}') as ${name}`).join(', ')},
    (select string_agg(relname::text, ', ' order by relname) from pg_class
      where relnamespace = to_regnamespace(quote_ident(current_schema())) and relkind = 'r'
        and relpersistence = 'u') as unlogged`;

/** What decides whether a write that was acknowledged is there after a crash, and who stands in between. */
export async function serverState(rows: InspectionQuery, address: PostgresAddress): Promise<EngineState> {
  const [told] = await Array.fromAsync(rows<ServerSettings>(SELECT_SETTINGS));
  if (!told) return { facts: [], findings: ['the engine does not tell its settings'] };
  const pooler = await detectPooler(address);
  return {
    facts: [
      ...SETTINGS.map((name) => `${name} = ${told[name as keyof ServerSettings]}`),
      ...(pooler.isThere ? ['a pooler hands connections on after each transaction'] : []),
    ],
    findings: [
      ...durabilityFindings(told),
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
      `this program was run on PostgreSQL ${MAJOR_MIN} to ${MAJOR_MAX}, and this is ${version}`,
    fsync === 'off' &&
      'fsync is off: a crash of the machine can damage every table, or lose what was written',
    synchronous_commit === 'off' &&
      'synchronous_commit is off: a crash loses the last writes that were acknowledged',
    full_page_writes === 'off' &&
      'full_page_writes is off: a crash of the machine can damage pages, unless its file system writes them whole',
    unlogged !== null && `${unlogged}: not logged, and emptied by a crash: alter table … set logged`,
  ];
  return found.filter((says) => says !== false);
}
