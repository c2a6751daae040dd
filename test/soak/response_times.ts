import { median } from '../../bench/load.ts';
import { shuffled } from '../support/random.ts';
import { isOverloaded, sendWithRetry } from '../support/retry.ts';
import { comparableResponse } from '../support/service.ts';
import { from } from '../support/sign_in.ts';

/**
 * Whether the responses to requests about somebody whom the directory knows differ from those about somebody whom it does not. The times
 * are compared by the area under the ROC curve (AUC): the share of pairs in which the known one took longer, 0.5 if they do not differ.
 */
const AUC_MIN = 0.45;
const AUC_MAX = 0.55;

/** Addresses from which throttled requests are sent: the budget of each is exhausted before its requests. */
const THROTTLED_ADDRESSES = 10;

export interface Attempt {
  readonly isKnown: boolean;
  /** That of the end user. */
  readonly address: string;
}

export interface Answer {
  readonly ms: number;
  readonly response: string;
}

export type Send<A extends Attempt> = (attempt: A) => Promise<A & Answer>;

/** The service, and an access token. */
export interface Target {
  readonly url: string;
  readonly token: string;
}

let addressCount = 0;

/** An address that no request has had: each network has a budget of its own. */
export function freshAddress(): string {
  addressCount += 1;
  return `10.${[16, 8, 0].map((bits) => (addressCount >> bits) & 255).join('.')}`;
}

/** Sends a request for the end user of an attempt. Its time is that of the last try. */
export async function post<A extends Attempt>(
  { url, token }: Target,
  path: string,
  { attempt, body, headers = {} }: Posted<A>,
): Promise<A & Answer> {
  const authorization = { Authorization: `Bearer ${token}`, 'Content-Type': 'application/json' };
  const request = {
    ...{ method: 'POST', headers: { ...authorization, ...from(attempt.address, headers) } },
    body: JSON.stringify(body),
  };
  let ms = 0;
  const response = await sendWithRetry(async () => {
    const sentAt = performance.now();
    const received = await fetch(url + path, request);
    ms = performance.now() - sentAt;
    return received;
  }, isOverloaded);
  return { ...attempt, ms, response: await comparableResponse(response) };
}

interface Posted<A extends Attempt> {
  readonly attempt: A;
  readonly body: object;
  readonly headers?: Record<string, string>;
}

/** Sends one attempt at a time, so that none waits for another one. */
export async function sendAll<A extends Attempt>(
  attempts: readonly A[],
  send: Send<A>,
): Promise<readonly (A & Answer)[]> {
  const answers: (A & Answer)[] = [];
  for (const attempt of attempts) answers.push(await send(attempt));
  return answers;
}

export const statusOf = ({ response }: Answer): number => JSON.parse(response)[0];

export type Comparisons = ReturnType<typeof openComparisons>;

/** Compares responses, and prints a row for each comparison. The order of requests is drawn by `chance`. */
export function openComparisons(chance: () => number) {
  const aucs: number[] = [];
  const complaints: string[] = [];
  printRow(['load', 'request', 'of', 'known ms', 'unknown ms', 'AUC']);

  /** All responses must have this status, the same headers and the same body. */
  function expectOneResponse(load: string, answers: readonly Answer[], status: number): void {
    const responses = [...new Set(answers.map(({ response }) => response))];
    if (responses.length > 1 || !responses[0]?.startsWith(`[${status},`))
      complaints.push(`load ${load}: not one response with ${status}: ${responses.slice(0, 3).join(' ')}`);
  }

  function compareTimes(labels: readonly string[], answers: readonly (Attempt & Answer)[]): void {
    const timesOf = (isKnown: boolean) =>
      answers.filter((answer) => answer.isKnown === isKnown).map(({ ms }) => ms);
    const [known, unknown] = [timesOf(true), timesOf(false)];
    const auc = areaUnderCurve(known, unknown);
    aucs.push(auc);
    printRow([...labels, median(known).toFixed(2), median(unknown).toFixed(2), auc.toFixed(3)]);
  }

  /** Compares responses that a budget refused. */
  function compareThrottled(labels: readonly [string, string], answers: readonly (Attempt & Answer)[]): void {
    expectOneResponse(labels[0], answers.map(withoutWait), 429);
    compareTimes([...labels, 'all'], answers);
  }

  return {
    complain: (complaint: string) => void complaints.push(complaint),
    expectOneResponse,
    compareTimes,
    compareThrottled,
    /** Sends attempts in random order, and compares their responses. */
    async compare<A extends Attempt>(
      labels: readonly [string, string],
      status: number,
      { attempts, send }: { readonly attempts: readonly A[]; readonly send: Send<A> },
    ): Promise<void> {
      const answers = await sendAll(shuffled(attempts, chance), send);
      expectOneResponse(labels[0], answers, status);
      compareTimes([...labels, 'all'], answers);
    },
    /** The same with attempts from addresses whose budget is exhausted. `exhaust` sends a request that takes from it. */
    async compareExhausted<A extends Attempt>(
      labels: readonly [string, string],
      { attempts, send }: { readonly attempts: readonly A[]; readonly send: Send<A> },
      exhaust: (address: string) => Promise<Answer>,
    ): Promise<void> {
      const answers: (A & Answer)[] = [];
      const mixed = shuffled(attempts, chance);
      const share = Math.ceil(mixed.length / THROTTLED_ADDRESSES);
      for (let at = 0; at < mixed.length; at += share) {
        const address = freshAddress();
        while (statusOf(await exhaust(address)) !== 429);
        const here = mixed.slice(at, at + share).map((attempt) => ({ ...attempt, address }));
        answers.push(...(await sendAll(here, send)));
      }
      compareThrottled(labels, answers);
    },
    /** Prints complaints and a summary. Returns whether there were comparisons, and all are within the bounds. */
    report(title: string): boolean {
      const outside = aucs.filter((auc) => !(auc >= AUC_MIN && auc <= AUC_MAX)).length;
      for (const complaint of complaints) console.log(complaint);
      console.log(
        `${title}: ${aucs.length} comparisons, AUC ${Math.min(...aucs).toFixed(3)} to ${Math.max(...aucs).toFixed(3)}, ` +
          `${outside} outside ${AUC_MIN} to ${AUC_MAX}, ${complaints.length} complaints`,
      );
      return aucs.length > 0 && outside === 0 && complaints.length === 0;
    },
  };
}

/** The time until a bucket has a token depends on when it was exhausted. */
function withoutWait(answer: Attempt & Answer): Attempt & Answer {
  return { ...answer, response: answer.response.replace(/(?<="retry-after",)"([1-9]|[1-8]\d|90)"/, '') };
}

/** The share of pairs in which the known one took longer; equal times count half. */
function areaUnderCurve(known: readonly number[], unknown: readonly number[]): number {
  let longer = 0;
  for (const one of known)
    for (const other of unknown) longer += (Number(one > other) + Number(one >= other)) / 2;
  return longer / (known.length * unknown.length);
}

function printRow([load = '', request = '', names = '', ...figures]: readonly string[]): void {
  console.log(
    load.padEnd(9) +
      request.padEnd(10) +
      names.padEnd(10) +
      figures.map((each) => each.padStart(12)).join(''),
  );
}
