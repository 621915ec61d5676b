import NetOptBench
import NetOptCore
import NetOptLocking
import Testing

@Suite struct SamplerTests {
  private let request: NetOptRequest
  private let target = BenchTarget(Fixtures.first, port: 443)

  init() throws { request = try NetOptRequest(.get, "https://api.example.com/") }

  @Test("the sampler sends a request to its target on the requested connection, without redirects")
  func requestRoute() async throws {
    let client = FakeBenchClient { request, _ in .answer(request) }
    let sampler = Sampler(client, request)
    _ = await sampler.sample(target, .fresh)
    _ = await sampler.sample(.dns(port: 443), .pooled)
    #expect(client.requests.map(\.options.routing) == [.pinned(Fixtures.first), .dns])
    #expect(client.requests.map(\.options.connection) == [.fresh, .pooled])
    #expect(client.requests.allSatisfy { $0.options.maxRedirects == 0 })
  }

  @Test("the sampler reads the timings at the end of the body")
  func timingsAtEnd() async throws {
    let body = SlowBody()
    let client = FakeBenchClient { request, _ in
      var response = NetOptResponse.answer(request)
      response.body = ResponseBody(body)
      return response
    }
    let sample = try #require(await Sampler(client, request).sample(target, .pooled))
    #expect(sample.timings.transfer == .milliseconds(3))
    #expect(sample.kind == .ok && sample.version == .http2 && sample.reused)
    #expect(sample.tls == TLSReport(verified: true, version: "TLSv1.3"))
  }

  @Test("a sample whose body breaks off is a connection failure")
  func brokenBody() async throws {
    let client = FakeBenchClient { request, _ in
      var response = NetOptResponse.answer(request)
      response.body = ResponseBody(SlowBody(failsAt: 2))
      return response
    }
    let sample = try #require(await Sampler(client, request).sample(target, .pooled))
    #expect(sample.kind == .connect)
  }

  @Test(
    "a sample is an HTTP error unless its status is 2xx or 3xx",
    arguments: [
      (200, SampleKind.ok), (304, .ok), (199, .httpError), (404, .httpError), (503, .httpError),
    ])
  func statuses(status: Int, kind: SampleKind) async throws {
    let client = FakeBenchClient { request, _ in .answer(request, status: status) }
    let sample = try #require(await Sampler(client, request).sample(target, .pooled))
    #expect(sample.kind == kind)
  }

  @Test("a cancelled request gives no sample")
  func cancelledRequest() async throws {
    let client = FakeBenchClient { _, _ throws(NetOptError) in
      throw NetOptError(.cancelled, phase: .receive, "stopped")
    }
    #expect(await Sampler(client, request).sample(target, .pooled) == nil)
  }
}

/// A body of three chunks of a byte. According to its timings, the transfer of each chunk takes 1 ms.
private final class SlowBody: BodySource {
  /// The number of chunks that `next` has returned.
  private let given = Locked(0)
  /// The number of the chunk, from 1, in whose place `next` throws an error; `nil` for a whole body.
  private let failsAt: Int?

  init(failsAt: Int? = nil) { self.failsAt = failsAt }

  func next() async throws(NetOptError) -> [UInt8]? {
    let number = given.withLock { given in
      if given < 3 { given += 1 } else { return 0 }
      return given
    }
    if number == failsAt { throw NetOptError(.receiveFailed, phase: .receive, "it broke off") }
    return number == 0 ? nil : [1]
  }

  var timings: Timings {
    var timings = Timings()
    timings.transfer = .milliseconds(given.withLock { $0 })
    return timings
  }
}
