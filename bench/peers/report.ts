import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { type Loads, medianRatio } from '../load.ts';
import { markdownTable, medianCell, milliseconds, ratio, whole } from '../markdown.ts';

/** What is measured of a peer and of authrealm. */
const ROWS = {
  reads: 'a user with all links, by ID',
  reverse: 'the user of a subject',
  creates16: 'creates of a linked user, 16 callers',
  creates64: 'creates of a linked user, 64 callers',
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

/** The rate of the peer, and how many times as many requests authrealm answers. */
function rateCell({ peer, authrealm }: PeerResult, row: PeerRow): string {
  const advantage = medianRatio(authrealm.loads[row], peer.loads[row], 'requestsPerSecond');
  return `${medianCell(peer.loads[row], 'requestsPerSecond')} (${ratio(advantage)})`;
}

export function peersMarkdown(run: PeersRun): string {
  const { results, missing, machine, users, seconds, rounds, at } = run;
  const rows = Object.keys(ROWS) as PeerRow[];
  return [
    markdownTable(
      ['per second', ...rows.map((row) => ROWS[row]), 'p99 of a read, ms', 'memory, MB'],
      results.map((result) => [
        result.name,
        ...rows.map((row) => rateCell(result, row)),
        `${latencyCell(result.peer)} / ${latencyCell(result.authrealm)}`,
        `${whole(result.peer.residentMb)} / ${whole(result.authrealm.residentMb)}`,
      ]),
    ),
    'In parentheses: how many times as many authrealm answers. After a slash: authrealm.',
    '',
    // A peer that is measured on two engines returns the same on both.
    ...new Set(results.map(noteOf)),
    ...missing.map((sentence) => `- ${sentence}`),
    '',
    `${machine.cpu}, ${machine.cores} cores: each server pinned to one, the load on the other, PostgreSQL on both. ` +
      `${whole(users)} users with a link and a password; reads by 64 connections, reverse lookups by 16; ` +
      `medians of ${rounds} rounds of ${seconds} s; ${at.slice(0, 10)}.\n`,
  ].join('\n');
}

const latencyCell = ({ loads }: ServerFigures) => medianCell(loads.reads, 'p99', milliseconds);

/** What the rows of a peer contain. */
function noteOf({ name, answers, creates }: PeerResult): string {
  const read = answers === undefined ? 'has no read of a user with all links' : `reads ${answers}`;
  return `- ${name.split(', ')[0]}: ${read}${creates === undefined ? '' : `; creates ${creates}`}.`;
}
