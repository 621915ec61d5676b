import Glibc
import NetOptCore
import NetOptRouting
import NetOptTestSupport
import TestTools
import Testing

@testable import NetOpt

/// Tests that no option of a request and no number in the head of a response makes the client trap or hang:
/// each call ends with a response or an error. The tests run in child processes, because a trap ends the
/// process.
@Suite struct ExtremeRequestTests {
  @Test("extreme options of a request end in a response or an error")
  func extremeOptions() async throws {
    // The child writes each attempt into the note before it makes the attempt. When the child traps, the last
    // expectation of the test fails and shows the note.
    let note = try LastNote()
    await #expect(processExitsWith: .success) { [path = note.path as String] in
      // SIGALRM ends the child after 300 s, so a child that hangs makes the test fail.
      alarm(300)
      let note = LastNote(path)
      let lab = try StubLab([.respond(fields: ["Cache-Control": "max-age=0"], body: [1])]) {
        $0.cache = ClientConfiguration.Cache()
        $0.connections.lifetime = .seconds(60)
      }
      for seed in 1...600 as ClosedRange<UInt64> {
        var random = SplitMix64(seed: seed)
        let options = Self.options(&random)
        note.write("seed \(seed): \(options)")
        // In versioned mode, `cachevers` is the requested version.
        var request = try NetOptRequest(
          .get, "https://\(StubLab.host)/?cachevers=\(random.element(of: ExtremeNumbers.integers))")
        request.options = options
        let outcome: Result<NetOptResponse, NetOptError> = await Self.outcome(of: request, lab.client)
        switch outcome {
        case .success(let response): #expect(response.status == 200, "seed \(seed)")
        // The endpoint answers at once. So a call may fail only when its timeout is negative, zero or 1 ns.
        case .failure(let error):
          #expect(
            error.code == .timeout && (options.timeout ?? .seconds(1)) < .seconds(1), "seed \(seed): \(error)"
          )
        }
      }
      await lab.client.shutdown()
      note.write("the end")
    }
    #expect(note.text == "the end")
  }

  /// Performs a request. Returns its response or its error.
  private static func outcome(
    of request: NetOptRequest, _ client: NetOptClient
  ) async -> Result<NetOptResponse, NetOptError> {
    do throws(NetOptError) { return .success(try await client.execute(request)) } catch {
      return .failure(error)
    }
  }

  /// Draws request options. Each drawn option has an extreme value or its default.
  private static func options(_ random: inout SplitMix64) -> RequestOptions {
    var options = RequestOptions()
    if random.isOne(in: 2) { options.timeout = random.element(of: ExtremeNumbers.durations) }
    if random.isOne(in: 8) { options.timeout = nil }
    if random.isOne(in: 2) { options.connectTimeout = random.element(of: ExtremeNumbers.durations) }
    if random.isOne(in: 2) { options.maxRedirects = random.element(of: ExtremeNumbers.integers) }
    if random.isOne(in: 2) { options.maxAttempts = random.element(of: ExtremeNumbers.integers) }
    options.hedges = random.isOne(in: 2)
    switch random.below(4) {
    case 0:
      var declared = CacheOptions.Declaration(timeToLive: random.element(of: ExtremeNumbers.durations))
      declared.expired = .serveAndRefresh(within: random.element(of: ExtremeNumbers.durations))
      declared.negativeTimeToLive = random.element(of: ExtremeNumbers.durations)
      options.cache = .api(declared)
    case 1:
      var versions = CacheOptions.Versions()
      versions.threshold = Int64(random.element(of: ExtremeNumbers.integers))
      options.cache = CacheOptions(.versioned(versions))
    default: break
    }
    return options
  }

  /// A head with numbers in all fields that netopt reads.
  private static let head = """
    Date: Sun, 06 Nov 1994 08:49:37 GMT
    Age: 10
    Cache-Control: max-age=10, stale-while-revalidate=20, stale-if-error=30
    Expires: Sun, 06 Nov 1994 08:49:37 GMT
    Last-Modified: Sun, 06 Nov 1994 08:49:37 GMT
    Content-Length: 1
    Retry-After: 10
    ETag: "1"
    """

  /// Reads lines of the form `Name: value`. Ignores other lines.
  private static func fields(_ text: [UInt8]) -> HeaderFields {
    var fields = HeaderFields()
    for line in String(decoding: text, as: UTF8.self).split(separator: "\n") {
      guard let colon = line.firstRange(of: ": ") else { continue }
      fields.append(HeaderField(String(line[..<colon.lowerBound]), String(line[colon.upperBound...])))
    }
    return fields
  }

  @Test(
    "extreme numbers in the head of a response end in a response or an error",
    arguments: [200, 304, 429, 503])
  func extremeHeads(_ status: Int) async throws {
    let note = try LastNote()
    await #expect(processExitsWith: .success) { [path = note.path as String, status = status as Int] in
      alarm(300)
      let note = LastNote(path)
      let text = ExtremeText(Array(Self.head.utf8))
      let controls = ExtremeText(Array("max-age=10, max-stale=20, min-fresh=30, stale-if-error=40".utf8))
      var random = SplitMix64(seed: 1)
      // Even rounds have a head with one extreme number. In odd rounds about one number in three is extreme.
      for index in 0..<min(text.count, 400) {
        let head = index.isMultiple(of: 2) ? text[index] : text.drawn(using: &random)
        note.write("\(status): " + String(decoding: head, as: UTF8.self))
        let lab = try StubLab([.respond(status, fields: Self.fields(head), body: [1])]) {
          $0.cache = ClientConfiguration.Cache()
        }
        // The client may have the response to the first request in its cache when it sends the second one.
        for _ in 0..<2 {
          var request = try lab.request()
          request.headers["Cache-Control"] = String(decoding: controls.drawn(using: &random), as: UTF8.self)
          // The deadline ends the wait that a server asks for with `Retry-After`.
          request.options.timeout = .milliseconds(200)
          _ = await Self.outcome(of: request, lab.client)
        }
        await lab.client.shutdown()
      }
      note.write("the end")
    }
    #expect(note.text == "the end")
  }
}
