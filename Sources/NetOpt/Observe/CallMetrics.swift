import NetOptCore
import NetOptLocking

/// Counts the calls of a client, for `NetOptClient.metrics`. Safe from any thread.
///
/// A call is counted once, when its body has ended or it has failed. The number of series has a limit, whatever
/// hosts, methods, tags and errors a program uses: see `mostSeries`.
final class CallMetrics: CallObserver {
  /// The most series of the request histogram with labels of their own. Beyond them, calls count in series
  /// that tell only the outcome: the hundreds of the status, and the error.
  static let mostSeries = 2_000
  /// The most hosts (with their ports) and tags that are told apart.
  static let mostHosts = 100, mostTags = 50
  /// The most kinds of errors that are told apart: all of netopt's, and some of the program's own.
  static let mostErrors = 100
  /// The longest tag in bytes.
  static let longestTag = 128
  /// The methods that OpenTelemetry names. All others count as one.
  static let methods: [NetOptRequest.Method] = [
    .get, .head, .post, .put, .delete, .patch, .options, .trace, "CONNECT",
  ]

  /// A host and a port.
  struct Server: Hashable, Sendable {
    let host: String
    let port: UInt16
  }

  /// What distinguishes the series of the request histogram: numbers of values, 0 for others or none.
  struct Series: Hashable, Sendable {
    var method = 0
    var server = 0
    /// -1 without a tag.
    var tag = -1
    var status = 0
    var error = 0
    var version: HTTPVersion?
  }

  /// What a call was, as far as the metrics tell. A class, so that a call is counted without copies of its
  /// parts.
  class Call {
    let method: NetOptRequest.Method
    let url: HTTPURL
    let tag: String?
    let started: MonotonicInstant
    /// What the response was; `nil` without one.
    let response: Response?

    init(_ request: borrowing NetOptRequest, started: MonotonicInstant, _ response: Response?) {
      self.response = response
      method = request.method
      url = request.url
      tag = request.options.tag
      self.started = started
    }
  }

  /// What a response was, as far as the metrics tell.
  struct Response: Sendable {
    let status: Int
    let version: HTTPVersion
    /// How often the request was sent.
    let sends: Int
    /// Whether the connection came from the pool; `nil` if no server sent the response.
    let reused: Bool?
    let cache: CacheStatus.Outcome

    init(status: Int, version: HTTPVersion, sends: Int, reused: Bool?, cache: CacheStatus.Outcome) {
      self.status = status
      self.version = version
      self.sends = sends
      self.reused = reused
      self.cache = cache
    }

    init(_ response: borrowing NetOptResponse) {
      status = response.status
      version = response.version
      sends = response.attempts
      reused = response.remote == nil ? nil : response.reused
      cache = response.cacheStatus.outcome
    }
  }

  /// The phases of a call, in order.
  static let phases = ["queue", "dns", "connect", "tls", "send", "wait", "transfer"]

  /// What was counted so far.
  struct Counts: Sendable {
    var servers = BoundedLabels<Server>(most: mostHosts)
    var tags = BoundedLabels<String>(most: mostTags)
    var errors = BoundedLabels<String>(most: mostErrors)
    /// The numbers of the series in `requests`.
    var series: [Series: Int] = [:]
    var requests = DurationHistograms()
    /// The durations of the phases of calls whose body has ended; a phase that did not happen is not counted.
    var phases = DurationHistograms(count: CallMetrics.phases.count)
    var retries = 0
    var hedges = 0
    /// How often requests were sent: the first time, again on another connection, as retries and hedges.
    var sends = 0
    /// The responses of servers over a connection of the pool, and over a new one.
    var reused = 0
    var fresh = 0
    /// The outcomes of the cache, by name.
    var cache: [CacheStatus.Outcome: Int] = [:]
    /// The series that was counted last: most calls are alike.
    fileprivate var last: (series: Series, number: Int)?
  }

  private let counts = Locked(Counts())
  private let timeSource: any TimeSource

  init(_ timeSource: any TimeSource) { self.timeSource = timeSource }

  /// What was counted until now.
  var current: Counts { counts.withLock { $0 } }

  func callWillRetry(_ id: UInt64, _ attempt: AttemptReport, after delay: Duration) {
    counts.withLock { $0.retries += 1 }
  }

  func callWillHedge(_ id: UInt64, after delay: Duration) { counts.withLock { $0.hedges += 1 } }

  /// Counts a call whose response has ended.
  func ended(_ call: Call, _ timings: Timings) {
    counts.withLock { counts in
      let status = call.response?.status ?? 0
      counts.add(call, error: status < 400 ? nil : String(status), timings.totalNanoseconds)
      counts.add(timings)
    }
  }

  /// Counts a call that has failed, with or without a response.
  func failed(_ call: Call, _ error: NetOptError) {
    let nanoseconds = (timeSource.now() - call.started).nanoseconds
    counts.withLock { $0.add(call, error: error.code.description, nanoseconds) }
  }
}

extension CallMetrics.Counts {
  fileprivate mutating func add(_ call: CallMetrics.Call, error: String?, _ nanoseconds: Int64) {
    var series = CallMetrics.Series()
    series.method = (CallMetrics.methods.firstIndex(of: call.method) ?? -1) + 1
    series.server = servers.number(of: CallMetrics.Server(host: call.url.host, port: call.url.port))
    if let tag = call.tag {
      series.tag =
        tag.utf8.count <= CallMetrics.longestTag ? tags.number(of: tag) : BoundedLabels<String>.other
    }
    if let error { series.error = errors.number(of: error) + 1 }
    if let response = call.response {
      series.status = response.status
      series.version = response.version
      add(response)
    }
    requests.add(nanoseconds, to: number(of: series))
  }

  private mutating func add(_ response: CallMetrics.Response) {
    sends += response.sends
    if let isReused = response.reused { if isReused { reused += 1 } else { fresh += 1 } }
    if response.cache != .off { cache[response.cache, default: 0] += 1 }
  }

  /// Returns the number of a series, or of the one that stands for it when there are too many.
  private mutating func number(of series: CallMetrics.Series) -> Int {
    if let last, last.series == series { return last.number }
    let number = self.series[series] ?? add(series)
    last = (series, number)
    return number
  }

  private mutating func add(_ series: CallMetrics.Series) -> Int {
    guard self.series.count < CallMetrics.mostSeries else {
      // At most ten hundreds and the kinds of errors.
      let rest = CallMetrics.Series(status: series.status / 100 * 100, error: series.error)
      return self.series[rest] ?? append(rest)
    }
    return append(series)
  }

  private mutating func append(_ series: CallMetrics.Series) -> Int {
    let number = requests.append()
    self.series[series] = number
    return number
  }

  fileprivate mutating func add(_ timings: Timings) {
    add(timings.queueNanoseconds, toPhase: 0)
    add(timings.dnsNanoseconds, toPhase: 1)
    add(timings.connectNanoseconds, toPhase: 2)
    add(timings.tlsNanoseconds, toPhase: 3)
    add(timings.sendNanoseconds, toPhase: 4)
    add(timings.waitNanoseconds, toPhase: 5)
    add(timings.transferNanoseconds, toPhase: 6)
  }

  private mutating func add(_ nanoseconds: Int64, toPhase phase: Int) {
    if nanoseconds > 0 { phases.add(nanoseconds, to: phase) }
  }
}
