import NetOpt
import NetOptCore
import NetOptEngine
import NetOptTestSupport
import TestTools
import Testing

/// Several requests on one HTTP/2 connection that breaks. Each request must get its own response or an error,
/// and no request may wait for its deadline.
@Suite struct TogetherTests {
  /// The cases of the scenarios in `http2_together.py`. A right response is allowed too: when a request has
  /// got no part of a response, libcurl may repeat it on the next connection, which works.
  static let cases: [HostileCase] = .h2(
    .either(
      or: .lost,
      ([
        "heads-and-a-bad-frame", "bodies-and-a-bad-frame", "one-body-and-a-bad-frame",
        "heads-then-a-bad-frame",
        "bad-frame", "whole-answers-and-a-bad-frame", "many-settings", "too-large-a-head",
        "too-large-a-head-behind-whole-answers", "resets-beside-answers", "a-reset-for-each",
        "cut-while-they-are-held-back", "heads-and-an-invalid-record", "invalid-record",
      ] + forged).map { "together-\($0)" }))

  /// The scenarios in which the head of the response to one request (`index`) ends with the header of a
  /// forged DATA frame for another request.
  private static let forged = (0..<4).flatMap { index in
    (0..<4).filter { $0 != index }.map { "forged-in-the-head-of-\(index)-for-\($0)" }
  }

  /// The cases that run with this libcurl. From 8.1.0 on, libcurl fails only the stream whose head is too
  /// large. In the scenarios with such a head, the other requests then rightly wait for the rest of their
  /// responses.
  private static let played = cases.filter { CurlLibrary.stopsAtLongHeads || !$0.name.contains("too-large") }

  @Test(
    "each request on a breaking connection gets its own response or an error within 3 s",
    arguments: played)
  func together(_ hostile: HostileCase) async throws {
    let server = try await HostileServer.shared.value
    let host = "\(hostile.name)--together.hostile.test"
    var configuration = server.clientConfiguration
    configuration.cache = ClientConfiguration.Cache()
    let client = try NetOptClient(configuration)
    // Sends a GET and returns its outcome.
    @Sendable func ask(_ target: String) async throws -> Outcome {
      let request = try server.http2Request(.get, host, target, within: .seconds(10))
      return await Outcome(of: request, by: client)
    }
    #expect(try await ask("/right?q=9").fault(.answers(.usual), for: 9) == nil)
    let outcomes = try await withThrowingTaskGroup(of: (Int, Outcome).self) { group in
      for question in 0..<4 { group.addTask { (question, try await ask("/broken?q=\(question)")) } }
      return try await group.reduce(into: []) { $0.append($1) }
    }
    for (question, outcome) in outcomes {
      #expect(outcome.fault(hostile.verdict, for: question) == nil)
      #expect(outcome.time < .seconds(3), "\(question)")
    }
    // The cache has stored nothing wrong, and the next connection works.
    for question in 0..<4 {
      #expect(try await ask("/broken?q=\(question)").fault(.answers(.usual), for: question) == nil)
    }
    #expect(server.newFaults().isEmpty)
    await client.shutdown()
  }
}
