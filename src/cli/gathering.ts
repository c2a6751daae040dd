import { LIMITS } from '../domain/limits.ts';
import { lasting, type Snapshot, together } from '../observe/family.ts';
import { type Conversation, openConversation, type Utterance } from './conversation.ts';

/** The metrics of all processes of a service, as one. */
export interface Gathering {
  /** One more process, which hears what is sent. */
  join(send: (utterance: Utterance) => void): Member;
  /**
   * What all of them have come to. One that does not answer within LIMITS.metricsMsMax is told as it was last heard;
   * what one that has ended had counted stays.
   */
  together(): Promise<Snapshot>;
  stop(): void;
}

export interface Member {
  hear(utterance: Utterance): void;
  /** It has ended. */
  leave(): void;
}

interface Heard {
  readonly conversation: Conversation;
  last: Snapshot;
}

/** `isHearing`: they are heard every now and then, so that little is lost of one that is killed. */
export function openGathering(startedAt: number, isHearing: boolean): Gathering {
  const members = new Set<Heard>();
  let gone: Snapshot = [];
  let ends = 0;
  let asking: Promise<Snapshot> | undefined;

  async function gather(): Promise<Snapshot> {
    const answers = await Promise.all(
      [...members].map(async (member) => ({
        member,
        answer: await member.conversation.ask(LIMITS.metricsMsMax),
      })),
    );
    // One that has ended meanwhile is among those that are gone.
    const here = answers.filter(({ member }) => members.has(member));
    const late = here.filter(({ answer }) => answer === undefined);
    const heard = here.map(({ answer, member }) => answer ?? lasting(member.last));
    return together([...heard, gone, ownOf(here.length - late.length, late.length)]);
  }

  function ownOf(answering: number, late: number): Snapshot {
    return [
      {
        kind: 'gauge',
        across: 'sum',
        name: 'authrealm_processes',
        help: 'Processes that serve, by whether they told their metrics in time.',
        samples: [
          { labels: { state: 'answering' }, value: answering },
          { labels: { state: 'late' }, value: late },
        ],
      },
      {
        kind: 'counter',
        name: 'authrealm_process_ends_total',
        help: 'Serving processes that ended.',
        samples: [{ labels: {}, value: ends }],
      },
      {
        kind: 'gauge',
        across: 'min',
        name: 'process_start_time_seconds',
        help: 'When the service started, in seconds since the epoch.',
        samples: [{ labels: {}, value: startedAt / 1_000 }],
      },
    ];
  }

  /** Those who ask at once hear the same. */
  function gathered(): Promise<Snapshot> {
    asking ??= gather().finally(() => {
      asking = undefined;
    });
    return asking;
  }

  const timer = isHearing ? setInterval(gathered, LIMITS.metricsHeardMs).unref() : undefined;
  return {
    join(send) {
      const member: Heard = {
        last: [],
        conversation: openConversation({
          send,
          answer: gathered,
          onAnswer: (snapshot) => {
            member.last = snapshot;
          },
        }),
      };
      members.add(member);
      return {
        hear: member.conversation.hear,
        leave() {
          members.delete(member);
          gone = together([gone, lasting(member.last)]);
          ends += 1;
        },
      };
    },
    together: gathered,
    stop: () => clearInterval(timer),
  };
}
