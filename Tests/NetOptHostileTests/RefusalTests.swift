import NetOpt
import NetOptCore
import NetOptTestSupport
import TestTools
import Synchronization
import Testing

/// A POST that the server did not process is sent again. A POST that the server may have processed is not
/// (docs/adr/0026).
@Suite struct RefusalTests {
  /// The cases of the scenarios in `http2_refusals.py`. `HostileServerTests` checks that every scenario has a
  /// case. The tests of this suite run the scenarios.
  static let cases: [HostileCase] = .h2(
    .answers(unprocessedNames.map { "refusal-\($0)" }), .answers(answeredNames.map { "refusal-\($0)" }),
    .fails(
      as: .lost,
      processedNames.map { "refusal-\($0)" } + ["refusal-refused-always", "refusal-lost-then-refused"]),
    .answers(["refusal-leaving"]))

  /// The scenarios in which the server does not process the request and says so. These names, and those
  /// below, lack the beginning "refusal-".
  private static let unprocessedNames = both(
    ["goaway-0-below", "goaway-2-below", "goaway-b-below", "goaway-below-and-open", "goaway-twice-below"]
      + ["goaway-below-then-rst", "goaway-then-refused", "refused", "refused-and-closed", "early-refused"]
      + ["early-goaway-below"])

  /// The scenarios in which the server processes the request, and the client cannot know whether it did.
  private static let processedNames = both(
    ["goaway-0-at", "goaway-2-at", "goaway-0-above", "goaway-2-above", "goaway-twice-at", "closed"]
      + ["0", "1", "2", "8", "b"].map { "goaway-then-rst-\($0)" }
      + ["head-then-refused", "hints-then-refused", "head-then-goaway-below"])

  /// The scenarios in which the server announces the end of the connection, and then answers the request.
  private static let answeredNames = both(["goaway-twice-then-the-answer"])

  /// The names of the two forms of each scenario: all frames in one TLS record, or each frame in its own
  /// record.
  private static func both(_ names: [String]) -> [String] { names.flatMap { [$0, $0 + "-by-records"] } }

  /// The last number that was given to a host name.
  private static let lastNumber = Atomic(0)

  /// A client, and a host name that no other test uses. The name selects the scenario.
  private struct Lab {
    let server: HostileServer
    let client: NetOptClient
    let host: String

    /// - Parameter scenario: the name of the scenario, without "h2-refusal-".
    init(_ scenario: String) async throws {
      server = try await HostileServer.shared.value
      client = try NetOptClient(server.clientConfiguration)
      let number = RefusalTests.lastNumber.wrappingAdd(1, ordering: .relaxed).newValue
      host = "h2-refusal-\(scenario)--refusal-\(number).hostile.test"
    }

    /// Sends a request with a single attempt.
    func ask(_ method: NetOptRequest.Method, _ target: String, body: RequestBody = .none) async throws
      -> Outcome
    {
      var request = try server.http2Request(method, host, target, within: .seconds(10))
      request.body = body
      return await Outcome(of: request, by: client)
    }

    /// Sends a POST with the number 1.
    ///
    /// - Parameter isPooled: whether the POST uses a connection that has carried a right response before. If
    ///   false, it uses a new connection.
    func post(isPooled: Bool, body: RequestBody = .text("question 1")) async throws -> Outcome {
      if isPooled { #expect(try await ask(.get, "/right?q=9").fault(.answers(.usual), for: 9) == nil) }
      return try await ask(.post, "/broken?q=1", body: body)
    }

    /// How often the server received the POST with the number 1, and how often it processed that POST.
    func counts() async throws -> (asked: Int, processed: Int) {
      let received = try await server.received(by: host)
      return (received.count { $0 == "POST 1" }, received.count { $0 == "processed 1" })
    }

    /// Checks that the server itself has no fault, and shuts down the client.
    func end() async {
      #expect(server.newFaults().isEmpty)
      await client.shutdown()
    }
  }

  @Test(
    "a request that the server did not process is retried and answered",
    arguments: unprocessedNames, [false, true])
  func unprocessed(_ scenario: String, isPooled: Bool) async throws {
    let lab = try await Lab(scenario)
    let outcome = try await lab.post(isPooled: isPooled)
    #expect(outcome.fault(.answers(.usual), for: 1) == nil)
    #expect(try await lab.counts() == (2, 1))
    await lab.end()
  }

  @Test(
    "a request that the server may have processed is not retried",
    arguments: processedNames, [false, true])
  func processed(_ scenario: String, isPooled: Bool) async throws {
    let lab = try await Lab(scenario)
    let outcome = try await lab.post(isPooled: isPooled)
    #expect(outcome.fault(.fails(.lost), for: 1) == nil)
    #expect(try await lab.counts() == (1, 1))
    if scenario.hasPrefix("goaway"), !scenario.contains("rst") {
      #expect(outcome.error?.code == .sendFailed)
      #expect(outcome.error?.message.contains("announced the end of the connection (GOAWAY)") == true)
      #expect(outcome.error?.message.contains("whether the request took effect is not known") == true)
    }
    await lab.end()
  }

  @Test(
    "a request on a connection with an orderly GOAWAY is answered",
    arguments: answeredNames, [false, true])
  func orderly(_ scenario: String, isPooled: Bool) async throws {
    let lab = try await Lab(scenario)
    #expect(try await lab.post(isPooled: isPooled).fault(.answers(.usual), for: 1) == nil)
    #expect(try await lab.counts() == (1, 1))
    await lab.end()
  }

  /// The client sends the request once, and then again three times to the same endpoint (docs/adr/0026).
  @Test("a request that the server always refuses fails after four attempts", arguments: [false, true])
  func always(isPooled: Bool) async throws {
    let lab = try await Lab("refused-always")
    let outcome = try await lab.post(isPooled: isPooled)
    #expect(outcome.error?.code == .sendFailed)
    #expect(
      outcome.error?.message.contains(
        "refused the request without processing it (REFUSED_STREAM); the request took no effect") == true)
    let counts = try await lab.counts()
    #expect(counts.asked == 4 && counts.processed == 0)
    await lab.end()
  }

  /// The server processes the first PUT and resets its connection. Then it refuses the PUT. libcurl itself
  /// sends the PUT again if it was on a reused connection. Otherwise netopt makes a further attempt.
  @Test(
    "an error never claims no effect when one attempt may have been processed",
    arguments: [true, false])
  func lostThenRefused(isPooled: Bool) async throws {
    let lab = try await Lab("lost-then-refused")
    if isPooled { #expect(try await lab.ask(.get, "/right?q=9").fault(.answers(.usual), for: 9) == nil) }
    var request = try lab.server.http2Request(.put, lab.host, "/broken?q=1", within: .seconds(10))
    request.body = .text("question 1")
    request.options.maxAttempts = isPooled ? 1 : 3
    let error = try #require(await Outcome(of: request, by: lab.client).error)
    #expect(error.code == .sendFailed)
    #expect(error.message.contains("refused the request without processing it (REFUSED_STREAM)"))
    let legs = (error.route?.legs ?? []).compactMap { $0.failure?.message }
    for words in [error.message] + legs { #expect(!words.contains("no effect"), "\(words)") }
    let received = try await lab.server.received(by: lab.host)
    #expect(received.count { $0 == "processed 1" } == 1)
    await lab.end()
  }

  @Test(
    "a request stream that sent nothing before a refusal is sent with the retry",
    arguments: [false, true])
  func unusedStream(isPooled: Bool) async throws {
    let lab = try await Lab("early-refused")
    let (stream, continuation) = AsyncStream<[UInt8]>.makeStream()
    let call = Task { try await lab.post(isPooled: isPooled, body: .stream(stream)) }
    try await wait(for: "the second try's head") { try await lab.counts().asked == 2 }
    continuation.yield(Array("question 1".utf8))
    continuation.finish()
    let outcome = try await call.value
    #expect(outcome.fault(.answers(.usual), for: 1) == nil)
    #expect(try await lab.counts().processed == 1)
    await lab.end()
  }

  /// Before the refusal, the client has sent at most the 65,535 bytes that HTTP/2 allows without a
  /// WINDOW_UPDATE. netopt keeps these bytes, so it can send the stream again from its beginning.
  @Test(
    "a refused request stream whose beginning was sent is sent again from its beginning",
    arguments: unprocessedNames, [false, true])
  func usedStream(_ scenario: String, isPooled: Bool) async throws {
    let lab = try await Lab(scenario)
    let stream = AsyncStream<[UInt8]> { continuation in
      for byte in "question 1".utf8 { continuation.yield([byte]) }
      continuation.finish()
    }
    let outcome = try await lab.post(isPooled: isPooled, body: .stream(stream))
    #expect(outcome.fault(.answers(.usual), for: 1) == nil)
    #expect(try await lab.counts().processed == 1)
    await lab.end()
  }

  @Test("a request stream that may have been processed is not retried", arguments: processedNames)
  func processedStream(_ scenario: String) async throws {
    let lab = try await Lab(scenario)
    let stream = AsyncStream<[UInt8]> { continuation in
      continuation.yield(Array("question 1".utf8))
      continuation.finish()
    }
    let outcome = try await lab.post(isPooled: true, body: .stream(stream))
    #expect(outcome.fault(.fails(.lost), for: 1) == nil)
    #expect(outcome.error?.message.contains("Idempotency-Key") == false)
    #expect(try await lab.counts() == (1, 1))
    await lab.end()
  }

  @Test("a connection with an announced end gets no new request and completes the open one")
  func leaving() async throws {
    let lab = try await Lab("leaving")
    let first = Task { try await lab.post(isPooled: true) }
    try await wait(for: "the first request") { try await lab.counts().asked == 1 }
    // The server sends a GOAWAY right after it has noted the first request. A request below may be under way
    // before the client has read the GOAWAY. netopt sends such a request again.
    for question in 2...5 {
      let outcome = try await lab.ask(.post, "/broken?q=\(question)", body: .text("question \(question)"))
      #expect(outcome.fault(.answers(.usual), for: question) == nil)
    }
    #expect(try await lab.server.release(lab.host) == 1)
    #expect(try await first.value.fault(.answers(.usual), for: 1) == nil)
    let received = try await lab.server.received(by: lab.host)
    // The server notes a request as late if it comes on the connection after the GOAWAY.
    #expect(received.count { $0.hasPrefix("late") } <= 1)
    #expect(received.count { $0.hasPrefix("processed") } == 5)
    await lab.end()
  }
}
