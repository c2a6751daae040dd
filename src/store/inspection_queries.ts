import type { Inspection, MigrationState, Rows, UnreadableProxy } from '../doctor/inspection.ts';
import type { Long, SqlValue } from './transaction_work.ts';

/** The rows of a query with `?` placeholders, one by one, in one snapshot. */
type QueryRows = <T>(text: string, ...values: readonly SqlValue[]) => Rows<T>;

/** The queries of `doctor` that are the same for all engines. */
export type InspectionQueries = Pick<Inspection, 'unreadableProxies'> & {
  /** The applied migrations, in order. */
  readonly applied: () => Rows<MigrationState['applied'][number]>;
};

export function inspectionQueries(rows: QueryRows): InspectionQueries {
  return {
    applied: () => rows(APPLIED),
    async *unreadableProxies() {
      for await (const { address, at } of rows<UnreadableProxy & { readonly at: Long }>(PROXIES))
        yield { address, at: Number(at) };
    },
  };
}

const APPLIED = 'select version, name, program_version as program from migration order by version';

const PROXIES = `
  select address, max(at) as at from act where action = 'proxy.unreadable' group by address order by address`;
