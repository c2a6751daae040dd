import type { Inspection, MigrationState, Rows, UnreadableProxy } from '../doctor/inspection.ts';
import { realm } from '../domain/resources.ts';
import type { Long, SqlValue } from './transaction_work.ts';

/** The rows of a query with `?` placeholders, one by one, in one snapshot. */
type QueryRows = <T>(text: string, ...values: readonly SqlValue[]) => Rows<T>;

/** The queries of `doctor` that are the same for all engines. */
export type InspectionQueries = Pick<Inspection, 'unknownRealms' | 'unreadableProxies'> & {
  /** The applied migrations, in order. */
  readonly applied: () => Rows<MigrationState['applied'][number]>;
};

export function inspectionQueries(rows: QueryRows): InspectionQueries {
  return {
    applied: () => rows(APPLIED),
    unknownRealms: () => rows(UNKNOWN_REALMS),
    async *unreadableProxies() {
      for await (const { address, at } of rows<UnreadableProxy & { readonly at: Long }>(PROXIES))
        yield { address, at: Number(at) };
    },
  };
}

const APPLIED = 'select version, name, program_version as program from migration order by version';

const UNKNOWN_REALMS = `
  select client_id as "clientId", realm_id as realm from client_realm
  where realm_id not in (select realm_id from ${realm.table}) order by client_id, realm_id`;

const PROXIES = `
  select address, max(at) as at from act where action = 'proxy.unreadable' group by address order by address`;
