import { ask } from '../../api/caller.ts';
import { type Problem, problemOf } from '../../api/problem.ts';
import { RESOURCES, type Shown, shown } from '../../api/records.ts';
import { may, type SessionState } from '../../session/session.ts';
import { type Question, questionsFor } from './clue.ts';

/** A user that a clue leads to, and by what. */
export interface Found {
  readonly realm: string;
  readonly user: string;
  /** The record that was met: the user, or a link. */
  readonly record: Shown;
  /** Its resource. */
  readonly name: string;
}

export interface Findings {
  readonly found: readonly Found[];
  /** More than were asked for. */
  readonly hasMore: boolean;
  /** Why kinds could not be asked, each reason once. */
  readonly problems: readonly Problem[];
  /** Resources that this session has no right to look into. */
  readonly unasked: readonly string[];
}

const FOUND_MAX = 25;

interface SearchAnswer {
  readonly data: readonly Item[];
  readonly meta: { readonly realms: { readonly next: string | null; readonly cut: string | null } };
}

type Item = Readonly<Record<string, unknown>> & {
  readonly relationships?: Readonly<Record<string, { readonly data?: { readonly id?: string } }>>;
  readonly links?: { readonly self?: string };
};

/** What questions of one clue have been answered, by their texts. */
export type Known = Map<string, Page>;

/**
 * Everything that a clue leads to; the values travel in bodies, one request a question, all at once. What is known is not asked again: who has a
 * rate gets there in several rounds.
 */
export async function seek(
  clue: string,
  state: SessionState,
  { known, signal }: { readonly known: Known; readonly signal: AbortSignal },
): Promise<Findings> {
  const questions = questionsFor(clue);
  const asked = questions.filter(({ description }) => may(state, `${description.scope}:read`));
  const answers = await Promise.all(
    asked.map((question) =>
      askOnce(question, known, signal).catch((error: unknown) => {
        signal.throwIfAborted();
        return problemOf(error);
      }),
    ),
  );
  const pages = answers.filter((answer) => !(answer instanceof Error)) as readonly Page[];
  return {
    found: once(pages.flatMap(({ found }) => found)),
    hasMore: pages.some(({ hasMore }) => hasMore),
    // A clue that cannot be a username, say, is refused as one: then there is none of that kind.
    problems: eachOnce(answers.filter(isTrouble)),
    unasked: [
      ...new Set(questions.filter((each) => !asked.includes(each)).map((each) => each.description.name)),
    ],
  };
}

async function askOnce(question: Question, known: Known, signal: AbortSignal): Promise<Page> {
  const text = `${question.description.name} ${question.filter.text}`;
  const page = known.get(text) ?? (await askOne(question, signal));
  known.set(text, page);
  return page;
}

interface Page {
  readonly found: readonly Found[];
  readonly hasMore: boolean;
}

async function askOne({ description, filter }: Question, signal: AbortSignal): Promise<Page> {
  const { body } = await ask<SearchAnswer>({
    method: 'POST',
    path: `v2/${description.collections.at(-1)}/search`,
    body: { filter: filter.text, page: { limit: FOUND_MAX } },
    signal,
    scope: `${description.scope}:read`,
  });
  const found = body.data.map((item): Found => {
    const record = shown(description, item);
    const realm = realmIn(item.links?.self ?? '');
    const owner = item.relationships?.[RESOURCES.users.type]?.data?.id;
    return { realm, user: owner ?? record.id, record, name: description.name };
  });
  const { next, cut } = body.meta.realms;
  return { found, hasMore: next !== null || cut !== null };
}

/** Of a link of the service. */
function realmIn(link: string): string {
  return /\/authentication-realms\/([^/?#]+)/.exec(link)?.[1] ?? '';
}

/** A user that is met by two questions of one kind is told once. */
function once(found: readonly Found[]): readonly Found[] {
  return [...new Map(found.map((each) => [each.record.id, each])).values()];
}

function isTrouble(answer: Page | Problem): answer is Problem {
  return answer instanceof Error && answer.kind !== 'refused';
}

/** What several kinds meet is told once, with the longest wait. */
function eachOnce(problems: readonly Problem[]): readonly Problem[] {
  const byWait = problems.toSorted((one, other) => (one.waitSeconds ?? 0) - (other.waitSeconds ?? 0));
  return [...new Map(byWait.map((each) => [each.message, each])).values()];
}
