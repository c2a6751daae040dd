/**
 * Every bound of the service, named noun–unit–bound; a test crosses each. `@public` marks those that callers meet: their comments are their
 * descriptions in docs/reference/limits.md.
 */
export const LIMITS = Object.freeze({
  /** Request line and headers together. Beyond it the runtime answers 431 without a body. @public */
  headerBytesMax: 16_384,
  /** Request body. A longer one is answered 413; the body of a GET is not read. @public */
  bodyBytesMax: 65_536,
  /** Access token. A longer one is answered 401. @public */
  tokenBytesMax: 8_192,
  /** `X-Request-Id` of a request. A longer one is ignored, and the service generates one. */
  requestIdCharactersMax: 64,
  /** Proxies counted in a forwarding header. Behind more of them, the client address is that of the last one counted. */
  forwardedHopsMax: 32,
  /** Callers with a token bucket in a process, for each rate. The least recently seen one is dropped for another, and starts again with a full bucket. */
  rateBucketsMax: 100_000,
  /** Time from the last header of a request to its answer; then 503. @public */
  answerMsMax: 5_000,
  /** Time for a request body to arrive; then 408. @public */
  bodyMsMax: 4_500,
  /** A connection without traffic for this long is closed. @public */
  idleSecondsMax: 60,
  /** Requests in progress in a process. One more is rejected with 503 before any work is done for it. */
  requestsAtOnceMax: 4_096,
  /** Time for requests in flight to finish after SIGTERM. */
  drainMsMax: 10_000,
  /** Time after that for the log entry of an import or export whose connection was closed. */
  cutTransferMsMax: 1_000,
  /** Largest `--drain-delay`. */
  drainDelaySecondsMax: 60,
  /** Time without a request after which the listener is closed, after the drain delay. Requests wait until then. */
  drainHoldMs: 100,
  /** The longest time for which the listener stays open while requests still arrive. */
  drainHoldMsMax: 1_000,
  /** Time that a read or write waits for a busy database; then 503. Less than `answerMsMax`. */
  storeWaitMsMax: 4_000,
  /** Time for a PostgreSQL statement of a transaction, with lock waits, or a connection; it is then cancelled. Less than `storeWaitMsMax`. */
  statementMsMax: 3_500,
  /** Interval of the search for a writable PostgreSQL host while there is none. */
  primarySearchMs: 500,
  /**
   * Time without a response after which the node that routes is checked, if `--database` names several nodes of a Citus cluster
   * with `load_balance_hosts=random`. If it does not answer the check, another node routes.
   */
  routerDelayMs: 300,
  /** Time for a node of a Citus cluster to answer another node at a readiness check; then it counts as unreachable. */
  nodeCheckMsMax: 1_000,
  /** Time for which a process caches which nodes of a Citus cluster have which realms. */
  realmNodesAgeMsMax: 60_000,
  /** Realms whose nodes a process caches. With more, it looks up all of them again. */
  realmNodesCachedMax: 10_000,
  /** PostgreSQL connections of a process for what every request needs: clients and signing keys. */
  accessConnectionsMax: 1,
  /**
   * PostgreSQL connections of a process for lookups. Lookups share statements, so one connection carries more of them
   * than a process can answer.
   */
  lookupConnectionsMax: 1,
  /** PostgreSQL connections of a process for reverse lookups. */
  reverseLookupConnectionsMax: 1,
  /** PostgreSQL connections of a process for writes and other work of several statements. */
  transactionConnectionsMax: 4,
  /** Requests of a PostgreSQL transaction without a response yet: statements and batches. At this number, it waits for the oldest. */
  statementsUnansweredMax: 100,
  /** PostgreSQL connections of a process for lists that touch few rows. */
  listConnectionsMax: 2,
  /** Lookups that share one PostgreSQL statement: of one resource in one realm, or reverse lookups by the same members. */
  lookupsPerStatementMax: 256,
  /**
   * Such statements in progress at once if each of them is full. Otherwise there is one, and lookups that arrive
   * meanwhile share the next.
   */
  lookupStatementsMax: 4,
  /** File of the write-ahead log of SQLite. One that grew while a reader or an import held it is cut once it is free. */
  writeAheadLogBytesMax: 67_108_864,
  /** Time that `doctor` waits for one PostgreSQL query; it then reports the check as not done. */
  doctorQueryMsMax: 600_000,
  /** Time that a start waits for another process that creates or migrates the database. */
  migrationWaitMsMax: 30_000,
  /** Share of the event loop, in percent, for all work that is no lookup, while lookups arrive. */
  loopSharePercent: 25,
  /** Milliseconds of that share that may be used at once. */
  loopShareMsMax: 3,
  /** Milliseconds of that share that one turn may use in advance at most. */
  loopDebtMsMax: 300,
  /** Time without a lookup after which other work may use the whole event loop. */
  lookupPauseMs: 5,
  /** Time after which one turn is allowed even if the share is used. */
  turnPauseMsMax: 50,
  /** Time that a request other than a lookup waits for its turn; then 503. Later waits follow, all within `answerMsMax`. */
  turnWaitMsMax: 2_000,
  /** Such requests waiting for a turn. One more is rejected with 503. */
  turnsWaitingMax: 1_024,
  /** Writes waiting in a process. One more is rejected with 503. */
  writesQueuedMax: 10_000,
  /**
   * Estimated wait at which work is rejected with 503 on arrival: writes and, on PostgreSQL, lookups and reverse lookups.
   * The estimate is based on the recent throughput of the same kind of work.
   */
  workWaitMsMax: 500,
  /**
   * Jobs of each kind that are admitted despite a longer wait than `workWaitMsMax`, up to `workOverdueMsMax`: a batch
   * takes less time than its parts.
   */
  workAdmittedMin: 100,
  /** Estimated wait at which the jobs of `workAdmittedMin` are rejected too. */
  workOverdueMsMax: 2_000,
  /** Jobs of each kind that are admitted regardless of the estimated wait. */
  workSampleMin: 10,
  /** Time for the writes of one SQLite commit, in which the process does nothing else. Further writes wait for the next. */
  commitWorkMsMax: 10,
  /** Writes that share one commit. */
  writesGroupedMax: 1_000,
  /** Pause between commits while lookups are answered. Writes that arrive meanwhile share the next commit. */
  commitPauseMs: 10,
  /** Reads per millisecond in a process above which its commits pause, because a commit would delay them. */
  commitPauseReadsMin: 10,
  /** Age of the clients and signing keys in memory. Older ones are read again before a request is answered. */
  accessTableAgeMsMax: 900,
  /** The same age before an unknown client ID or a wrong client secret is rejected. */
  accessTableRecheckMs: 50,
  /** Tokens with a verified signature that a process remembers. The oldest is dropped for another, and verified again if it is used. */
  verifiedTokensMax: 10_000,
  /** Realms named in a token. With more, the token names none, and the client's realm list alone applies. */
  tokenRealmsMax: 32,
  /** Largest `--token-lifetime`. A token of an external issuer with a longer lifetime is answered 401. */
  tokenLifetimeSecondsMax: 86_400,
  /** Revoked tokens of a client that have not expired. One more is answered 503 and is not revoked. */
  revokedTokensPerClientMax: 1_000,
  /** Time in which the code of `console link` can be exchanged. */
  consoleLinkMsMax: 60_000,
  /** Time in which the code of an invitation can be exchanged: a link that is created over HTTP. */
  consoleInvitationMsMax: 86_400_000,
  /** Lifetime of the token of a console session that began with a link or an OpenID provider; the session ends if it is not renewed. */
  consoleTokenSeconds: 900,
  /** Longest console session, while its page is used. */
  consoleSessionMsMax: 28_800_000,
  /** Longest console session with the scope `admin`. */
  consoleAdminSessionMsMax: 3_600_000,
  /** Signing keys in the key set. One more is rejected with 422, so that the set stays short. */
  signingKeysMax: 32,
  /** Clock difference between machines that is tolerated in `exp`, `nbf`, `auth_time` and console links. */
  clockLeewayMs: 30_000,
  /** `max-age` of the key set, and so the time that a new key is published before it signs. */
  keySetAgeMsMax: 300_000,
  /** Time that the previous client secret remains valid after a rotation, by default. */
  secretOverlapMs: 86_400_000,
  /** Longest overlap that a rotation may request. A longer one is rejected. */
  secretOverlapHoursMax: 9_999,
  /** Networks of the servers of a storefront, of a client. With more, the request is rejected. */
  storefrontsMax: 32,
  /** External issuers in the `--issuers-file`. With more, the service does not start. */
  issuersMax: 32,
  /** Rights of one external issuer. With more, the service does not start. */
  issuerRightsMax: 100,
  /** Keys in the key set of an external issuer. A larger set is not accepted. */
  issuerKeysMax: 100,
  /** Age at which the keys of an external issuer are fetched again, in the background. */
  issuerKeysFreshMs: 300_000,
  /** Age up to which the keys of an unreachable issuer are used. After that its tokens are rejected. */
  issuerKeysAgeMsMax: 3_600_000,
  /** Pause between two fetches of the keys of an issuer by a process, however many tokens name an unknown key. */
  issuerKeysPauseMs: 10_000,
  /** Time that a request waits for such a fetch, then 401, or for the metadata of a provider. Less than `answerMsMax`. */
  issuerKeysWaitMsMax: 4_000,
  /** Requests of a process that wait for the keys of one issuer, and for the metadata of one provider. One more finds it unavailable at once. */
  issuerWaitersMax: 64,
  /** ID token of an OpenID provider. A longer one is rejected. */
  idTokenBytesMax: 65_536,
  /** Age of an ID token that a client sends for a check. An older one is rejected. */
  idTokenAgeMsMax: 600_000,
  /** Codes of one provider that a process exchanges at once, for users and for the console each. One more is rejected with 503. */
  providerCodesAtOnceMax: 16,
  /** Of these, the ones of users at one IPv4 address or /48 of IPv6 addresses. One more is rejected with 503. */
  providerCodesPerCallerMax: 4,
  /**
   * Providers of OIDC profiles whose metadata and keys a process remembers. The least recently used one leaves, and is unavailable until
   * `issuerKeysPauseMs` after its document was read.
   */
  identityProvidersMax: 256,
  /** Time to sign in at a provider. After that its callback is answered 400. */
  oidcStateSeconds: 600,
  /** Lifetime of the code of such a sign-in. After that the token call is answered 400. */
  oidcCodeSeconds: 60,
  /**
   * Interval at which a process writes further grants, sign-ins and refusals of the same caller to the audit log, as one entry with their
   * number, entries that could not be written before, and when clients were last used.
   */
  counterLogMs: 60_000,
  /** Addresses in an audit entry that counts events from several. Further ones are left out. */
  addressesLoggedMax: 16,
  /**
   * Counters of refused access in a process during that interval, by client or address and reason, and of throttled
   * sign-ins by realm. Further ones are counted together.
   */
  refusalsCountedMax: 1_000,
  /** The same for token grants by client, and for sign-ins by username. */
  eventsCountedMax: 100_000,
  /**
   * Time that the answer to an erasure waits until the values are removed from the database files; then these are `pending`,
   * and the removal continues. Less than `answerMsMax`.
   */
  erasedBytesWaitMsMax: 3_000,
  /** Records and audit entries in one subject-access answer. With more, 422; the `subject-access` command has no limit. */
  subjectAccessEntriesMax: 2_000,
  /** Largest `--processes`. */
  processesMax: 64,
  /** Line of an import. A longer one is rejected. */
  importLineBytesMax: 65_536,
  /** Names of unknown members that an import counts. Further names are not counted. */
  importUnknownNamesMax: 1_000,
  /** Lines of an import in one commit. */
  importCommitLines: 10_000,
  /** Bytes of import lines in one commit, so that long lines use little memory. */
  importCommitBytesMax: 16_777_216,
  /** Rows inserted by one request: records of an import, or entries of the log. On PostgreSQL, at most twice as many rows are unanswered. */
  insertsPerBatchMax: 1_000,
  /** File of an import over HTTP. A longer one is answered 413; what was committed before stays. @public */
  uploadBytesMax: 1_073_741_824,
  /** Time without a byte of such a file; then 408. */
  transferIdleMsMax: 60_000,
  /** Its lines in one commit: other requests of the process wait for no longer one. */
  uploadCommitLines: 250,
  /** Its rejected lines in one answer. Further ones are only counted. */
  uploadRejectionsMax: 10_000,
  /** Attempts at a commit of an import, a second apart, each for at most `storeWaitMsMax`. Then the import fails. */
  importCommitAttemptsMax: 10,
  /** Records deleted with their parent in one commit. With more, a DELETE is answered 422: use `authrealm delete --in-pages`. @public */
  cascadeRecordsMax: 1_000,
  /** Rounds of that command: each deletes as many records as there were at its beginning, while clients create others. */
  deletionRoundsMax: 10,
  /** Consecutive log entries that share the stored user, actor, request, address and time. */
  logRunEntriesMax: 16,
  /**
   * Records that a list may skip or find in the serving process; on PostgreSQL, a list by values finds at most `pageRecordsMax`. A
   * list of more, or whose form sets no bound, is read by a reader process; on PostgreSQL it waits in a separate queue.
   */
  listRecordsInlineMax: 1_000,
  /** Lists and counts of dependent records that are read at once outside of the serving process. */
  readersMax: 2,
  /** Lists waiting for a reader. One more is rejected with 503. */
  listsWaitingMax: 16,
  /** Time for a list, including its wait; then 503. @public */
  listMsMax: 2_000,
  /** Age of a counted total that is returned without counting again. */
  totalAgeMsMax: 1_000,
  /** Totals remembered by a process. More are counted for each list. */
  totalsCachedMax: 1_000,
  /** Prepared statements for filters of different shapes. The oldest is dropped for another. */
  listStatementsCachedMax: 200,
  /** Realms whose number in a SQLite file a process remembers for lookups. The oldest is dropped for another. */
  realmNumbersKnownMax: 10_000,
  /** Largest `page[limit]`. A larger value, or one below 1, is answered 400. @public */
  pageRecordsMax: 100,
  /** Records on a page without `page[limit]`. */
  pageRecordsDefault: 25,
  /** Records of each kind that `include` adds to a record. If there are more, the answer links to the rest of the list. @public */
  includedRecordsMax: 100,
  /** Records of each kind that `include` adds to a page of a list. If there are more, 400: a smaller page has fewer. @public */
  includedInPageMax: 1_000,
  /** Records that a batch writes, and links that are created with their user. With more, 400. @public */
  recordsPerRequestMax: 100,
  /** Plain passwords in such a request: each is hashed before the answer. With more, 400. @public */
  passwordsPerRequestMax: 4,
  /** Largest `page[offset]`. A larger one is answered 400; use `page[after]`. @public */
  pageOffsetMax: 10_000,
  /** `filter` after decoding. A longer one is answered 400. @public */
  filterBytesMax: 8_192,
  /** Terms of a filter, including alternatives. With more, 400. @public */
  filterTermsMax: 10,
  /** Terms of one OR group of a filter. With more, 400. @public */
  filterAlternativesMax: 4,
  /** Values of one `in` of a filter. With more, 400. @public */
  filterValuesMax: 100,
  /** Words of one `match` of a filter. With more, 400. @public */
  filterWordsMax: 16,
  /** Realms searched by one request for all realms by an ID, or by `eq` or `like` of a name or an e-mail address. The answer names the realm to continue after. */
  searchRealmsMax: 1_000,
  /** Matches of a search that are counted. The total of more is left out. */
  searchCountMax: 10_000,
  /** Changes that one request of a search reads. The answer says how far back it has looked. */
  changesSearchedMax: 50_000,
  /** Time for that. */
  changesSearchMsMax: 2_000,
  /** Errors in one answer. Further ones are left out. @public */
  fieldErrorsMax: 20,
  /** `Idempotency-Key`. A longer one is answered 400. @public */
  idempotencyKeyCharactersMax: 255,
  /** Time for which a request can be repeated by its `Idempotency-Key`. @public */
  idempotencyMsMax: 86_400_000,
  /** Idempotency records of a client in a realm. The oldest is dropped for another. */
  idempotencyKeysPerClientMax: 10_000,
  /**
   * Time to fetch a discovery document or key set, including name resolution, and for all requests of a sign-in to its provider
   * together; then it is unreachable. Less than `answerMsMax`, so that the caller learns which server is late.
   */
  outboundMsMax: 4_500,
  /** Response of an OpenID provider. A longer one is not read. */
  outboundBytesMax: 262_144,
  /** `tracestate` header. A longer one is not propagated (W3C Trace Context, 3.3.1.5). */
  traceStateCharactersMax: 512,
  /**
   * Time for a process to report its metrics to the parent, which then uses the last known ones. The parent's own answer
   * may take twice as long.
   */
  metricsReplyMsMax: 1_000,
  /** Time to collect one metric. Then it is left out. */
  collectorMsMax: 500,
  /** Interval at which the parent reads the metrics of its processes. Counts of a process that exits since the last reading are lost. */
  metricsPollMs: 1_000,
  /** Error causes with a metric series of their own. Further ones are counted as `other`. */
  errorCausesMax: 100,
  /** Discovery documents fetched at once by a process. One more is rejected with 503. */
  discoveriesAtOnceMax: 8,
  /** Of these, the ones for profiles of one realm: its slow providers do not block others. One more is rejected with 503. */
  discoveriesPerRealmMax: 2,
  /** An issuer of a discovery document in an error. The rest is cut off. */
  issuerCharactersShownMax: 255,
  /** Interval at which audit checkpoints are written outside of the database. */
  checkpointMs: 60_000,
  /** Audit logs in one signed checkpoint line. Longer lines are cut by programs that read logs. */
  checkpointLogsMax: 64,
  /** Audit logs in one write to the checkpoint file: 64 lines of about 11 KB each. */
  checkpointsAtOnceMax: 4_096,
  /** A worker process without work for this long exits. */
  workerIdleMsMax: 60_000,
  /**
   * Time that a request waits for the start of the first worker process, in addition to its time for the work. Both together
   * are less than `answerMsMax`.
   */
  workerStartMsMax: 2_000,
  /** Passwords waiting to be hashed. One more is rejected with 503. */
  hashesWaitingMax: 64,
  /** Time to hash a password, including its wait, but not the start of the worker; then 503. */
  hashMsMax: 2_000,
  /** Password after NFKC. A shorter one is answered 400. @public */
  passwordCharactersMin: 8,
  /** Password in UTF-8, before and after NFKC. A longer one is answered 400. @public */
  passwordBytesMax: 1_024,
  /** Time after a password was checked for which its account token is renewed; then 401, and the user signs in again. */
  accountSignInSecondsMax: 2_592_000,
  /** Interval at which change streams read the feed. */
  feedPollMs: 500,
  /** Interval at which the token of a change stream is checked again. */
  streamCheckMs: 1_000,
  /** Interval of comments on a change stream without events. */
  streamKeepAliveMs: 15_000,
  /** Bytes buffered for the reader of a change stream. The rest is read from the database later. */
  streamBytesMax: 262_144,
  /** A change stream whose reader accepts nothing for this long is closed. */
  streamStallMsMax: 20_000,
  /** Change streams of a process. One more is rejected with 503. */
  streamsMax: 100,
  /** Change streams of a client in a process. One more is rejected with 503. */
  streamsPerClientMax: 4,
  /** Webhook targets. One more is rejected with 422. @public */
  webhooksMax: 50,
  /** URL of a webhook target. A longer one is rejected. */
  webhookUrlCharactersMax: 2_048,
  /** Events in one webhook message. */
  webhookEventsMax: 100,
  /** Webhook message of several events. Events that do not fit are sent in the next one. */
  webhookBodyBytesMax: 262_144,
  /** Time for a delivery attempt, from name resolution to the last byte read of the answer. Then it has failed. */
  webhookMsMax: 15_000,
  /** Bytes read of the answer of a target. Its status counts however long it is. */
  webhookAnswerBytesMax: 65_536,
  /** Realms whose changes are delivered to one target at once. */
  webhookRealmsAtOnceMax: 4,
  /** Interval at which targets are read and undelivered changes are searched. */
  webhookPollMs: 500,
  /** Realms in one page of that search. */
  webhookScanRealms: 64,
  /** Time budget of one such search. The next one continues where it stopped. */
  webhookScanMsMax: 50,
  /** Interval at which the progress of a target is compared with all realms, even if they seem unchanged. */
  webhookSweepMs: 600_000,
  /** Time after which another process takes over the deliveries of a silent one. */
  webhookLeaseMs: 10_000,
  /** Pause before a failed message is sent again. It doubles with each attempt, plus or minus a quarter. */
  webhookBackoffMsMin: 1_000,
  /** Longest such pause. */
  webhookBackoffMsMax: 300_000,
  /** Attempts to deliver a message, over a day or more. Then it becomes a dead letter. */
  webhookAttemptsMax: 296,
  /** Largest count of lagging realms and of dead letters of a target in metrics. */
  webhookLagCountedMax: 1_000,
  /** Newest entries kept in the delivery log of a target. */
  deliveriesKeptMax: 10_000,
  /** Largest `--retention-days`. */
  retentionDaysMax: 3_650,
  /** Interval at which expired entries are removed. */
  retentionIntervalMs: 3_600_000,
  /** Pause between two commits that remove them. */
  retentionPauseMs: 50,
  /** Records that an export reads and writes at a time. */
  exportPageRecords: 1_000,
});
