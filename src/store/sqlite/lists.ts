import type { Database } from 'bun:sqlite';
import type { Listed, Listing, MaybePromise, Placed, Store } from '../../directory/store.ts';
import { LIMITS } from '../../domain/limits.ts';
import { lineage, type Resource, type Scope } from '../../domain/resource.ts';
import { resourceOf } from '../../domain/resources.ts';
import { clauseOf } from '../filters.ts';
import type { SqlValue } from '../statements.ts';
import { readFrom } from './connection.ts';

import { SQLITE, statementsOf } from './dialect.ts';
import {
  type Budget,
  type Elsewhere,
  entered,
  fit,
  type Outcome,
  type Question,
  readList,
} from './list_reading.ts';
import {
  type ListStatements,
  type ListTable,
  listStatements,
  listTable,
  planOf,
  presenceText,
} from './list_statements.ts';
import type { Snapshot } from './snapshot.ts';
import { openTotals } from './totals.ts';

/** What is asked of another process about a list. Plain data. */
export interface ListQuestion {
  /** The name of the resource. */
  readonly resource: string;
  readonly scope: Scope;
  readonly listing: Listing;
  readonly isTotalWanted: boolean;
}

/** Without `listed` the record that the scope names is not there. */
export interface ListAnswer {
  readonly listed?: Listed;
}

/** Asks a process beside this one. Rejects with Fault `overloaded` where too much waits. */
export type AskReader = (question: ListQuestion) => Promise<ListAnswer>;

export interface Lists {
  /** Answers here, however much that touches: for processes that have nothing else to answer meanwhile. */
  readonly here: Store['list'];
  /** Answers here what is asked of another process. */
  answer(question: ListQuestion): Promise<ListAnswer>;
  /** Answers what touches at most LIMITS.listRecordsInTurnMax rows, and asks another process for the rest. */
  beside(ask: AskReader): Store['list'];
}

/** Lists over one connection. */
export function openLists(db: Database, snapshot: Snapshot): Lists {
  const read = openRead(db);
  const together = db.transaction(read);

  /** One read transaction for all statements of an answer, of its own where the snapshot shares none. */
  const within: Read<MaybePromise<Outcome>> = (question, budget) =>
    readFrom(snapshot, () => (db.inTransaction ? read(question, budget) : together(question, budget)));

  const all = (question: Question, isTotalWanted: boolean) =>
    within(question, { isBounded: false, isTotalWanted, knownTotal: () => undefined }) as MaybePromise<
      Listed | undefined
    >;

  return {
    here: (resource, scope, listing) => all({ resource, scope, listing }, true),
    async answer({ resource: name, scope, listing, isTotalWanted }) {
      const listed = await all({ resource: resourceOf(name), scope, listing }, isTotalWanted);
      return listed ? { listed } : {};
    },
    beside: (ask) => listBeside(within, ask),
  };
}

type Read<T> = (question: Question, budget: Budget) => T;

function listBeside(within: Read<MaybePromise<Outcome>>, ask: AskReader): Store['list'] {
  const totals = openTotals();
  const knownTotal = (question: Question) => totals.known(placeOf(question));
  const counted: Budget = { isBounded: true, isTotalWanted: true, knownTotal };
  const uncounted: Budget = { ...counted, isTotalWanted: false };

  /** The page by another process; and the total, where one is wanted and none is known. */
  async function askAll(question: Question): Promise<Listed | undefined> {
    const { resource, scope, listing } = question;
    const known = listing.page.kind === 'offset' ? knownTotal(question) : undefined;
    const isTotalWanted = listing.page.kind === 'offset' && known === undefined;
    const asked = ask({ resource: resource.name, scope, listing, isTotalWanted }).then(
      ({ listed }) => listed,
    );
    if (isTotalWanted) {
      totals.keep(
        placeOf(question),
        asked.then((listed) => listed?.total),
      );
    }
    const listed = await asked;
    return listed && known !== undefined ? fit(listed, listing.page, known).listed : listed;
  }

  /** Many ask for the beginning of one list at once: one of them has it counted, each reads its own page. */
  async function joinOrAsk(question: Question): Promise<Listed | undefined> {
    const counting = totals.awaited(placeOf(question));
    if (!counting) return askAll(question);
    const total = await counting;
    if (total === undefined) return undefined;
    const outcome = await within(question, { ...counted, knownTotal: () => total });
    return typeof outcome === 'string' ? askAll(question) : outcome;
  }

  async function later(
    question: Question,
    pending: Promise<Outcome> | Elsewhere,
  ): Promise<Listed | undefined> {
    const outcome = await pending;
    if (outcome === 'page elsewhere') return askAll(question);
    return outcome === 'total elsewhere' ? joinOrAsk(question) : outcome;
  }

  return (resource, scope, listing) => {
    const question = { resource, scope, listing };
    const outcome = within(question, listing.page.kind === 'offset' ? counted : uncounted);
    return outcome instanceof Promise || typeof outcome === 'string' ? later(question, outcome) : outcome;
  };
}

/** What two questions with one total have in common. */
function placeOf({ resource, scope, listing: { only, filter } }: Question): string {
  return JSON.stringify([resource.name, scope, only, filter]);
}

/** A table with what is prepared for all of its lists. */
interface Table {
  readonly list: ListTable;
  readonly decode: (row: Record<string, unknown>) => Placed;
  /** By the length of a scope. */
  readonly presences: readonly Presence[];
}

type Presence = (scope: Scope) => number | undefined;

function openRead(db: Database): Read<Outcome> {
  const tables = new Map<Resource, Table>();
  const shapes = new Map<string, ListStatements>();

  function tableOf(resource: Resource): Table {
    let table = tables.get(resource);
    if (!table) {
      const texts = statementsOf(resource);
      table = {
        list: listTable(db, resource, texts),
        decode: texts.decodePlaced,
        presences: presencesOf(db, resource),
      };
      tables.set(resource, table);
    }
    return table;
  }

  /** Callers choose the shapes of their filters: the statements of the oldest one make room for one more. */
  function keep(name: string, made: ListStatements): ListStatements {
    if (shapes.size >= LIMITS.listShapesKeptMax) {
      const oldest = shapes.keys().next().value as string;
      shapes.get(oldest)?.close();
      shapes.delete(oldest);
    }
    shapes.set(name, made);
    return made;
  }

  return ({ resource, scope, listing: given }, budget) => {
    const listing = entered(given);
    const { filter, sort, only } = listing;
    const { list, decode, presences } = tableOf(resource);
    const depth = scope.length;
    const { text: where, values: filtered } = clauseOf(filter, list.columnOf, SQLITE);
    const hasOnly = only !== undefined;
    const name = `${list.table} ${depth} ${hasOnly} ${sort.by} ${sort.isDescending} ${where}`;
    const statements =
      shapes.get(name) ??
      keep(name, listStatements(db, planOf(list, { depth, filter, hasOnly, sort, where })));
    const values: SqlValue[] = hasOnly
      ? [...scope, JSON.stringify(only), ...filtered]
      : [...scope, ...filtered];
    const purging = presences[depth] as Presence;
    return readList({ question: { resource, scope, listing }, statements, values, decode, purging }, budget);
  };
}

function presencesOf(db: Database, resource: Resource): Table['presences'] {
  const line = lineage(resource);
  return line.map((_, depth) => {
    const statement = db.prepare<{ purging: number }, SqlValue[]>(presenceText(line.slice(0, depth)));
    return (scope) => statement.get(...scope)?.purging;
  });
}
