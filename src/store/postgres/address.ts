/** Where a PostgreSQL database is and who asks for it. */
export interface PostgresAddress {
  readonly engine: 'postgres';
  /** Tried in this order for the one that can be written. */
  readonly hosts: readonly { readonly host: string; readonly port: number }[];
  readonly database: string;
  readonly user: string;
  readonly password: string | undefined;
  readonly tls: TlsMode;
  /** A file with the certificates that sign the server's, in PEM form; undefined for those the system trusts. */
  readonly rootCertificates: string | undefined;
  /** Whether statements are prepared on the server: not through a pooler that hands connections on after each of them. */
  readonly isPrepared: boolean;
}

/** As `sslmode` of libpq has it, less those that would silently go without. */
export type TlsMode = 'disable' | 'require' | 'verify-ca' | 'verify-full';

const DEFAULT_PORT = 5432;

/** Reads `postgres://user:password@host:port/database`. Answers undefined for anything else. */
export function parsePostgres(raw: string): PostgresAddress | undefined {
  if (!/^postgres(?:ql)?:\/\//.test(raw) || !URL.canParse(raw)) return undefined;
  const url = new URL(raw);
  const database = decodeURIComponent(url.pathname.slice(1));
  if (database === '' || url.hostname === '' || url.username === '') return undefined;
  return {
    engine: 'postgres',
    hosts: [{ host: url.hostname, port: Number(url.port || DEFAULT_PORT) }],
    database,
    user: decodeURIComponent(url.username),
    password: url.password === '' ? undefined : decodeURIComponent(url.password),
    tls: 'disable',
    rootCertificates: undefined,
    isPrepared: url.searchParams.get('prepare') !== 'off',
  };
}
