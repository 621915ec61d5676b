import NetOptBench
import NetOptCore
import NetOptLocking

/// A client whose responses the test makes. It records its requests. It is also the clock of the run, which
/// advances only by the timings of responses and by waits.
final class FakeBenchClient: BenchClient, BenchClock {
  /// What changes during a run.
  struct State {
    /// All requests so far, in the order of their starts.
    var requests: [NetOptRequest] = []
    /// For each target's name, the number of requests so far.
    var counts: [String: Int] = [:]
    /// The number of requests that have started and not ended.
    var inProgress = 0
    /// The largest value that `inProgress` has had.
    var mostInProgress = 0
    /// What the clock shows.
    var now = MonotonicInstant(nanoseconds: 0)
  }

  /// Makes the response to a request. `number` is the number of earlier requests to the same target.
  typealias Answer =
    @Sendable (_ request: NetOptRequest, _ number: Int) async throws(NetOptError) -> NetOptResponse

  let state = Locked(State())
  /// The address that the start-up probe chooses, or its error.
  private let choice: Result<IPAddress?, NetOptError>
  /// The addresses that DNS answers with, or the error of the look-up.
  private let answers: Result<[IPAddress], NetOptError>
  private let answer: Answer
  /// The addresses in the order in which the start-up probe ranks them.
  private let ranking: [IPAddress]

  /// Makes a client.
  ///
  /// - Parameters:
  ///   - choice: the address that the start-up probe chooses, or its error.
  ///   - answers: the addresses that DNS answers with, or the error of the look-up.
  ///   - ranking: the addresses in the order in which the start-up probe ranks them.
  ///   - answer: makes the responses.
  init(
    choice: Result<IPAddress?, NetOptError> = .success(nil),
    answers: Result<[IPAddress], NetOptError> = .success([IPAddress(v4: 0x7f00_0001)]),
    ranking: [IPAddress] = [], answer: @escaping Answer
  ) {
    self.ranking = ranking
    self.choice = choice
    self.answers = answers
    self.answer = answer
  }

  /// All requests so far, in the order of their starts.
  var requests: [NetOptRequest] { state.withLock(\.requests) }

  func now() -> MonotonicInstant { state.withLock(\.now) }

  func execute(_ request: NetOptRequest) async throws(NetOptError) -> NetOptResponse {
    let number = state.withLock { state in
      let number = state.counts[request.target, default: 0]
      state.counts[request.target] = number + 1
      state.requests.append(request)
      state.inProgress += 1
      state.mostInProgress = max(state.mostInProgress, state.inProgress)
      return number
    }
    defer { state.withLock { $0.inProgress -= 1 } }
    let response = try await answer(request, number)
    state.withLock { $0.now = $0.now + response.timings.total }
    return response
  }

  func resolve(_ host: String, fresh: Bool) async throws(NetOptError) -> ResolvedAddresses {
    ResolvedAddresses(try answers.get(), timeToLive: .seconds(60))
  }

  func startUpChoice(for host: String) async throws(NetOptError) -> StartUpChoice {
    StartUpChoice(chosen: try choice.get(), ranking: ranking)
  }

  func wait(until moment: MonotonicInstant) async -> Bool {
    state.withLock { $0.now = max($0.now, moment) }
    return !Task.isCancelled
  }
}

extension NetOptRequest {
  /// The name of the request's target, as in `BenchTarget.id`.
  var target: String {
    switch options.routing {
    case .pinned(let address): address.description
    case .dns: "dns"
    case .automatic: "automatic"
    }
  }
}

extension NetOptResponse {
  /// A response with these timings. By default it reuses a connection if the request asks for a pooled
  /// connection.
  static func answer(
    _ request: NetOptRequest, status: Int = 200, _ timings: Timings = .cold(), reused: Bool? = nil
  ) -> NetOptResponse {
    let origin = request.url.origin
    let plan = RoutePlan(origin: origin, policy: .pinned, legs: [.init(.dns, source: .dns)])
    return NetOptResponse(
      url: request.url, head: ResponseHead(status: status, version: .http2),
      body: ResponseBody(Array("pong".utf8), timings: timings), route: RouteReport(plan: plan, legs: []),
      reused: reused ?? (request.options.connection == .pooled),
      tls: origin.scheme == .https ? TLSReport(verified: true, version: "TLSv1.3") : nil)
  }
}

extension Timings {
  /// The timings of a request on a new connection. All parameters are in milliseconds.
  static func cold(
    dns: Double = 0, tcp: Double = 20, tls: Double = 24, wait: Double = 24, transfer: Double = 2
  ) -> Timings {
    var timings = Timings()
    timings.dns = .microseconds(Int64((dns * 1000).rounded()))
    timings.connect = .microseconds(Int64((tcp * 1000).rounded()))
    timings.tls = .microseconds(Int64((tls * 1000).rounded()))
    timings.wait = .microseconds(Int64((wait * 1000).rounded()))
    timings.transfer = .microseconds(Int64((transfer * 1000).rounded()))
    return timings
  }

  /// The timings of a request on an open connection. All parameters are in milliseconds.
  static func warm(_ wait: Double, transfer: Double = 0.5) -> Timings {
    cold(tcp: 0, tls: 0, wait: wait, transfer: transfer)
  }
}

extension NetOptError {
  /// The error of a call whose only leg failed.
  static func leg(_ kind: LegFailure.Kind, _ code: Code = .connectFailed) -> NetOptError {
    let plan = RoutePlan(
      origin: Origin(.https, host: "api.example.com"), policy: .pinned, legs: [.init(.dns, source: .dns)])
    let leg = RouteReport.Leg(
      address: nil, source: .list, started: .zero, ended: .zero, outcome: .failed,
      failure: LegFailure(kind, "it failed"))
    return NetOptError(code, phase: .connect, "it failed", route: RouteReport(plan: plan, legs: [leg]))
  }
}
