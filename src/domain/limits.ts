/**
 * Every bound of the service, named noun–unit–bound. docs/operating.md explains each one; a test holds the two
 * together and another one crosses each bound.
 */
export const LIMITS = Object.freeze({
  /** Request line and headers together; beyond it the runtime answers 431 (contract 8, row 45). */
  headerBytesMax: 16_384,
  bodyBytesMax: 65_536,
  tokenBytesMax: 8_192,
  requestIdCharactersMax: 64,
  /** Proxies that a request may have come by, as far as they are counted. */
  forwardedHopsMax: 32,
  /** Callers of whom it is remembered how much they asked for, for each of the rates. */
  rateBucketsMax: 100_000,
  /** From the request's last header to the answer; then 503. */
  answerMsMax: 5_000,
  /** How long a body may take to come; less than `answerMsMax`, so that the caller learns what was late. */
  bodyMsMax: 4_500,
  /** A connection without traffic is closed. */
  idleSecondsMax: 60,
  /** Requests of a process that wait for something. */
  requestsAtOnceMax: 4_096,
  /** After SIGTERM: how long requests in flight may take to end. */
  drainMsMax: 10_000,
  /** How long a read or write waits for a busy database; less than `answerMsMax`. */
  storeWaitMsMax: 4_000,
  /** How long PostgreSQL may take for one statement of a transaction, or for a connection; less than `storeWaitMsMax`. */
  statementMsMax: 3_500,
  /** How often a host of PostgreSQL that takes writes is looked for while there is none. */
  primarySearchMs: 500,
  /**
   * Connections of a process to a database that is not embedded. Lookups travel together, so one carries more of them
   * than a process can answer.
   */
  accessConnectionsMax: 1,
  lookupConnectionsMax: 1,
  reverseLookupConnectionsMax: 1,
  transactionConnectionsMax: 4,
  listConnectionsMax: 2,
  /** Lookups of one kind in one realm that share a statement, and such statements under way at once. */
  lookupsPerStatementMax: 256,
  lookupStatementsMax: 4,
  /** How long `doctor` waits for the answer to one question about a database that is not embedded. */
  doctorQueryMsMax: 600_000,
  /** How long a start waits for another process that makes or migrates the database. */
  migrationWaitMsMax: 30_000,
  writesQueuedMax: 10_000,
  /**
   * Work that would wait for longer is refused when it comes. What is done together takes less than what is done apart, so
   * a hundred of each kind may wait for longer, and ten in any case.
   */
  workWaitMsMax: 500,
  workAdmittedMin: 100,
  workOverdueMsMax: 2_000,
  workSampleMin: 10,
  /** Pieces of one commit of an embedded database: beyond it the others wait for the next one. Nothing else runs meanwhile. */
  commitWorkMsMax: 10,
  writesGroupedMax: 1_000,
  /** How long commits are apart while lookups are answered: what is written meanwhile shares the next one. */
  commitPauseMs: 10,
  /** So many reads a millisecond are lookups that a commit would hold up. */
  commitPauseReadsMin: 10,
  /** What stands in memory about clients and keys is read again before it is older than this. */
  accessTableAgeMsMax: 900,
  verifiedTokensMax: 10_000,
  /** How long a token that nobody shows is remembered, and up to as long again. */
  verifiedTokensTurnMs: 60_000,
  /** A token names at most this many realms; with more, the client table decides alone. */
  tokenRealmsMax: 32,
  tokenLifetimeSecondsMax: 86_400,
  /** Tokens of one client that were taken back and have not ended. */
  revokedTokensPerClientMax: 1_000,
  /** How long a link to the console can be followed, and how long a session there lasts. */
  consoleLinkMsMax: 60_000,
  consoleTokenSeconds: 900,
  /** Signing keys that stand in the key set at once; who caches it need not take more. */
  signingKeysMax: 32,
  /** How far the clocks of two machines may be apart. */
  clockLeewayMs: 30_000,
  /** How long the key set may be cached, and so how long a new key stands in it before it signs. */
  keySetAgeMsMax: 300_000,
  /** How long the old secret of a client lives after a rotation, unless told otherwise. */
  secretOverlapMs: 86_400_000,
  /** How long it can be told to live. */
  secretOverlapHoursMax: 9_999,
  /** OpenID providers whose tokens are accepted, and the rights of each. */
  issuersMax: 32,
  issuerRightsMax: 100,
  issuerKeysMax: 100,
  /** After this the keys of an issuer are read again, beside the requests; what was read counts up to the second. */
  issuerKeysFreshMs: 300_000,
  issuerKeysAgeMsMax: 3_600_000,
  /** How far two readings of one issuer's keys are apart, however many tokens name a key that is unknown. */
  issuerKeysPauseMs: 10_000,
  /** How long a request waits for the keys of its issuer, less than `answerMsMax`; and how many may. */
  issuerKeysWaitMsMax: 4_000,
  issuerWaitersMax: 64,
  /** The ID token of a provider by which somebody signs in to the console. */
  idTokenBytesMax: 65_536,
  /** Codes of one provider that are exchanged at once. */
  providerCodesAtOnceMax: 16,
  /** How often a process keeps which clients it has seen at work. */
  clientUseSaveMs: 60_000,
  /** Grants of tokens whose entries wait in memory because nothing can be written, and how often that is tried. */
  grantsWaitingMax: 1_000,
  grantRetryMs: 1_000,
  /** How often refused access that was counted is logged, and how many counters a process has for that time. */
  refusalLogMs: 60_000,
  refusalsCountedMax: 1_000,
  /** How long the answer to an erasure waits to know what became of the files; less than `answerMsMax`. */
  scrubWaitMsMax: 3_000,
  /** Records and entries about one user that an answer tells. */
  subjectAccessEntriesMax: 2_000,
  processesMax: 64,
  importLineBytesMax: 65_536,
  importCommitLines: 10_000,
  /** A commit of long lines comes earlier, so that what waits for it stays small. */
  importCommitBytesMax: 16_777_216,
  /** Lines set aside because their parent has not come yet. */
  importDeferredLinesMax: 100_000,
  importDeferredBytesMax: 67_108_864,
  /** How often a commit is tried, each time for `storeWaitMsMax`, before an import gives up. */
  importCommitAttemptsMax: 10,
  /** Records that go along with a removed one in the same commit (contract 8, row 33). */
  cascadeRecordsMax: 1_000,
  /** A list that could touch more is read by another process. */
  listRecordsInlineMax: 1_000,
  /** Lists that are read at once, and those that wait for it. */
  readersMax: 2,
  listsWaitingMax: 16,
  listMsMax: 2_000,
  /** How long a total may be told without counting again. */
  totalAgeMsMax: 1_000,
  totalsCachedMax: 1_000,
  /** Filters of different shapes whose statements are kept. */
  listStatementsCachedMax: 200,
  pageRecordsMax: 100,
  /** Beyond it a list is read by `page[after]`. */
  pageOffsetMax: 10_000,
  filterBytesMax: 8_192,
  filterTermsMax: 10,
  /** Terms of one OR group of a filter. */
  filterAlternativesMax: 4,
  /** Values of one `in` of a filter. */
  filterValuesMax: 100,
  /** Realms that one search of all of them asks, and for how long; such searches of a process at once. */
  searchRealmsMax: 1_000,
  searchMsMax: 1_000,
  searchesAtOnceMax: 8,
  /** Issuers of a realm by which a subject is looked for that nobody named an issuer with. */
  searchIssuersMax: 100,
  bodyDepthMax: 64,
  /** Complaints that one answer names. */
  complaintsMax: 20,
  idempotencyKeyCharactersMax: 255,
  idempotencyMsMax: 86_400_000,
  /** The oldest is forgotten for one more. */
  idempotencyKeysPerClientMax: 10_000,
  /**
   * How long a document of another server may take, from its name to its last byte; less than `answerMsMax`, so that the
   * caller learns that the other server is late and not this one.
   */
  outboundMsMax: 4_500,
  outboundBytesMax: 262_144,
  /** What other systems keep with a trace; more is not passed on (W3C Trace Context, 3.3.1.1 and 3.3.1.5). */
  traceStateCharactersMax: 512,
  traceStateMembersMax: 32,
  /** How long a process may take to tell its metrics to another one, and what reads one figure for it. */
  metricsReplyMsMax: 1_000,
  collectorMsMax: 500,
  /** How often the processes of a service are heard: of one that is killed, what it counted since then is lost. */
  metricsPollMs: 1_000,
  /** Causes of trouble that metrics tell apart; further ones are one. */
  errorCausesMax: 100,
  /** Discovery documents fetched at once in a process; one more is refused. */
  discoveriesAtOnceMax: 8,
  /** Of these, the ones for profiles of one realm: slow providers of one are not to stop the others. */
  discoveriesPerRealmMax: 2,
  /** What is told of a discovery document: characters of a text, entries of a list, characters of each. */
  providerTextCharactersMax: 2_048,
  providerListEntriesMax: 100,
  providerEntryCharactersMax: 255,
  /** How often it is said outside of the database how far its logs are. */
  checkpointMs: 60_000,
  /** Logs that a line tells of: more lines take longer to sign, and longer ones are cut by programs that read logs. */
  checkpointLogsMax: 64,
  /** Logs that are told of at once: 64 lines of about 11 KB each. */
  checkpointsAtOnceMax: 4_096,
  /** How long a receiver of checkpoints may take, or who reads the log that has them; less than `answerMsMax`, because an erasure waits for it. */
  checkpointPostMsMax: 4_000,
  /** A process that works beside the service and has nothing to do is ended. */
  workerIdleMsMax: 60_000,
  hashesWaitingMax: 64,
  hashMsMax: 2_000,
  /** After NFKC. */
  passwordCharactersMin: 8,
  /** In UTF-8, before and after NFKC. */
  passwordBytesMax: 1_024,
  /** How often the change feed is looked at for those who follow it. */
  feedPollMs: 500,
  /** How often the rights of who follows it are looked at again. */
  streamCheckMs: 1_000,
  /** How often a stream that has nothing to tell says so. */
  streamKeepAliveMs: 15_000,
  /** What waits in memory for the reader of a stream, and how long one that takes nothing is waited for. */
  streamBytesMax: 262_144,
  streamStallMsMax: 20_000,
  streamsMax: 100,
  streamsPerClientMax: 4,
  webhooksMax: 50,
  webhookUrlCharactersMax: 2_048,
  /** Events of one message. */
  webhookEventsMax: 100,
  /** A message of several events is cut before it is longer. */
  webhookBodyBytesMax: 262_144,
  /** How long a receiver may take, from its name to the last byte of its answer that is read. */
  webhookMsMax: 15_000,
  webhookAnswerBytesMax: 65_536,
  /** Realms of which one receiver is told at once. */
  webhookRealmsAtOnceMax: 4,
  /** How often receivers and what they were not told yet are looked at. */
  webhookPollMs: 500,
  /** Realms of one page when a target's undelivered changes are looked for, and how long one look may last. */
  webhookScanRealms: 64,
  webhookScanMsMax: 50,
  /** How often all realms are compared with the progress of a target, whether their clocks seem to have moved or not. */
  webhookSweepMs: 600_000,
  /** What was sent is written down at most so often. */
  webhookSaveMs: 300,
  /** How long the process that tells a receiver may be silent until another one does. */
  webhookLeaseMs: 10_000,
  /** How long it takes until a message that was not received is sent again: doubled each time. */
  webhookBackoffMsMin: 1_000,
  webhookBackoffMsMax: 300_000,
  /** Then it is given up: after about a day. */
  webhookAttemptsMax: 296,
  /** What a receiver was not told is counted up to here for metrics. */
  webhookLagCountedMax: 1_000,
  deliveriesKeptMax: 10_000,
  retentionDaysMax: 3_650,
  /** How often what is too old is removed. */
  retentionIntervalMs: 3_600_000,
  /** Between two commits that remove it. */
  retentionPauseMs: 50,
  /** Records that an export reads and writes at a time. */
  exportPageRecords: 1_000,
});
