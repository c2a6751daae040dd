import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { type Figure, type Loads, medianRatio } from '../load.ts';
import { markdownTable, medianCell, micros, milliseconds, ratio, whole } from '../markdown.ts';

/** What is measured of a peer and of authrealm. */
const ROWS = {
  reads: 'a user with all links, by ID',
  lookups: 'one link, by ID',
  reverse: 'the user of a subject at an issuer',
  creates: 'a user with a link created',
} as const;

export type PeerRow = keyof typeof ROWS;

/** The figures of one server. */
interface ServerFigures {
  readonly loads: Loads<PeerRow>;
  readonly residentMb: number;
  readonly startMs: number;
  readonly answerBytes: number;
}

export interface PeerResult {
  readonly name: string;
  readonly engine: string;
  readonly answers: string;
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

/** Reads without a request of ours for them are compared with lookups of one link, which the page says. */
function ownRow({ authrealm }: PeerResult, row: PeerRow): PeerRow {
  return row === 'reads' && authrealm.loads.reads === undefined ? 'lookups' : row;
}

function pairCell(result: PeerResult, row: PeerRow, figure: Figure, format = whole): string {
  const theirs = medianCell(result.peer.loads[row], figure, format);
  return `${theirs} / ${medianCell(result.authrealm.loads[ownRow(result, row)], figure, format)}`;
}

/** How many times faster authrealm is, by rate. */
function advantageCell(result: PeerResult, row: PeerRow): string {
  const { peer, authrealm } = result;
  return ratio(medianRatio(authrealm.loads[ownRow(result, row)], peer.loads[row], 'requestsPerSecond'));
}

export function peersMarkdown(run: PeersRun): string {
  const { results, missing, machine, users, seconds, rounds, at } = run;
  const rates = markdownTable(
    ['peer / authrealm', 'reads/s', 'ratio', 'reverse/s', 'ratio', 'creates/s', 'ratio'],
    results.map((result) => [
      result.name,
      ...(['reads', 'reverse', 'creates'] as const).flatMap((row) => [
        pairCell(result, row, 'requestsPerSecond'),
        advantageCell(result, row),
      ]),
    ]),
  );
  const costs = markdownTable(
    [
      'peer / authrealm',
      'processor of a read, µs',
      'p50, ms',
      'p99, ms',
      'bytes of a read',
      'memory, MB',
      'start, ms',
    ],
    results.map((result) => {
      const both = (figure: 'answerBytes' | 'residentMb' | 'startMs') =>
        `${whole(result.peer[figure])} / ${whole(result.authrealm[figure])}`;
      return [
        result.name,
        pairCell(result, 'reads', 'cpuMicros', micros),
        pairCell(result, 'reads', 'p50', milliseconds),
        pairCell(result, 'reads', 'p99', milliseconds),
        both('answerBytes'),
        both('residentMb'),
        both('startMs'),
      ];
    }),
  );
  const answers = results.map(
    ({ name, answers: read, creates }) =>
      `- **${name}** answers a read with ${read}.${creates === undefined ? '' : ` A create makes ${creates}.`}`,
  );
  return [
    rates,
    costs,
    `A read of authrealm is ${ownReads(results)}.\n`,
    ...answers,
    ...missing.map((sentence) => `- ${sentence}`),
    '',
    `${machine.cpu}, ${machine.cores} cores: each server pinned to one, the load on the other, PostgreSQL on both. ` +
      `${whole(users)} users with one link to a provider and one password each; reads by 64 connections, reverse lookups and ` +
      `creates by 16; medians of ${rounds} interleaved rounds of ${seconds} s, and of their ratios; ${at.slice(0, 10)}.\n`,
  ].join('\n');
}

function ownReads(results: readonly PeerResult[]): string {
  return results.every(({ authrealm }) => authrealm.loads.reads !== undefined)
    ? 'a user with all links by one request'
    : '**one link by ID**, and not a user with all links, which this version does not answer by one request';
}
