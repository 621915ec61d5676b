import NetOpt
import NetOptCore
import NetOptTestSupport
import TestTools
import Synchronization
import Testing

/// One run of a case in one mode, with its own client and its own host name. It sends the request that gets
/// the broken response, and then checks that the client still works.
struct HostileRun: Sendable {
  /// The circumstances of the request that gets the broken response.
  enum Mode: String, CaseIterable, Sendable {
    /// The request is the first on its connection, is sent once, and uses no cache.
    case fresh
    /// The request uses a pooled connection with TLS that has carried a right response. It is a POST, unless
    /// the case has its own method or fields.
    case pooled
    /// The request is sent twice by a client with a cache. It has the default limit of attempts. If only the
    /// first connection misbehaves, the limit is one attempt, because a second one would hide the fault.
    case cached
    /// The request goes over TLS to a proxy, and without TLS from there to the server.
    case proxied
    /// The request goes through a tunnel of a proxy. The connection to the proxy has TLS, and the connection
    /// to the server inside the tunnel has TLS too.
    case tunneled

    /// Whether the request goes through a proxy.
    var hasProxy: Bool { self == .proxied || self == .tunneled }
  }

  /// The last number that was given to a host name or to a request. Numbers are unique in the process.
  private static let lastNumber = Atomic(0)
  /// The maximum growth of the process's memory in bytes while the client receives a flood.
  private static let memoryLimit = 32 << 20
  /// How much later than its deadline a call may end, because the machine may be busy.
  private static let lateness = Duration.seconds(1)

  /// The case of this run.
  let hostile: HostileCase
  let mode: Mode
  let server: HostileServer
  /// The host name of all requests. It begins with the name of the scenario.
  let host: String
  let client: NetOptClient

  init(_ hostile: HostileCase, _ mode: Mode) async throws {
    self.hostile = hostile
    self.mode = mode
    server = try await HostileServer.shared.value
    let number = Self.lastNumber.wrappingAdd(1, ordering: .relaxed).newValue
    host = "\(hostile.name)--\(number).hostile.test"
    var configuration = server.clientConfiguration
    if mode.hasProxy { configuration.proxy = .url("https://\(server.secure)") }
    if mode == .cached { configuration.cache = ClientConfiguration.Cache() }
    // With this small buffer, the transfer of a longer body pauses while the test does not read it.
    configuration.connections.bodyBuffer = 4096
    client = try NetOptClient(configuration)
  }

  /// Performs the run. Records each violated rule as an issue of the test.
  func perform() async throws {
    if mode == .pooled, await ask(.right) == nil { return }
    let peak = hostile.isFlood ? PeakMemory() : nil
    // The number of the request that gets the broken response; the same in all rounds.
    let question = Self.lastNumber.wrappingAdd(1, ordering: .relaxed).newValue
    var last: Outcome?
    for round in 1...rounds {
      last = await ask(.broken(question, round: round))
      if last == nil { return }
      // In the second round the response may come from the cache, so that the server holds nothing back.
      if hostile.isLate, try await server.release(host) == 0, round == 1 {
        fault("nothing was held back: the scenario did not run")
      }
    }
    if let growth = await peak?.end(), growth > Self.memoryLimit {
      fault("the process grows by \(growth >> 20) MiB")
    }
    // Further requests to the host must get their own right responses.
    for _ in 0..<(hostile.mayStall ? 1 : 2) where await ask(.right) == nil { return }
    try await checkReceived(question, last)
    let traces = server.newFaults()
    if !traces.isEmpty { fault("the server has a fault of its own: \(traces)") }
    let client = client
    if await Patience.outcome(within: .seconds(20), of: { await client.shutdown() }) == nil {
      fault("shutdown() hangs")
    }
  }

  /// How often the request that gets the broken response is sent.
  private var rounds: Int { mode == .cached ? 2 : 1 }

  /// A request of the run.
  private enum Question {
    /// A request for /right, which the server answers without misbehaviour.
    case right
    /// The request that gets the broken response: its number, and the round from 1.
    case broken(Int, round: Int)
  }

  /// Sends a request and checks the outcome.
  ///
  /// - Returns: the outcome; `nil` when the client cannot be used any more.
  private func ask(_ question: Question) async -> Outcome? {
    do {
      let number: Int
      let request: NetOptRequest
      switch question {
      case .right:
        number = Self.lastNumber.wrappingAdd(1, ordering: .relaxed).newValue
        request = try self.request(
          .get, "/right?q=\(number)", within: hostile.mayStall ? .milliseconds(500) : .seconds(5))
      case .broken(let question, _):
        number = question
        request = try brokenRequest(question)
      }
      let timeout = request.options.timeout ?? .zero
      let client = client
      guard
        let outcome = await Patience.outcome(
          within: timeout + .seconds(15), of: { await Outcome(of: request, by: client) })
      else {
        fault("the call hangs: no end 15 s after its deadline")
        return nil
      }
      if outcome.time > timeout + Self.lateness {
        fault("the call ends after \(outcome.time), its deadline is \(timeout)")
      }
      judge(outcome, of: question, number)
      return outcome
    } catch {
      fault("\(error)")
      return nil
    }
  }

  /// Compares the outcome of a request with the results that are allowed for it. Records an issue if it is
  /// none of them.
  private func judge(_ outcome: Outcome, of question: Question, _ number: Int) {
    switch question {
    case .right:
      let verdict: HostileCase.Verdict =
        hostile.mayStall ? .either(.usual, .lostOrSlow) : .answers(.usual)
      if let fault = outcome.fault(verdict, for: number) { self.fault("the next request: \(fault)") }
    case .broken(_, let round):
      var verdict = hostile.verdict
      if hostile.isOfFirstConnection, round > 1 { verdict = .answers(.usual) }
      if let fault = outcome.fault(
        verdict, for: number, isOfFirstConnection: hostile.isOfFirstConnection)
      {
        self.fault(round == 1 ? fault : "the second time: \(fault)")
      }
    }
  }

  /// Makes the request that gets the broken response.
  private func brokenRequest(_ question: Int) throws(NetOptError) -> NetOptRequest {
    let isPost =
      hostile.isUploading || hostile.method == .post
      || mode == .pooled && hostile.method == .get && hostile.headers.isEmpty
    var request = try request(isPost ? .post : hostile.method, "/broken?q=\(question)")
    request.headers = hostile.headers
    if isPost { request.body = .text("question \(question)") }
    if hostile.isUploading { request.body = .stream(Self.endless) }
    request.options.timeout = hostile.timeout
    if mode != .cached || hostile.isOfFirstConnection { request.options.maxAttempts = 1 }
    return request
  }

  /// A request body that begins and never ends. The client stops waiting for more when the call is over.
  private static var endless: AsyncStream<[UInt8]> {
    let (stream, continuation) = AsyncStream<[UInt8]>.makeStream()
    continuation.yield(Array("question".utf8))
    return stream
  }

  /// Makes a request to the host, with TLS if the mode or the case needs it.
  ///
  /// - Parameter target: the path and the query of the URL.
  private func request(
    _ method: NetOptRequest.Method, _ target: String, within timeout: Duration = .seconds(5)
  ) throws(NetOptError) -> NetOptRequest {
    let isSecure = mode == .pooled || mode == .tunneled || hostile.access == .tls
    let endpoint = isSecure ? server.secure : server.plain
    var request = try NetOptRequest(
      method, "\(isSecure ? "https" : "http")://\(host):\(endpoint.port)\(target)")
    if !mode.hasProxy { request.options.routing = .pinned(endpoint.address) }
    request.options.timeout = timeout
    return request
  }

  /// Checks which requests the server has received:
  /// - A POST must reach the server at most once in each round, unless the server said that it did not
  ///   process the POST.
  /// - If the cache must not store the response, both requests of the mode `cached` must reach the server.
  ///   This is checked only if the second call got a response: a failed call may not have reached the server,
  ///   which does not read while it sends a flood.
  ///
  /// - Parameters:
  ///   - question: the number of the request that got the broken response.
  ///   - last: the outcome of the last round.
  private func checkReceived(_ question: Int, _ last: Outcome?) async throws {
    let received = try await server.received(by: host)
    let posts = received.count { $0 == "POST \(question)" }
    if posts > rounds, !hostile.isUnprocessed { fault("the POST reached the server \(posts) times") }
    let questions = received.count { $0.hasSuffix(" \(question)") }
    let mayBeStored = hostile.verdict.answer != nil && hostile.mayBeStored
    if mode == .cached, !mayBeStored, !hostile.isOfFirstConnection, let last, last.isAnswer,
      last.isStored || questions < 2
    {
      fault("the second answer did not come from the server: the first was stored")
    }
  }

  /// Records an issue.
  private func fault(_ text: String) {
    Issue.record("\(hostile.name) [\(mode.rawValue)]: \(text)")
  }
}
