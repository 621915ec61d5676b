import NetOptCaching
import NetOptCore
import NetOptLocking

/// The fetches that are running (single flight), one for each `Key`. A call whose key equals the key of a
/// running fetch waits for the outcome of this fetch and sends no request. Safe from any thread.
final class InFlightFetches: Sendable {
  /// What calls must have in common to share a fetch.
  struct Key: Hashable, Sendable {
    /// The cache key.
    let key: CacheKey
    /// The request's values of the fields that the stored responses in memory depend on. The `Vary` of the
    /// fetched response is not known yet, and may name other fields.
    let selectors: [CacheEntry.Selector]
    /// The options of the request, such as its timeout. A request with other options may fail where this
    /// request succeeds.
    let options: RequestOptions
    /// The requested version in versioned mode; otherwise `nil`.
    let version: Int64?
    /// The fields of the request without tracing fields, when only requests with the same fields may share
    /// the fetch; otherwise `nil`.
    let fields: HeaderFields?

    /// - Parameter options: the options of the request. The key leaves out the options for the cache and for
    ///   redirects, which do not affect a fetch.
    init(
      key: CacheKey, selectors: [CacheEntry.Selector], _ options: RequestOptions, version: Int64? = nil,
      fields: HeaderFields? = nil
    ) {
      self.key = key
      self.selectors = selectors
      self.version = version
      self.fields = fields.map { RequestTrace.withoutTracing($0) }
      var options = options
      options.cache = nil
      options.maxRedirects = 0
      self.options = options
    }
  }

  /// The answer to a call that asks to join a fetch (`join`).
  enum Outcome: Sendable {
    /// The call must make the fetch itself, as its leader.
    case lead(Leader)
    /// The response of the fetch, or the entry that it validated.
    case entry(CacheEntry)
    /// Calls cannot share the response of the fetch, for example because it may not be stored or is too
    /// large. The waiting call must fetch for itself.
    case unshared
    /// The fetch failed or brought a 5xx response, possibly because of the fields of its request. A request
    /// with other fields, such as the waiting call's, may succeed.
    case failedWithOtherFields
    /// The origin answered with this 5xx status, and the leader served a stored response instead.
    case staleIfError(Int)
    /// The origin answered with this 5xx response, which is not stored.
    case serverError(CacheEntry)
    /// The fetch failed, or the wait of the call ended with this error.
    case failed(NetOptError)
  }

  /// A running fetch, and the calls that wait for it.
  final class InFlightFetch: Sendable {
    /// A call that waits for the fetch.
    struct Waiter {
      /// The number of the waiting call.
      let id: UInt64
      /// The deadline of the waiting call; `nil` for a call without a time limit.
      let deadline: MonotonicInstant?
      /// The fields of the waiting call's request.
      let fields: HeaderFields
      let continuation: CheckedContinuation<Outcome, Never>
    }

    /// What changes while the fetch runs.
    struct State {
      var waiters: [Waiter] = []
      /// The body that the fetch is receiving; `nil` before the response, and after the last owner of the
      /// body has released it.
      weak var body: StoringBody?
    }

    let key: Key
    let state = Locked(State())

    init(_ key: Key) { self.key = key }
  }

  /// The call that makes a fetch. It must end the fetch with `complete`, `fail` or `handOver`. When a leader
  /// is deallocated before that, it hands the fetch over to a waiting call.
  final class Leader: Sendable {
    let fetch: InFlightFetch
    /// The owner of `fetch` and of all other fetches of the client.
    private let owner: InFlightFetches
    /// The fields of the request that the fetch sends.
    private let fields: HeaderFields
    /// Whether this leader has ended its fetch or handed it over.
    private let hasEnded = Locked(false)

    fileprivate init(_ fetch: InFlightFetch, _ owner: InFlightFetches, _ fields: HeaderFields) {
      self.fetch = fetch
      self.owner = owner
      self.fields = fields
    }

    deinit { handOver() }

    /// Marks the fetch as ended. Returns false when it already was.
    private func markEnded() -> Bool {
      hasEnded.withLock { hasEnded in
        defer { hasEnded = true }
        return !hasEnded
      }
    }

    /// Ends the fetch with an outcome for the waiting calls. The outcomes `serverError` and `staleIfError` go
    /// only to calls whose requests have the same fields as the leader's. The other calls get
    /// `failedWithOtherFields`.
    func complete(_ outcome: Outcome) {
      guard markEnded() else { return }
      switch outcome {
      case .serverError, .staleIfError: owner.complete(fetch, outcome, of: fields)
      default: owner.complete(fetch, outcome)
      }
    }

    /// Hands the fetch over to a waiting call, which becomes the leader and sends its own request. Used when
    /// the fetch ends because of something that concerns only this leader's call, and not the origin.
    ///
    /// - Parameters:
    ///   - deadline: only a call whose deadline is later than this moment may become the leader, or a call
    ///     without a deadline; `nil` allows any call.
    ///   - error: the outcome for the waiting calls when none of them may become the leader. Calls whose
    ///     requests have other fields get `failedWithOtherFields`. With `nil`, all of them get `unshared`.
    func handOver(beyond deadline: MonotonicInstant? = nil, else error: NetOptError? = nil) {
      if markEnded() { owner.handOver(fetch, of: fields, beyond: deadline, else: error) }
    }

    /// Ends the fetch with an error.
    ///
    /// A failure on the way to the origin goes to all waiting calls. A failure after the request was sent
    /// goes to the calls whose requests have the same fields. Other failures, such as a cancellation or an
    /// invalid request, concern only this caller: a waiting call becomes the leader.
    ///
    /// After a timeout at the caller's deadline (from 50 ms before it), a call with more time may succeed. So
    /// a waiting call becomes the leader if its deadline is more than 100 ms after the caller's, or if it has
    /// none. If there is no such call, the timeout goes to the calls whose requests have the same fields.
    ///
    /// - Parameter deadline: the deadline of the caller; `nil` for a call without a time limit.
    func fail(_ error: NetOptError, deadline: MonotonicInstant?, at now: MonotonicInstant) {
      if error.code == .timeout, let deadline, now + .milliseconds(50) >= deadline {
        return handOver(beyond: deadline + .milliseconds(100), else: error)
      }
      if Self.failuresBeforeSending.contains(error.code) {
        complete(.failed(error))
      } else if Self.failuresAfterSending.contains(error.code) {
        if markEnded() { owner.complete(fetch, .failed(error), of: fields) }
      } else {
        handOver()
      }
    }

    /// The failures that every request with the same options would also have.
    private static let failuresBeforeSending: Set<NetOptError.Code> = [
      .shutDown, .nameNotFound, .resolverFailed, .connectFailed, .proxyFailed, .tlsFailed, .certificateName,
      .certificateUntrusted, .certificateExpired, .certificatePin, .noAuthorities,
    ]

    /// The failures that every request with the same options and the same fields would also have. A server
    /// that cannot handle a field may close the connection or not answer.
    private static let failuresAfterSending: Set<NetOptError.Code> = [
      .timeout, .sendFailed, .receiveFailed, .protocolViolation, .decodeFailed, .headTooLarge,
    ]

    /// Sets the body that the fetch is receiving. If calls wait for it, starts to read the body ahead of its
    /// reader.
    func setBody(_ body: StoringBody) {
      let hasWaiters = fetch.state.withLock { state in
        state.body = body
        return !state.waiters.isEmpty
      }
      if hasWaiters { body.readAhead() }
    }
  }

  private struct State {
    /// The running fetches, grouped by cache key, so that `removeAll` finds all fetches of a key at once.
    private var fetches: [CacheKey: [Key: InFlightFetch]] = [:]
    /// The fetch of each waiting call, by the call's number.
    var waiting: [UInt64: InFlightFetch] = [:]
    /// The numbers of the calls that have asked to join a fetch and have not left `join`.
    var joining: Set<UInt64> = []
    /// The errors of the calls in `joining` whose deadline passed, or that were cancelled, before they began
    /// to wait.
    var earlyErrors: [UInt64: NetOptError] = [:]
    /// The number of the last call that asked to join a fetch.
    var lastID: UInt64 = 0

    var count: Int { fetches.values.reduce(0) { $0 + $1.count } }

    func fetch(of key: Key) -> InFlightFetch? { fetches[key.key]?[key] }

    mutating func add(_ fetch: InFlightFetch) { fetches[fetch.key.key, default: [:]][fetch.key] = fetch }

    /// Removes a fetch, unless another fetch has taken its place.
    mutating func remove(_ fetch: InFlightFetch) {
      let key = fetch.key
      guard self.fetch(of: key) === fetch else { return }
      fetches[key.key]?[key] = nil
      if fetches[key.key]?.isEmpty == true { fetches[key.key] = nil }
    }

    /// Removes all fetches of a key, so that no further call joins them.
    mutating func removeAll(for key: CacheKey) { fetches[key] = nil }

    /// Removes the fetches whose responses may be in a selection: also those whose key lacks the URL.
    mutating func removeAll(in selection: CacheSelection) {
      fetches = fetches.filter { key, fetches in
        let hasVersion = fetches.keys.contains { $0.version != nil }
        return !selection.mayContain(key, mayLackURL: hasVersion || RequestKey.mayHaveName(key))
      }
    }

    /// Removes all fetches.
    mutating func removeAllKeys() { fetches = [:] }
  }

  private let state = Locked(State())
  private let timeSource: any TimeSource

  init(_ timeSource: any TimeSource) { self.timeSource = timeSource }

  /// The number of running fetches.
  var count: Int { state.withLock(\.count) }

  /// The number of waiting calls.
  var waiting: Int { state.withLock(\.waiting.count) }

  /// Begins a fetch. Returns `nil` when a fetch with this key is already running.
  ///
  /// - Parameter fields: the fields of the request.
  func lead(_ key: Key, _ fields: HeaderFields) -> Leader? {
    let fetch = state.withLock { state -> InFlightFetch? in
      guard state.fetch(of: key) == nil else { return nil }
      let fetch = InFlightFetch(key)
      state.add(fetch)
      return fetch
    }
    return fetch.map { Leader($0, self, fields) }
  }

  /// Begins a fetch, or waits for the outcome of the running fetch with this key. The outcome is `failed`
  /// when the call is cancelled or its deadline passes before the fetch ends.
  ///
  /// - Parameters:
  ///   - fields: the fields of the call's request.
  ///   - deadline: the deadline of the call; `nil` for a call without a time limit.
  func join(_ key: Key, _ fields: HeaderFields, until deadline: MonotonicInstant?) async -> Outcome {
    if let leader = lead(key, fields) { return .lead(leader) }
    let id = state.withLock { state in
      state.lastID += 1
      state.joining.insert(state.lastID)
      return state.lastID
    }
    let timeoutTask = deadline.map { deadline in
      let remaining = deadline - timeSource.now()
      return Task { [weak self] in
        do { try await Task.sleep(for: max(remaining, .zero)) } catch { return }
        self?.leave(id, Self.timeout)
      }
    }
    let outcome = await withTaskCancellationHandler {
      await withCheckedContinuation { continuation in
        wait(
          InFlightFetch.Waiter(id: id, deadline: deadline, fields: fields, continuation: continuation), key)
      }
    } onCancel: {
      leave(id, Self.cancelled)
    }
    timeoutTask?.cancel()
    state.withLock { state in
      state.joining.remove(id)
      state.earlyErrors[id] = nil
    }
    return outcome
  }

  /// What happens when a call is about to wait.
  private enum Admission {
    /// The call waits. The body is the one that the fetch is receiving, if it is receiving one.
    case waits(StoringBody?)
    /// The fetch has ended meanwhile, so the call leads a new fetch.
    case leads(InFlightFetch)
    /// The call was cancelled, or its deadline passed, before it began to wait.
    case left(NetOptError)
  }

  /// Makes a call wait for the running fetch. The outcome resumes the call's continuation.
  private func wait(_ waiter: InFlightFetch.Waiter, _ key: Key) {
    let admission = state.withLock { state -> Admission in
      if let error = state.earlyErrors.removeValue(forKey: waiter.id) { return .left(error) }
      guard let fetch = state.fetch(of: key) else {
        let fetch = InFlightFetch(key)
        state.add(fetch)
        return .leads(fetch)
      }
      state.waiting[waiter.id] = fetch
      return .waits(
        fetch.state.withLock { state in
          state.waiters.append(waiter)
          return state.body
        })
    }
    switch admission {
    case .left(let error): waiter.continuation.resume(returning: .failed(error))
    case .leads(let fetch): waiter.continuation.resume(returning: .lead(Leader(fetch, self, waiter.fields)))
    case .waits(let body): body?.readAhead()
    }
  }

  /// Ends the wait of a call with an error. A call that has not begun to wait yet gets the error when it
  /// begins.
  private func leave(_ id: UInt64, _ error: NetOptError) {
    let waiter = state.withLock { state -> InFlightFetch.Waiter? in
      guard let fetch = state.waiting.removeValue(forKey: id) else {
        if state.joining.contains(id) { state.earlyErrors[id] = error }
        return nil
      }
      return fetch.state.withLock { state in
        state.waiters.firstIndex { $0.id == id }.map { state.waiters.remove(at: $0) }
      }
    }
    waiter?.continuation.resume(returning: .failed(error))
  }

  /// Ends a fetch and resumes the waiting calls.
  ///
  /// - Parameter fields: the fields of the fetch's request, when the outcome is only for requests with the
  ///   same fields. The other calls get `failedWithOtherFields`.
  private func complete(_ fetch: InFlightFetch, _ outcome: Outcome, of fields: HeaderFields? = nil) {
    let waiters = state.withLock { state in
      state.remove(fetch)
      let waiters = fetch.state.withLock { state in
        defer { state.waiters = [] }
        return state.waiters
      }
      for waiter in waiters { state.waiting[waiter.id] = nil }
      return waiters
    }
    for waiter in waiters {
      let concernsWaiter = fields.map { RequestTrace.haveSameFields($0, waiter.fields) } ?? true
      waiter.continuation.resume(returning: concernsWaiter ? outcome : .failedWithOtherFields)
    }
  }

  /// Does what `Leader.handOver` describes. `fields` are the fields of the leader's request.
  private func handOver(
    _ fetch: InFlightFetch, of fields: HeaderFields, beyond deadline: MonotonicInstant?,
    else error: NetOptError?
  ) {
    let next = state.withLock { state -> InFlightFetch.Waiter? in
      let next = fetch.state.withLock { state -> InFlightFetch.Waiter? in
        state.body = nil
        let index = state.waiters.firstIndex { waiter in
          guard let deadline, let theirs = waiter.deadline else { return true }
          return theirs > deadline
        }
        return index.map { state.waiters.remove(at: $0) }
      }
      if let next { state.waiting[next.id] = nil }
      return next
    }
    if let next {
      next.continuation.resume(returning: .lead(Leader(fetch, self, next.fields)))
    } else {
      complete(fetch, error.map { .failed($0) } ?? .unshared, of: error == nil ? nil : fields)
    }
  }

  /// Closes the running fetches of a key to further calls. Calls that already wait still get the outcome.
  func forget(_ key: CacheKey) {
    state.withLock { $0.removeAll(for: key) }
  }

  /// Closes the running fetches whose responses may be in a selection to further calls.
  func forget(_ selection: CacheSelection) { state.withLock { $0.removeAll(in: selection) } }

  /// Closes all running fetches to further calls, because the settings of the client have changed.
  func forgetAll() { state.withLock { $0.removeAllKeys() } }

  /// The error of a call that was cancelled while it waited.
  private static let cancelled = NetOptError(
    .cancelled, phase: .cache,
    "the call was cancelled while it waited for the response to an identical request")
  /// The error of a call whose deadline passed while it waited.
  private static let timeout = NetOptError(
    .timeout, phase: .cache,
    "the call's time limit passed while it waited for the response to an identical request"
  )
}
