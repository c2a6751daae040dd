import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { type Figure, type Loads, medianRatio } from '../load.ts';
import { markdownTable, medianCell, milliseconds, ratio, whole } from '../markdown.ts';

/** What is measured of a peer and of authrealm. */
const ROWS = {
  reads: 'a user with all links, by ID',
  reverse: 'the user of a subject at an issuer',
  creates16: 'a user with a link created, 16 callers',
  creates64: 'a user with a link created, 64 callers',
} as const;

export type PeerRow = keyof typeof ROWS;

/** The figures of one server. */
interface ServerFigures {
  readonly loads: Loads<PeerRow>;
  readonly residentMb: number;
  readonly startMs: number;
  readonly answerBytes: number | undefined;
}

export interface PeerResult {
  readonly name: string;
  readonly engine: string;
  readonly answers?: string;
  readonly creates?: string;
  readonly peer: ServerFigures;
  readonly authrealm: ServerFigures;
}

export interface PeersRun {
  readonly at: string;
  readonly machine: { readonly cpu: string; readonly cores: number };
  readonly users: number;
  readonly seconds: number;
  readonly rounds: number;
  readonly results: readonly PeerResult[];
  /** A sentence for each peer that could not be measured. */
  readonly missing: readonly string[];
}

/** Writes the run as JSON, and returns it as Markdown. */
export function reportPeers(run: PeersRun, folder: string): string {
  writeFileSync(join(folder, 'peers.json'), `${JSON.stringify(run, null, 1)}\n`);
  return peersMarkdown(run);
}

function pairCell(result: PeerResult, row: PeerRow, figure: Figure, format = whole): string {
  const theirs = medianCell(result.peer.loads[row], figure, format);
  return `${theirs} / ${medianCell(result.authrealm.loads[row], figure, format)}`;
}

/** How many times faster authrealm is, by rate. */
function advantageCell(result: PeerResult, row: PeerRow): string {
  const { peer, authrealm } = result;
  return ratio(medianRatio(authrealm.loads[row], peer.loads[row], 'requestsPerSecond'));
}

export function peersMarkdown(run: PeersRun): string {
  const { results, missing, machine, users, seconds, rounds, at } = run;
  const rows = Object.keys(ROWS) as PeerRow[];
  const rates = markdownTable(
    ['per second: peer / authrealm', ...rows.flatMap((row) => [ROWS[row], 'ratio'])],
    results.map((result) => [
      result.name,
      ...rows.flatMap((row) => [pairCell(result, row, 'requestsPerSecond'), advantageCell(result, row)]),
    ]),
  );
  const times = markdownTable(
    ['processor, µs: server + PostgreSQL', ...rows.map((row) => ROWS[row])],
    results.map((result) => [result.name, ...rows.map((row) => processorCell(result, row))]),
  );
  const costs = markdownTable(
    ['peer / authrealm', 'p50 of a read, ms', 'p99, ms', 'bytes of a read', 'memory, MB', 'start, ms'],
    results.map((result) => {
      const both = (figure: 'answerBytes' | 'residentMb' | 'startMs') =>
        `${figureCell(result.peer[figure])} / ${figureCell(result.authrealm[figure])}`;
      return [
        result.name,
        pairCell(result, 'reads', 'p50', milliseconds),
        pairCell(result, 'reads', 'p99', milliseconds),
        both('answerBytes'),
        both('residentMb'),
        both('startMs'),
      ];
    }),
  );
  return [
    rates,
    times,
    costs,
    ...results.map(noteOf),
    ...missing.map((sentence) => `- ${sentence}`),
    '',
    `${machine.cpu}, ${machine.cores} cores: each server pinned to one, the load on the other, PostgreSQL on both. ` +
      `${whole(users)} users with one link to a provider and one password each; reads by 64 connections, reverse lookups by 16; ` +
      `medians of ${rounds} interleaved rounds of ${seconds} s, and of their ratios; ${at.slice(0, 10)}.\n`,
  ].join('\n');
}

const figureCell = (value: number | undefined) => (value === undefined ? '–' : whole(value));

/** The processor time of a request: of the server and, on PostgreSQL, of the database. */
function processorCell({ peer, authrealm }: PeerResult, row: PeerRow): string {
  const cell = ({ loads }: ServerFigures) =>
    [
      medianCell(loads[row], 'cpuMicros'),
      ...(loads[row]?.some((load) => load.databaseCpuMicros !== undefined)
        ? [medianCell(loads[row], 'databaseCpuMicros')]
        : []),
    ].join(' + ');
  return `${cell(peer)} / ${cell(authrealm)}`;
}

/** What the rows of a peer contain, where that is not a user with all links. */
function noteOf({ name, answers, creates }: PeerResult): string {
  const read =
    answers === undefined ? 'has no request for a user with all links' : `answers a read with ${answers}`;
  return `- **${name}** ${read}.${creates === undefined ? '' : ` A create makes ${creates}.`}`;
}
