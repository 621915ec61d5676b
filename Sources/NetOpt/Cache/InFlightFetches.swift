import NetOptCaching
import NetOptCore
import NetOptLocking

/// The running fetches (single flight): one for each key and each set of selectors. A later call for the same
/// key waits for the outcome of the running fetch.
final class InFlightFetches: Sendable {
  /// The identity of a fetch. Only calls with equal keys share a fetch.
  struct Key: Hashable, Sendable {
    let key: CacheKey
    /// The selectors as far as they are known before the response: those of the stored responses.
    let selectors: [CacheEntry.Selector]
    /// The options of the request. With other options or another timeout a request may fail where this one
    /// succeeds.
    let options: RequestOptions
    /// The requested version, in versioned mode.
    let version: Int64?
    /// The fields of the request, when the outcome may depend on them.
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

  /// The outcome for a call that joins a fetch.
  enum Outcome: Sendable {
    /// The call makes the fetch itself.
    case lead(Leader)
    /// The fetch brought this entry.
    case entry(CacheEntry)
    /// The fetch brought a response that calls cannot share.
    case unshared
    /// The fetch failed, possibly because of the fields of its request. A request with other fields may
    /// succeed.
    case failedWithOtherFields
    /// The origin answered with this 5xx status, and a stored response may be served instead.
    case staleIfError(Int)
    /// The origin answered with this 5xx response, which is not stored.
    case serverError(CacheEntry)
    /// The fetch failed.
    case failed(NetOptError)
  }

  /// A running fetch, and the calls that wait for it.
  final class InFlightFetch: Sendable {
    struct Waiter {
      let id: UInt64
      let deadline: MonotonicInstant?
      /// The fields of the waiting call's request.
      let fields: HeaderFields
      let continuation: CheckedContinuation<Outcome, Never>
    }

    struct State {
      var waiters: [Waiter] = []
      weak var body: StoringBody?
    }

    let key: Key
    let state = Locked(State())

    init(_ key: Key) { self.key = key }
  }

  /// The leading call of a fetch, which makes the fetch and must end it. Releasing a leader that has not
  /// ended its fetch hands the fetch over to a waiting call.
  final class Leader: Sendable {
    let fetch: InFlightFetch
    private let owner: InFlightFetches
    /// The fields of the request that the fetch sends.
    private let fields: HeaderFields
    private let hasEnded = Locked(false)

    fileprivate init(_ fetch: InFlightFetch, _ owner: InFlightFetches, _ fields: HeaderFields) {
      self.fetch = fetch
      self.owner = owner
      self.fields = fields
    }

    deinit { handOver() }

    private func markEnded() -> Bool {
      hasEnded.withLock { hasEnded in
        defer { hasEnded = true }
        return !hasEnded
      }
    }

    /// Ends the fetch with an outcome for all waiting calls. A 5xx outcome is only for the calls whose
    /// requests have the same fields; the other calls get `failedWithOtherFields`.
    func complete(_ outcome: Outcome) {
      guard markEnded() else { return }
      switch outcome {
      case .serverError, .staleIfError: owner.complete(fetch, outcome, of: fields)
      default: owner.complete(fetch, outcome)
      }
    }

    /// Gives the fetch up for a reason outside the fetch: a waiting call makes the fetch again.
    ///
    /// - Parameters:
    ///   - deadline: only a call with a later deadline than this may make the fetch again.
    ///   - error: the error for the waiting calls when no such call waits. Calls whose requests have other
    ///     fields get `failedWithOtherFields`.
    func handOver(beyond deadline: MonotonicInstant? = nil, else error: NetOptError? = nil) {
      if markEnded() { owner.handOver(fetch, of: fields, beyond: deadline, else: error) }
    }

    /// Ends the fetch with an error.
    ///
    /// A failure on the way to the origin goes to all waiting calls. A failure after the request was sent
    /// goes to the calls whose requests have the same fields. Other failures concern only this caller, for
    /// example its cancellation or an invalid request: a waiting call then makes the fetch again.
    ///
    /// When the caller's own deadline has passed, only a call whose deadline is more than 100 ms later makes
    /// the fetch again.
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

    /// The failures that every request with the same options would meet.
    private static let failuresBeforeSending: Set<NetOptError.Code> = [
      .shutDown, .nameNotFound, .resolverFailed, .connectFailed, .proxyFailed, .tlsFailed, .certificateName,
      .certificateUntrusted, .certificateExpired, .noAuthorities,
    ]

    /// The failures that every request with the same options and the same fields would meet. A server that
    /// cannot handle a field may close the connection or not answer.
    private static let failuresAfterSending: Set<NetOptError.Code> = [
      .timeout, .sendFailed, .receiveFailed, .protocolViolation, .decodeFailed, .headTooLarge,
    ]

    /// Sets the body that the fetch is receiving. When calls wait for the body, a task reads it ahead of its
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
    /// The fetches, grouped by cache key, so that all fetches of a key are found at once.
    private var fetches: [CacheKey: [Key: InFlightFetch]] = [:]
    /// The fetch of each waiting call, by the call's number.
    var waiting: [UInt64: InFlightFetch] = [:]
    /// The calls that are about to wait, and the errors of the calls that had to leave before they began to
    /// wait.
    var joining: Set<UInt64> = []
    var earlyErrors: [UInt64: NetOptError] = [:]
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

    mutating func removeAll(for key: CacheKey) { fetches[key] = nil }
  }

  private let state = Locked(State())
  private let timeSource: any TimeSource

  init(_ timeSource: any TimeSource) { self.timeSource = timeSource }

  /// The number of running fetches.
  var count: Int { state.withLock(\.count) }

  /// The number of waiting calls.
  var waiting: Int { state.withLock(\.waiting.count) }

  /// Begins a fetch; returns `nil` when the same fetch is already running.
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

  /// Begins a fetch, or waits for the running one. The outcome is `failed` when the call's deadline passes
  /// first, or when the call is cancelled.
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

  /// What happens to a call that begins to wait.
  private enum Admission {
    case waits(StoringBody?)
    case leads(InFlightFetch)
    case left(NetOptError)
  }

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

  /// Ends a fetch.
  ///
  /// - Parameter fields: the fields of the fetch's request, when the outcome is only for requests with the
  ///   same fields.
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

  /// Makes later calls ignore the running fetches of a key. Calls that already wait still get the outcome.
  func forget(_ key: CacheKey) {
    state.withLock { $0.removeAll(for: key) }
  }

  private static let cancelled = NetOptError(
    .cancelled, phase: .cache,
    "the call was cancelled while it waited for the response to an identical request")
  private static let timeout = NetOptError(
    .timeout, phase: .cache,
    "the call's time limit passed while it waited for the response to an identical request"
  )
}
