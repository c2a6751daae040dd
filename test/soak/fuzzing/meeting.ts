/** Where those who work beside each other meet, once. */
export interface Meeting {
  /** Resolves, or rejects, with what is done there. */
  come(): Promise<void>;
  /** Says, instead of coming, that the others need not wait. */
  stayAway(): void;
}

/** `during` begins when all have come who will; nothing is done where nobody comes. */
export function openMeeting(invited: number, during: () => Promise<void>): Meeting {
  const done = Promise.withResolvers<void>();
  let came = 0;
  let expected = invited;
  const beginWithLast = () => {
    if (came > 0 && came === expected) during().then(done.resolve, done.reject);
  };
  return {
    come() {
      came += 1;
      beginWithLast();
      return done.promise;
    },
    stayAway() {
      expected -= 1;
      beginWithLast();
    },
  };
}
