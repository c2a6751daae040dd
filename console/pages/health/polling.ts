import { useEffect, useState } from 'preact/hooks';
import { METRICS } from '../../../src/metrics/declarations.ts';
import type { Snapshot } from '../../../src/metrics/family.ts';
import {
  type Figures,
  figuresBetween,
  gaugeOf,
  type MetricsReading,
  readingOf,
} from '../../../src/metrics/figures.ts';
import { callApi } from '../../api/call_api.ts';
import { type Problem, toProblem } from '../../api/problem.ts';

/** One data point; without figures it is a gap. */
export interface Sample {
  /** Seconds since the epoch. */
  readonly at: number;
  readonly figures: Partial<Figures> | undefined;
  /** Age of the oldest change that a webhook target has not received, in seconds. */
  readonly lag: number | undefined;
}

interface PollState {
  /** The oldest first. */
  readonly samples: readonly Sample[];
  readonly newest: MetricsReading | undefined;
  readonly problem: Problem | undefined;
  /** Restarts of the service since the page was opened. */
  readonly restarts: number;
}

const EACH_MS = 2_000;
/** An hour of them, and the history before. */
const SAMPLES_MAX = 2_100;

const EMPTY: PollState = { samples: [], newest: undefined, problem: undefined, restarts: 0 };

/** Reads the last hour from the service, then polls the metrics every two seconds while the page is visible. */
export function usePolling(): PollState {
  const [sampling, setSampling] = useState(EMPTY);
  useEffect(() => {
    const controller = new AbortController();
    const { signal } = controller;
    let timer: ReturnType<typeof setTimeout> | undefined;
    let isPolling = false;

    async function poll(): Promise<void> {
      clearTimeout(timer);
      if (isPolling || document.hidden) return;
      isPolling = true;
      const waitMs = await readSnapshot(signal).then(
        (snapshot) => {
          setSampling((before) => withSnapshot(before, snapshot));
          return EACH_MS;
        },
        (error: unknown) => {
          const problem = toProblem(error);
          if (!signal.aborted) setSampling((before) => withProblem(before, problem));
          return waitAfter(problem);
        },
      );
      isPolling = false;
      if (waitMs !== undefined && !signal.aborted) timer = setTimeout(() => void poll(), waitMs);
    }

    function start(): void {
      readHistory(signal)
        .then((history) => setSampling((before) => withHistory(before, history)))
        // Polling reports the same error.
        .catch(() => undefined)
        .finally(() => void poll());
    }

    const onVisibilityChange = () => {
      clearTimeout(timer);
      if (document.hidden) setSampling(withPause);
      else start();
    };
    start();
    document.addEventListener('visibilitychange', onVisibilityChange);
    return () => {
      controller.abort();
      clearTimeout(timer);
      document.removeEventListener('visibilitychange', onVisibilityChange);
    };
  }, []);
  return sampling;
}

type Point = Partial<Figures> & { readonly at: string; readonly webhook_lag_seconds?: number };

interface HistoryBody {
  readonly data: { readonly at: string; readonly points: readonly Point[] };
}

/** The last hour, in larger steps than those of this page. */
async function readHistory(signal: AbortSignal): Promise<readonly Sample[]> {
  const path = 'admin/v1/metrics/history';
  const { body } = await callApi<HistoryBody>({ path, signal, scope: 'admin' });
  // The clock of the browser may differ from that of the service.
  const aheadMs = Date.now() - Date.parse(body.data.at);
  return body.data.points.map(({ at, webhook_lag_seconds: lag, ...figures }) => ({
    at: (Date.parse(at) + aheadMs) / 1_000,
    figures: Object.keys(figures).length === 0 ? undefined : figures,
    lag,
  }));
}

async function readSnapshot(signal: AbortSignal): Promise<MetricsReading> {
  const path = 'admin/v1/metrics';
  const { body } = await callApi<{ data: { families: Snapshot } }>({ path, signal, scope: 'admin' });
  return readingOf(body.data.families, performance.now());
}

/** Undefined if a retry is no remedy. */
function waitAfter({ kind, waitSeconds = 0 }: Problem): number | undefined {
  if (kind === 'forbidden') return undefined;
  return Math.max(waitSeconds * 1_000, EACH_MS);
}

/** The history since the newest sample: all of it when the page opens, what was missed when it becomes visible again. */
function withHistory(before: PollState, history: readonly Sample[]): PollState {
  const { samples } = before;
  const newest = samples.at(-1)?.at ?? 0;
  return { ...before, samples: [...samples, ...history.filter(({ at }) => at > newest)].slice(-SAMPLES_MAX) };
}

/** The time until the next success is a gap. */
function withProblem(before: PollState, problem: Problem): PollState {
  return { ...before, problem, samples: withGap(before.samples) };
}

/** The time while the page is hidden is a gap until the history is read, not one long interval. */
function withPause(before: PollState): PollState {
  return { ...before, newest: undefined, samples: withGap(before.samples) };
}

function withSnapshot({ samples, newest, restarts }: PollState, snapshot: MetricsReading): PollState {
  const figures = newest && figuresBetween(newest, snapshot);
  const hasRestarted = newest !== undefined && figures === undefined;
  const lag = gaugeOf(snapshot, METRICS.webhookLag.name);
  const sample = { at: Date.now() / 1_000, figures, lag };
  return {
    samples: newest === undefined ? samples : [...samples, sample].slice(-SAMPLES_MAX),
    newest: snapshot,
    problem: undefined,
    restarts: restarts + (hasRestarted ? 1 : 0),
  };
}

function withGap(samples: readonly Sample[]): readonly Sample[] {
  if (samples.length === 0 || samples.at(-1)?.figures === undefined) return samples;
  return [...samples, { at: Date.now() / 1_000, figures: undefined, lag: undefined }].slice(-SAMPLES_MAX);
}
