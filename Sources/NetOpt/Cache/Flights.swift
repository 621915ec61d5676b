import NetOptCaching
import NetOptCore
import NetOptLocking

/// The fetches that are under way: one for each key and each set of selectors. Whoever comes later waits for its outcome.
final class Flights: Sendable {
  /// What a fetch is for.
  struct Key: Hashable, Sendable {
    let key: CacheKey
    /// As far as they are known before the answer: those of what is stored.
    let selectors: [CacheEntry.Selector]
    /// How it is made: who asks otherwise, or has more or less time, may fail where another one does not.
    let manner: RequestOptions
    /// The version that is asked for, in versioned mode.
    let version: Int64?
    /// The fields of the requests, when the outcome may depend on them.
    let fields: HeaderFields?

    /// - Parameter options: those of the request. How the cache is used and how redirects are followed does not concern the fetch.
    init(
      key: CacheKey, selectors: [CacheEntry.Selector], _ options: RequestOptions, version: Int64? = nil,
      fields: HeaderFields? = nil
    ) {
      self.key = key
      self.selectors = selectors
      self.version = version
      self.fields = fields.map { RequestTrace.left($0) }
      var manner = options
      manner.cache = nil
      manner.maxRedirects = 0
      self.manner = manner
    }
  }

  /// What becomes of a call that joins.
  enum Outcome: Sendable {
    /// It makes the fetch itself.
    case lead(Ticket)
    /// The fetch gave this.
    case entry(CacheEntry)
    /// The fetch gave an answer that cannot be shared.
    case unshared
    /// The fetch ended in a way that its request may be the cause of: who asks with other fields may fare better.
    case ofOthers
    /// The origin answered that it is in trouble, and what is stored may take the place of that.
    case answered(Int)
    /// The origin answered that it is in trouble. This is what it said; it is not stored.
    case trouble(CacheEntry)
    /// The fetch failed.
    case failed(NetOptError)
  }

  /// One fetch, and those who wait for it.
  final class Flight: Sendable {
    struct Waiter {
      let id: UInt64
      let deadline: MonotonicInstant?
      /// The fields of the request.
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

  /// The right and the duty to make a fetch. Letting go of it unused hands it over to one who waits.
  final class Ticket: Sendable {
    let flight: Flight
    private let flights: Flights
    /// The fields of the request that is sent.
    private let fields: HeaderFields
    private let isUsed = Locked(false)

    fileprivate init(_ flight: Flight, _ flights: Flights, _ fields: HeaderFields) {
      self.flight = flight
      self.flights = flights
      self.fields = fields
    }

    deinit { handOver() }

    private func use() -> Bool {
      isUsed.withLock { isUsed in
        defer { isUsed = true }
        return !isUsed
      }
    }

    /// Ends the fetch: everyone who waits has the outcome. That the server is in trouble, and what it said of it, is for those who said the
    /// same to it.
    func complete(_ outcome: Outcome) {
      guard use() else { return }
      switch outcome {
      case .trouble, .answered: flights.complete(flight, outcome, of: fields)
      default: flights.complete(flight, outcome)
      }
    }

    /// The fetch was given up, not by its own fault: one who waits makes it again.
    ///
    /// - Parameter deadline: of those who wait only one who has more time than this does; the others fail as this one did, when they ask with
    ///   the same fields.
    func handOver(beyond deadline: MonotonicInstant? = nil, else error: NetOptError? = nil) {
      if use() { flights.handOver(flight, of: fields, beyond: deadline, else: error) }
    }

    /// The fetch failed. Those who wait fail with it when that is about the way to the origin, and those of them who ask with the same fields
    /// when the request had been sent. What was wrong with the request of one caller, who cancelled, and a limit of time that was the
    /// call's own end nobody else's call.
    func fail(_ error: NetOptError, deadline: MonotonicInstant?, at now: MonotonicInstant) {
      if error.code == .timeout, let deadline, now + .milliseconds(50) >= deadline {
        return handOver(beyond: deadline + .milliseconds(100), else: error)
      }
      if Self.failuresOfTheWay.contains(error.code) {
        complete(.failed(error))
      } else if Self.failuresOfTheRequest.contains(error.code) {
        if use() { flights.complete(flight, .failed(error), of: fields) }
      } else {
        handOver()
      }
    }

    /// The failures that every caller with the same options would have had.
    private static let failuresOfTheWay: Set<NetOptError.Code> = [
      .shutDown, .nameNotFound, .resolverFailed, .connectFailed, .proxyFailed, .tlsFailed, .certificateName,
      .certificateUntrusted, .certificateExpired, .noAuthorities,
    ]

    /// The failures that every caller with the same options and the same fields would have had: a server that is sent a field that it
    /// cannot bear may close the connection, or not answer.
    private static let failuresOfTheRequest: Set<NetOptError.Code> = [
      .timeout, .sendFailed, .receiveFailed, .protocolViolation, .decodeFailed, .headTooLarge,
    ]

    /// The body is coming. When anybody waits for it, it is read without regard to the pace of its reader.
    func isReceiving(_ body: StoringBody) {
      let hasWaiters = flight.state.withLock { state in
        state.body = body
        return !state.waiters.isEmpty
      }
      if hasWaiters { body.readAhead() }
    }
  }

  private struct State {
    /// By the key of what is stored, so that those of one are found at once.
    private var underWay: [CacheKey: [Key: Flight]] = [:]
    /// Who waits, and for what.
    var waiting: [UInt64: Flight] = [:]
    /// Those who are about to wait, and who of them had to leave before.
    var joining: Set<UInt64> = []
    var gone: [UInt64: NetOptError] = [:]
    var lastID: UInt64 = 0

    var count: Int { underWay.values.reduce(0) { $0 + $1.count } }

    func flight(of key: Key) -> Flight? { underWay[key.key]?[key] }

    mutating func add(_ flight: Flight) { underWay[flight.key.key, default: [:]][flight.key] = flight }

    /// Removes a fetch, unless another one has taken its place.
    mutating func remove(_ flight: Flight) {
      let key = flight.key
      guard self.flight(of: key) === flight else { return }
      underWay[key.key]?[key] = nil
      if underWay[key.key]?.isEmpty == true { underWay[key.key] = nil }
    }

    mutating func removeAll(for key: CacheKey) { underWay[key] = nil }
  }

  private let state = Locked(State())
  private let timeSource: any TimeSource

  init(_ timeSource: any TimeSource) { self.timeSource = timeSource }

  /// How many fetches are under way.
  var count: Int { state.withLock(\.count) }

  /// How many calls wait.
  var waiting: Int { state.withLock(\.waiting.count) }

  /// Begins a fetch unless one is under way.
  ///
  /// - Parameter fields: those of the request.
  func lead(_ key: Key, _ fields: HeaderFields) -> Ticket? {
    let flight = state.withLock { state -> Flight? in
      guard state.flight(of: key) == nil else { return nil }
      let flight = Flight(key)
      state.add(flight)
      return flight
    }
    return flight.map { Ticket($0, self, fields) }
  }

  /// Begins a fetch, or waits for the one that is under way. When the call's time is over first, or it is cancelled, the
  /// outcome is a failure of its own.
  func join(_ key: Key, _ fields: HeaderFields, until deadline: MonotonicInstant?) async -> Outcome {
    if let ticket = lead(key, fields) { return .lead(ticket) }
    let id = state.withLock { state in
      state.lastID += 1
      state.joining.insert(state.lastID)
      return state.lastID
    }
    let alarm = deadline.map { deadline in
      let left = deadline - timeSource.now()
      return Task { [weak self] in
        do { try await Task.sleep(for: max(left, .zero)) } catch { return }
        self?.leave(id, Self.timeout)
      }
    }
    let outcome = await withTaskCancellationHandler {
      await withCheckedContinuation { continuation in
        wait(Flight.Waiter(id: id, deadline: deadline, fields: fields, continuation: continuation), key)
      }
    } onCancel: {
      leave(id, Self.cancelled)
    }
    alarm?.cancel()
    state.withLock { state in
      state.joining.remove(id)
      state.gone[id] = nil
    }
    return outcome
  }

  /// What becomes of one who begins to wait.
  private enum Admission {
    case waits(StoringBody?)
    case leads(Flight)
    case left(NetOptError)
  }

  private func wait(_ waiter: Flight.Waiter, _ key: Key) {
    let admission = state.withLock { state -> Admission in
      if let error = state.gone.removeValue(forKey: waiter.id) { return .left(error) }
      guard let flight = state.flight(of: key) else {
        let flight = Flight(key)
        state.add(flight)
        return .leads(flight)
      }
      state.waiting[waiter.id] = flight
      return .waits(
        flight.state.withLock { state in
          state.waiters.append(waiter)
          return state.body
        })
    }
    switch admission {
    case .left(let error): waiter.continuation.resume(returning: .failed(error))
    case .leads(let flight): waiter.continuation.resume(returning: .lead(Ticket(flight, self, waiter.fields)))
    case .waits(let body): body?.readAhead()
    }
  }

  /// Has one who waits go, or not begin to.
  private func leave(_ id: UInt64, _ error: NetOptError) {
    let waiter = state.withLock { state -> Flight.Waiter? in
      guard let flight = state.waiting.removeValue(forKey: id) else {
        if state.joining.contains(id) { state.gone[id] = error }
        return nil
      }
      return flight.state.withLock { state in
        state.waiters.firstIndex { $0.id == id }.map { state.waiters.remove(at: $0) }
      }
    }
    waiter?.continuation.resume(returning: .failed(error))
  }

  /// Ends a fetch.
  ///
  /// - Parameter fields: those of its request, when the outcome is for those who ask with the same ones only.
  private func complete(_ flight: Flight, _ outcome: Outcome, of fields: HeaderFields? = nil) {
    let waiters = state.withLock { state in
      state.remove(flight)
      let waiters = flight.state.withLock { state in
        defer { state.waiters = [] }
        return state.waiters
      }
      for waiter in waiters { state.waiting[waiter.id] = nil }
      return waiters
    }
    for waiter in waiters {
      let isFor = fields.map { RequestTrace.areAlike($0, waiter.fields) } ?? true
      waiter.continuation.resume(returning: isFor ? outcome : .ofOthers)
    }
  }

  private func handOver(
    _ flight: Flight, of fields: HeaderFields, beyond deadline: MonotonicInstant?, else error: NetOptError?
  ) {
    let next = state.withLock { state -> Flight.Waiter? in
      let next = flight.state.withLock { state -> Flight.Waiter? in
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
      next.continuation.resume(returning: .lead(Ticket(flight, self, next.fields)))
    } else {
      complete(flight, error.map { .failed($0) } ?? .unshared, of: error == nil ? nil : fields)
    }
  }

  /// Nobody joins the fetches of a key any more that are under way.
  func leave(_ key: CacheKey) {
    state.withLock { $0.removeAll(for: key) }
  }

  private static let cancelled = NetOptError(
    .cancelled, phase: .cache, "the call was cancelled while it waited for the answer to the same request")
  private static let timeout = NetOptError(
    .timeout, phase: .cache, "the call's time limit passed while it waited for the answer to the same request"
  )
}
