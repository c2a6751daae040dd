import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { SQL } from 'bun';
import { type PostgresServer, ROLES } from './postgres_server.ts';

/** The blocks of docs/guides/citus.md, with the servers and the database of a test instead of those that it names. */
export interface CitusGuide {
  /** The statements of the SQL blocks under a heading, one list a block. */
  sql(heading: string): readonly (readonly string[])[];
  /** The words of the commands in the shell blocks under a heading, without the name of the program. */
  commands(heading: string): readonly (readonly string[])[];
}

interface GuidePlaces {
  /** By name, without the domain. */
  readonly servers: Readonly<Record<string, Pick<PostgresServer, 'host' | 'port'>>>;
  readonly database: string;
  readonly masterKeyFile: string;
  /** The realm in the statements. */
  readonly realm?: string;
}

const PAGE = readFileSync(fileURLToPath(new URL('../../docs/guides/citus.md', import.meta.url)), 'utf8');
const EXAMPLE_REALM = '00000000-0000-7000-8000-000000000000';

/** The settings that the guide prescribes for every node. */
export function guideSettings(): Readonly<Record<string, string>> {
  const [block = ''] = blocksUnder('Set it up', 'ini');
  const lines = block.trim().split('\n');
  return Object.fromEntries(
    lines.map((line) => line.split(' = ').map((part) => part.replaceAll("'", '')) as [string, string]),
  );
}

export function readCitusGuide({
  servers,
  database,
  masterKeyFile,
  realm = EXAMPLE_REALM,
}: GuidePlaces): CitusGuide {
  const serverOf = (name: string) => {
    const server = servers[name];
    if (!server) throw new Error(`the test has no server ${name}`);
    return server;
  };
  return {
    sql: (heading) =>
      blocksUnder(heading, 'sql').map((block) =>
        statementsIn(
          block
            .replace(
              /'([\w-]+)\.example', 5432/g,
              (_, name) => `'${serverOf(name).host}', ${serverOf(name).port}`,
            )
            .replace(
              /nodename = '([\w-]+)\.example' and nodeport = 5432/g,
              (_, name) => `nodename = '${serverOf(name).host}' and nodeport = ${serverOf(name).port}`,
            )
            .replaceAll(EXAMPLE_REALM, realm),
        ),
      ),
    commands: (heading) =>
      blocksUnder(heading, 'sh').map((block) =>
        wordsIn(
          block
            .replace(/([\w-]+)\.example/g, (_, name) => `${serverOf(name).host}:${serverOf(name).port}`)
            .replaceAll('authrealm_owner@', `${ROLES[0]}@`)
            .replaceAll('authrealm@', `${ROLES[1]}@`)
            .replace(/(?<=:\d+)\/authrealm\b/g, `/${database}`)
            .replaceAll('/etc/authrealm/master.key', masterKeyFile),
        ).slice(1),
      ),
  };
}

function blocksUnder(heading: string, language: 'ini' | 'sh' | 'sql'): readonly string[] {
  const section = PAGE.split(`\n## ${heading}\n`)[1]?.split('\n## ')[0];
  if (section === undefined) throw new Error(`docs/guides/citus.md has no heading ${heading}`);
  return [...section.matchAll(new RegExp(`^\`\`\`${language}\\n(.*?)^\`\`\``, 'gms'))].map(
    ([, block = '']) => block,
  );
}

function statementsIn(block: string): readonly string[] {
  return block
    .split(/;\n/)
    .map((statement) => statement.trim())
    .filter((statement) => statement !== '');
}

function wordsIn(command: string): readonly string[] {
  const words = command.replaceAll('\\\n', ' ').trim().split(/\s+/);
  return words.map((word) => word.replace(/^'(.*)'$/, '$1'));
}

/** Runs the statements of a block one by one, as a terminal does. Returns the rows of the last one. */
export async function runBlock<R>(
  server: PostgresServer,
  database: string,
  statements: readonly string[] = [],
): Promise<readonly R[]> {
  if (statements.length === 0) throw new Error('the guide has no such block');
  const sql = new SQL(server.url(database), { max: 1 });
  try {
    let rows: readonly R[] = [];
    for (const statement of statements) rows = await sql.unsafe(statement);
    return rows;
  } finally {
    await sql.close();
  }
}
