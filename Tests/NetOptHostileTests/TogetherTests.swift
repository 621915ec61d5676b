import NetOpt
import NetOptCore
import NetOptEngine
import NetOptTestSupport
import TestTools
import Testing

/// Several requests on one HTTP/2 connection that breaks: each gets its own response or an error, and none
/// waits for its deadline.
@Suite struct TogetherTests {
  /// libcurl may repeat a request without any response on the next connection, which works.
  static let cases: [HostileCase] = .h2(
    .either(
      or: .lost,
      ([
        "heads-and-a-bad-frame", "bodies-and-a-bad-frame", "one-body-and-a-bad-frame",
        "heads-then-a-bad-frame",
        "bad-frame", "whole-answers-and-a-bad-frame", "many-settings", "too-large-a-head",
        "too-large-a-head-behind-whole-answers", "resets-beside-answers", "a-reset-for-each",
        "cut-while-they-are-held-back",
      ] + forged).map { "together-\($0)" }))

  private static let forged = (0..<4).flatMap { index in
    (0..<4).filter { $0 != index }.map { "forged-in-the-head-of-\(index)-for-\($0)" }
  }

  /// libcurl 8.1.0 and later fail only the stream whose head is too large. In these scenarios the other
  /// requests then rightly wait for the rest of their responses.
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
    // Nothing wrong is stored, and the next connection works.
    for question in 0..<4 {
      #expect(try await ask("/broken?q=\(question)").fault(.answers(.usual), for: question) == nil)
    }
    #expect(server.newFaults().isEmpty)
    await client.shutdown()
  }
}
