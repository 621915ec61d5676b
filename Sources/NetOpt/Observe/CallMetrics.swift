import NetOptCore
import NetOptLocking

/// Counts the calls of a client, for `NetOptClient.metrics`. Safe from any thread.
///
/// A call is counted once, when its body has ended or it has failed. The number of series has a limit, whatever
/// hosts, methods, tags and errors a program uses: see `mostSeries`.
final class CallMetrics: CallObserver {
  /// The most series of the request histogram with labels of their own. Beyond them, calls count in series
  /// that tell only the error.
  static let mostSeries = 1_000
  /// The most hosts (with their ports) and tags that are told apart.
  static let mostHosts = 100, mostTags = 50
  /// The most kinds of errors that are told apart: the first ones that occur. netopt has 35.
  static let mostErrors = 100
  /// The longest tag, and the longest name of an error, in bytes.
  static let longestText = 128
  /// The value of a label that stands for all values beyond the limits, as in OpenTelemetry.
  static let other = "_OTHER"
  /// The methods that OpenTelemetry names. All others count as one.
  static let methods: [NetOptRequest.Method] = [
    .get, .head, .post, .put, .delete, .patch, .options, .trace, "CONNECT",
  ]

  /// A host and a port.
  struct Server: Hashable, Sendable {
    let host: String
    let port: UInt16
  }

  /// The labels of a series of the request histogram. Methods, servers, tags and errors are numbers in the
  /// tables of `Counts`; 0 stands for `other`.
  struct Series: Hashable, Sendable {
    var method = 0
    var server = 0
    /// -1 without a tag.
    var tag = -1
    /// 0 without a response.
    var status = 0
    /// -1 without an error. A response with a status of 400 or more is no error here.
    var error = -1
    var version: HTTPVersion?
  }

  /// What a call was, as far as the metrics tell.
  struct Call: Sendable {
    let method: NetOptRequest.Method
    let server: Server
    let tag: String?
    let started: MonotonicInstant
    /// What the response was; `nil` without one.
    let response: Response?

    init(_ request: borrowing NetOptRequest, started: MonotonicInstant, _ response: Response?) {
      self.response = response
      method = request.method
      server = Server(host: request.url.host, port: request.url.port)
      tag = request.options.tag
      self.started = started
    }
  }

  /// What a response was, as far as the metrics tell.
  struct Response: Sendable {
    let status: Int
    let version: HTTPVersion
    /// Whether the connection came from the pool; `nil` if the request was not sent.
    let reused: Bool?
    let cache: CacheStatus.Outcome
    /// The time until the response, in nanoseconds, if the response has no timings. It is then not from a
    /// server, but the call may have waited for a server that did not respond.
    let waited: Int64

    init(
      status: Int, version: HTTPVersion = .http2, reused: Bool? = nil, cache: CacheStatus.Outcome = .off,
      waited: Int64 = 0
    ) {
      self.status = status
      self.version = version
      self.reused = reused
      self.cache = cache
      self.waited = waited
    }
  }

  /// The phases of a call, in order.
  static let phases = ["queue", "dns", "connect", "tls", "send", "wait", "transfer"]

  /// How many calls that asked the cache had each outcome.
  struct CacheOutcomes: Sendable {
    var hit = 0
    var miss = 0
    var revalidated = 0
    var stale = 0

    mutating func add(_ outcome: CacheStatus.Outcome) {
      switch outcome {
      case .off: break
      case .hit: hit += 1
      case .miss: miss += 1
      case .revalidated: revalidated += 1
      case .stale: stale += 1
      }
    }
  }

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
    /// The responses over a connection of the pool, and over a new one.
    var reused = 0
    var fresh = 0
    var cache = CacheOutcomes()
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

  /// Makes the record of a call whose response has begun.
  func response(_ response: borrowing NetOptResponse, to started: MonotonicInstant) -> Response {
    // The response to a call that sent its request may still be one of the cache, or of an interceptor.
    let hasTimings = response.attempts > 0 && response.timings.totalNanoseconds > 0
    return Response(
      status: response.status, version: response.version,
      reused: response.attempts > 0 ? response.reused : nil,
      cache: response.cacheStatus.outcome,
      waited: hasTimings ? 0 : timeSource.now().nanoseconds(since: started))
  }

  /// Counts a call whose response has ended.
  ///
  /// - Returns: its duration in nanoseconds.
  @discardableResult
  func ended(_ call: Call, _ timings: Timings) -> Int64 {
    let nanoseconds = max(timings.totalNanoseconds, call.response?.waited ?? 0)
    counts.withLock { counts in
      counts.add(call, error: nil, nanoseconds)
      counts.add(timings)
    }
    return nanoseconds
  }

  /// Counts a call that has failed, with or without a response.
  ///
  /// - Returns: its duration in nanoseconds.
  @discardableResult
  func failed(_ call: Call, _ error: NetOptError) -> Int64 {
    let nanoseconds = timeSource.now().nanoseconds(since: call.started)
    counts.withLock { $0.add(call, error: error.code.description, nanoseconds) }
    return nanoseconds
  }
}

extension CallMetrics.Counts {
  fileprivate mutating func add(_ call: CallMetrics.Call, error: String?, _ nanoseconds: Int64) {
    var series = CallMetrics.Series()
    series.method = (CallMetrics.methods.firstIndex(of: call.method) ?? -1) + 1
    series.server = servers.number(of: call.server)
    if let tag = call.tag, !tag.isEmpty { series.tag = tags.number(ofText: tag) }
    if let error {
      // Numbers are the statuses of responses.
      series.error = UInt(error) == nil ? errors.number(ofText: error) : BoundedLabels<String>.other
    }
    if let response = call.response {
      series.status = (100...999).contains(response.status) ? response.status : 999
      series.version = response.version
      add(response)
    }
    requests.add(nanoseconds, to: number(of: series))
  }

  private mutating func add(_ response: CallMetrics.Response) {
    if let isReused = response.reused { if isReused { reused += 1 } else { fresh += 1 } }
    cache.add(response.cache)
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
      // There are few of these. A status that is an error counts as another error.
      var rest = CallMetrics.Series()
      rest.error = series.error < 0 && series.status >= 400 ? BoundedLabels<String>.other : series.error
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

extension BoundedLabels<String> {
  /// Returns the number of a tag or of the name of an error. An empty text has the number `other`, because
  /// Prometheus takes an empty label for a missing one. Control characters are replaced, because Prometheus
  /// refuses some of them.
  mutating func number(ofText text: String) -> Int {
    guard !text.isEmpty, text.utf8.count <= CallMetrics.longestText, text != CallMetrics.other else {
      return Self.other
    }
    guard text.utf8.contains(where: { $0 < 0x20 || $0 == 0x7f }) else { return number(of: text) }
    let scalars = text.unicodeScalars.map { $0.value < 0x20 || $0.value == 0x7f ? "\u{fffd}" : $0 }
    return number(of: String(String.UnicodeScalarView(scalars)))
  }
}
