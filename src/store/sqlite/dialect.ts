import { RESOURCES } from '../../domain/resources.ts';
import type { Dialect } from '../dialect.ts';
import { statementsOver } from '../statements.ts';
import { slotOf } from './slot.ts';

export const SQLITE: Dialect = {
  position: 'instr',
  greatest: 'max',
  hasChecksums: true,
  hexBehindFirst: (value) => `lower(hex(substr(${value}, 2, 8)))`,
  /** A slot that is taken leaves the choice to the engine. */
  insertion({ table }, columns) {
    const isTaken = `exists (select 1 from ${table} where slot = ?1)`;
    const places = columns.map((_, index) => `?${index + 2}`).join(', ');
    return {
      text: `insert into ${table} (slot, ${columns.join(', ')})
        values (case when ${isTaken} then null else ?1 end, ${places})`,
      lead: (id) => [slotOf(id)],
    };
  },
};

export const statementsOf = statementsOver(RESOURCES, SQLITE);
