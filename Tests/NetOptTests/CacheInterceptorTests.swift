import NetOptCore
import NetOptTestSupport
import Testing

@testable import NetOpt

/// The behaviour of a client with a cache in mode `http`.
@Suite struct CacheInterceptorTests {
  /// The error of a connection that was closed before the end of a response.
  private static let gone = NetOptError(.receiveFailed, phase: .receive, "the connection was closed")

  @Test("the cache serves a fresh response without a request")
  func freshResponse() async throws {
    let lab = try CacheLab { (request, _) throws(NetOptError) in
      CacheLab.response(request, 200, ["Cache-Control": "max-age=60", "ETag": "\"a\""], "hello")
    }
    let first = try await lab.ask()
    #expect(first.response.cacheStatus.outcome == .miss)
    #expect(first.response.cacheStatus.text == "netopt; fwd=uri-miss; fwd-status=200; ttl=60; stored")
    lab.wait(20)
    let second = try await lab.ask()
    #expect(lab.sent == 1)
    #expect(second.text == "hello")
    #expect(second.response.headers["Age"] == "20")
    #expect(second.response.attempts == 0)
    #expect(second.response.cacheStatus.outcome == .hit)
    #expect(second.response.cacheStatus.text == "netopt; hit; ttl=40")
    #expect(second.response.cacheStatus.rule.section == "RFC 9111, section 5.2.2.1")
    await lab.client.shutdown()
  }

  @Test("the cache does not store the response to a GET with a body")
  func requestBodies() async throws {
    let lab = try CacheLab { (request, _) throws(NetOptError) in
      let question = String(decoding: request.body.bytesInMemory ?? [], as: UTF8.self)
      return CacheLab.response(request, 200, ["Cache-Control": "max-age=60"], "to \(question)")
    }
    for question in ["a", "b", "a"] {
      let answer = try await lab.ask { $0.body = .bytes(Array(question.utf8)) }
      #expect(answer.text == "to \(question)")
      #expect(answer.response.cacheStatus.rule == .requestBody)
    }
    #expect(lab.sent == 3)
    // The same URL without a body is another request.
    #expect(try await lab.ask().text == "to ")
    #expect(try await lab.ask().response.cacheStatus.outcome == .hit)
    await lab.client.shutdown()
  }

  @Test("a client without a cache sends each request")
  func withoutCache() async throws {
    let lab = try StubLab([.respond(200, fields: ["Cache-Control": "max-age=60"])])
    for _ in 0..<2 { #expect(try await lab.client.execute(try lab.request()).cacheStatus == .off) }
    #expect(lab.receivers.count == 2)
    #expect(lab.client.responseCache == nil)
    await lab.client.shutdown()
  }

  @Test("the cache revalidates a stale response and serves it with the fields of the 304")
  func revalidation() async throws {
    let lab = try CacheLab { (request, number) throws(NetOptError) in
      let fields: HeaderFields = ["Cache-Control": "max-age=10", "ETag": "\"a\"", "N": "\(number)"]
      return request.headers["If-None-Match"] == "\"a\""
        ? CacheLab.response(request, 304, fields) : CacheLab.response(request, 200, fields, "hello")
    }
    _ = try await lab.ask()
    lab.wait(11)
    let second = try await lab.ask()
    #expect(second.response.status == 200)
    #expect(second.text == "hello")
    #expect(second.response.headers["N"] == "2")
    #expect(second.response.cacheStatus.outcome == .revalidated)
    #expect(second.response.cacheStatus.text == "netopt; fwd=stale; fwd-status=304; ttl=10; stored")
    lab.wait(9)
    #expect(try await lab.ask().response.cacheStatus.outcome == .hit)
    #expect(lab.sent == 2)
    await lab.client.shutdown()
  }

  @Test("the cache fetches the resource again after a 304 with another ETag")
  func otherETag() async throws {
    let lab = try CacheLab { (request, _) throws(NetOptError) in
      request.headers.contains(name: "If-None-Match")
        ? CacheLab.response(request, 304, ["ETag": "\"other\""])
        : CacheLab.response(request, 200, ["Cache-Control": "max-age=10", "ETag": "\"a\""], "hello")
    }
    _ = try await lab.ask()
    lab.wait(11)
    let second = try await lab.ask()
    #expect(second.text == "hello" && second.response.status == 200)
    #expect(lab.sent == 3)
    await lab.client.shutdown()
  }

  @Test(
    "an unreachable origin gives a stale response, or 504 where that is forbidden",
    arguments: [
      ("max-age=10", 200), ("max-age=10, must-revalidate", 504), ("max-age=10, no-cache", 504),
      ("max-age=10, stale-if-error=5", 200),
    ])
  func unreachableOrigin(_ control: String, _ status: Int) async throws {
    let lab = try CacheLab { (request, number) throws(NetOptError) in
      if number > 1 { throw Self.gone }
      return CacheLab.response(request, 200, ["Cache-Control": control], "hello")
    }
    _ = try await lab.ask()
    lab.wait(12)
    let (response, text) = try await lab.ask()
    #expect(response.status == status)
    #expect(text.hasPrefix(status == 200 ? "hello" : "netopt: the origin could not be reached"))
    #expect(response.cacheStatus.outcome == (status == 200 ? .stale : .miss))
    // Without a stored response the call throws the error.
    await #expect(throws: NetOptError.self) { try await lab.ask(.get, "/other") }
    await lab.client.shutdown()
  }

  @Test("the cache serves a stale response instead of a 503 only with stale-if-error")
  func staleIfError() async throws {
    let lab = try CacheLab { (request, number) throws(NetOptError) in
      number > 2
        ? CacheLab.response(request, 503, [:], "busy")
        : CacheLab.response(
          request, 200, ["Cache-Control": "max-age=1" + (number == 1 ? ", stale-if-error=60" : "")], "hello")
    }
    _ = try await lab.ask(.get, "/a")
    _ = try await lab.ask(.get, "/b")
    lab.wait(2)
    #expect(try await lab.ask(.get, "/a").text == "hello")
    #expect(try await lab.ask(.get, "/b").text == "busy")
    await lab.client.shutdown()
  }

  @Test("stale-while-revalidate serves the stale response and refreshes it in the background")
  func staleWhileRevalidate() async throws {
    let lab = try CacheLab { (request, number) throws(NetOptError) in
      CacheLab.response(
        request, 200, ["Cache-Control": "max-age=10, stale-while-revalidate=60"], "answer \(number)")
    }
    _ = try await lab.ask()
    lab.wait(11)
    let stale = try await lab.ask()
    #expect(stale.text == "answer 1")
    #expect(stale.response.cacheStatus.outcome == .stale)
    try await wait(for: "the refresh") { try await lab.ask().text == "answer 2" }
    #expect(lab.sent == 2)
    await lab.client.shutdown()
  }

  @Test("the cache limits the concurrent background refreshes of an origin and does the others later")
  func refreshLimit() async throws {
    let gate = Latch()
    let most = ResponseCache.mostRefreshes
    let lab = try CacheLab { (request, number) throws(NetOptError) in
      if number > most + 50 { try? await gate.wait() }
      return CacheLab.response(
        request, 200, ["Cache-Control": "max-age=10, stale-while-revalidate=3600"], "\(number)")
    }
    for index in 0..<most + 50 { _ = try await lab.ask(.get, "/\(index)") }
    lab.wait(11)
    for index in 0..<most + 50 {
      #expect(try await lab.ask(.get, "/\(index)").text == "\(index + 1)")
    }
    try await wait(for: "the refreshes") { lab.sent == 2 * most + 50 }
    gate.open()
    // The next calls make the cache refresh the other 50 entries.
    try await wait(for: "the others") {
      var isFresh = true
      for index in 0..<most + 50 {
        if try await lab.ask(.get, "/\(index)").text == "\(index + 1)" { isFresh = false }
      }
      return isFresh
    }
    #expect(lab.sent == 2 * (most + 50))
    await lab.client.shutdown()
  }

  /// The origin refuses the resource, or no longer has it. So the cache stops serving the stored response,
  /// although the new response has `no-store` and is not stored in its place.
  @Test("a refresh that gets 403, 404 or 410 ends the use of the stale response", arguments: [403, 404, 410])
  func goneResource(_ status: Int) async throws {
    let lab = try CacheLab { (request, number) throws(NetOptError) in
      number == 1
        ? CacheLab.response(
          request, 200, ["Cache-Control": "max-age=10, stale-while-revalidate=86400"], "old")
        : CacheLab.response(request, status, ["Cache-Control": "no-store"], "gone")
    }
    _ = try await lab.ask()
    lab.wait(11)
    #expect(try await lab.ask().text == "old")
    try await wait(for: "the refresh") { try await lab.ask().text == "gone" }
    await lab.client.shutdown()
  }

  @Test(
    "when two responses arrive in the other order than their requests, the cache serves neither of them later"
  )
  func answersOutOfOrder() async throws {
    let gate = Latch()
    let lab = try CacheLab { (request, number) throws(NetOptError) in
      if number == 1 { try? await gate.wait() }
      return CacheLab.response(request, 200, ["Cache-Control": "max-age=60"], "answer \(number)")
    }
    async let slow = lab.ask(.get, "/thing", ["Cache-Control": "max-age=30"])
    try await wait(for: "the first request") { lab.sent == 1 }
    lab.wait(1)
    #expect(try await lab.ask(.get, "/thing", ["Cache-Control": "no-cache"]).text == "answer 2")
    gate.open()
    #expect(try await slow.text == "answer 1")
    #expect(try await lab.ask().text == "answer 3")
    #expect(try await lab.ask().text == "answer 3")
    await lab.client.shutdown()
  }

  /// A call with `max-age=0` does not share its fetch with other calls. A change of the resource must keep
  /// the response of such a fetch out of the cache too.
  @Test("a response to a max-age=0 request is not stored when a PUT is answered before it")
  func putDuringUnsharedFetch() async throws {
    let gate = Latch()
    let lab = try CacheLab { (request, number) throws(NetOptError) in
      if request.method == .put { return CacheLab.response(request, 204) }
      if number == 1 { try? await gate.wait() }
      return CacheLab.response(request, 200, ["Cache-Control": "max-age=60"], "answer \(number)")
    }
    async let early = lab.ask(.get, "/thing", ["Cache-Control": "max-age=0"])
    try await wait(for: "the first request") { lab.sent == 1 }
    _ = try await lab.ask(.put)
    gate.open()
    #expect(try await early.text == "answer 1")
    #expect(try await lab.ask().text == "answer 3")
    await lab.client.shutdown()
  }

  /// The entry without credentials is in another partition than the request that changes the resource. The
  /// caller must see its change in both partitions.
  @Test("an unsafe request with credentials invalidates the entry stored without credentials")
  func changeWithCredentials() async throws {
    let lab = try CacheLab { (request, number) throws(NetOptError) in
      CacheLab.response(request, 200, ["Cache-Control": "max-age=60"], "answer \(number)")
    }
    #expect(try await lab.ask().text == "answer 1")
    _ = try await lab.ask(.post, "/thing", ["Authorization": "Bearer x"])
    #expect(try await lab.ask().text == "answer 3")
    await lab.client.shutdown()
  }

  @Test(
    "the cache does not store a response with no-store, or with max-age=0 and no validator",
    arguments: ["no-store", "max-age=60, no-store", "max-age=0"])
  func notStored(_ control: String) async throws {
    let lab = try CacheLab { (request, _) throws(NetOptError) in
      CacheLab.response(request, 200, ["Cache-Control": control], "secret")
    }
    #expect(try await lab.ask().response.cacheStatus.isStored == false)
    _ = try await lab.ask()
    #expect(lab.sent == 2)
    await lab.client.shutdown()
  }

  @Test("the cache stores neither Set-Cookie fields nor responses with Vary: *")
  func cookiesAndVary() async throws {
    let lab = try CacheLab { (request, _) throws(NetOptError) in
      let vary: HeaderFields = request.url.path == "/vary" ? ["Vary": "*"] : [:]
      return CacheLab.response(
        request, 200, ["Cache-Control": "max-age=60", "Set-Cookie": "a=b", "Set-Cookie": "c=d"] + vary)
    }
    for _ in 0..<2 { _ = try await lab.ask(.get, "/vary") }
    #expect(lab.sent == 2)
    _ = try await lab.ask()
    #expect(try await lab.ask().response.headers.values(of: "Set-Cookie") == [])
    #expect(lab.sent == 3)
    await lab.client.shutdown()
  }

  @Test("partitions, credentials and unverified requests have separate entries, and no status shows a secret")
  func separateUsers() async throws {
    let lab = try CacheLab { (request, number) throws(NetOptError) in
      CacheLab.response(request, 200, ["Cache-Control": "max-age=60"], "answer \(number)")
    }
    for (index, partition) in ["", "one", "two"].enumerated() {
      for _ in 0..<2 {
        let text = try await lab.ask { $0.options.cache = CacheOptions(.http, partition: partition) }.text
        #expect(text == "answer \(index + 1)")
      }
    }
    let credentials = ["Bearer top-secret-1", "Bearer top-secret-2"]
    for (index, credential) in credentials.enumerated() {
      for _ in 0..<2 {
        let (response, text) = try await lab.ask(.get, "/thing", ["Authorization": credential])
        #expect(text == "answer \(index + 4)")
        #expect(response.cacheStatus.text?.contains("secret") == false)
        #expect(!response.cacheStatus.rule.description.contains("secret"))
      }
    }
    // A response that was fetched without certificate verification is not served to a request that verifies.
    #expect(try await lab.ask { $0.options.verification = .none }.text == "answer 6")
    #expect(try await lab.ask().text == "answer 1")
    await lab.client.shutdown()
  }

  @Test("a successful unsafe request invalidates its URL and Location, a failed one neither")
  func unsafeRequest() async throws {
    let lab = try CacheLab { (request, number) throws(NetOptError) in
      switch request.method {
      case .get: CacheLab.response(request, 200, ["Cache-Control": "max-age=60"], "answer \(number)")
      case .delete: CacheLab.response(request, 500)
      default: CacheLab.response(request, 201, ["Location": "/made"])
      }
    }
    _ = try await lab.ask()
    _ = try await lab.ask(.get, "/made")
    _ = try await lab.ask(.delete)
    #expect(try await lab.ask().text == "answer 1")
    #expect(try await lab.ask(.get, "/made").text == "answer 2")
    _ = try await lab.ask(.post)
    #expect(try await lab.ask().text == "answer 5")
    #expect(try await lab.ask(.get, "/made").text == "answer 6")
    await lab.client.shutdown()
  }

  @Test("a response is not stored when a PUT is answered during its fetch")
  func putDuringFetch() async throws {
    let (asked, gate) = (Latch(), Latch())
    let lab = try CacheLab { (request, number) throws(NetOptError) in
      if number == 1 {
        asked.open()
        try? await gate.wait()
      }
      return CacheLab.response(request, 200, ["Cache-Control": "max-age=60"], "answer \(number)")
    }
    async let first = lab.ask()
    try await asked.wait()
    _ = try await lab.ask(.put)
    gate.open()
    #expect(try await first.text == "answer 1")
    #expect(try await lab.ask().text == "answer 3")
    await lab.client.shutdown()
  }

  @Test("the cache answers Range, If-None-Match and HEAD requests from a stored response")
  func storedParts() async throws {
    let lab = try CacheLab { (request, _) throws(NetOptError) in
      CacheLab.response(request, 200, ["Cache-Control": "max-age=60", "ETag": "\"a\""], "0123456789")
    }
    _ = try await lab.ask()
    let part = try await lab.ask(.get, "/thing", ["Range": "bytes=2-4"])
    #expect(part.response.status == 206)
    #expect(part.text == "234")
    #expect(part.response.headers["Content-Range"] == "bytes 2-4/10")
    #expect(part.response.headers["Content-Length"] == "3")
    let unchanged = try await lab.ask(.get, "/thing", ["If-None-Match": "\"a\""])
    #expect(unchanged.response.status == 304 && unchanged.text.isEmpty)
    let head = try await lab.ask(.head)
    #expect(head.response.status == 200 && head.text.isEmpty)
    #expect(lab.sent == 1)
    await lab.client.shutdown()
  }

  @Test("only-if-cached without a stored response gives 504 and sends no request")
  func onlyIfCached() async throws {
    let lab = try CacheLab { (request, _) throws(NetOptError) in CacheLab.response(request) }
    let (response, text) = try await lab.ask(.get, "/thing", ["Cache-Control": "only-if-cached"])
    #expect(response.status == 504)
    #expect(text.contains("RFC 9111, section 5.2.1.7"))
    // A response to HEAD has no content (RFC 9110, section 9.3.2).
    let (head, nothing) = try await lab.ask(.head, "/thing", ["Cache-Control": "only-if-cached"])
    #expect(head.status == 504)
    #expect(nothing.isEmpty)
    #expect(lab.sent == 0)
    await lab.client.shutdown()
  }

  @Test("the cache stores a streamed body only after the caller read it to its end")
  func streamedBody() async throws {
    let lab = try CacheLab { (request, number) throws(NetOptError) in
      let body = GatedBody(
        ["one ", "two ", "\(number)"], failure: request.url.path == "/cut" ? Self.gone : nil)
      return CacheLab.response(request, 200, ["Cache-Control": "max-age=60"], ResponseBody(body))
    }
    #expect(try await lab.ask().text == "one two 1")
    #expect(try await lab.ask().text == "one two 1")
    #expect(lab.sent == 1)
    // The cache stores neither a body that ends early nor a body that the caller does not read to its end.
    for _ in 0..<2 { await #expect(throws: NetOptError.self) { try await lab.ask(.get, "/cut") } }
    #expect(lab.sent == 3)
    for _ in 0..<2 { _ = try await lab.client.execute(try NetOptRequest(.get, "https://api.test/left")) }
    #expect(lab.sent == 5)
    await lab.client.shutdown()
  }

  @Test("a body above maxEntryBytes passes through the cache and is not stored", arguments: [false, true])
  func largeBody(_ streams: Bool) async throws {
    let chunks = [String](repeating: String(repeating: "x", count: 100), count: 5)
    let lab = try CacheLab({ $0.maxEntryBytes = 499 }) { (request, _) throws(NetOptError) in
      let body = streams ? ResponseBody(GatedBody(chunks)) : ResponseBody(Array(chunks.joined().utf8))
      return CacheLab.response(request, 200, ["Cache-Control": "max-age=60"], body)
    }
    for _ in 0..<2 { #expect(try await lab.ask().text.count == 500) }
    #expect(lab.sent == 2)
    await lab.client.shutdown()
  }

  @Test("the cache does not store a body that would exceed maxPendingBytes")
  func pendingBytes() async throws {
    let lab = try CacheLab({ $0.maxPendingBytes = 150 }) { (request, _) throws(NetOptError) in
      let body = ResponseBody(GatedBody([String(repeating: "x", count: 100), "y"]))
      return CacheLab.response(request, 200, ["Cache-Control": "max-age=60"], body)
    }
    let first = try await lab.client.execute(try NetOptRequest(.get, "https://api.test/1"))
    var reader = first.body.makeAsyncIterator()
    _ = try await reader.next()
    #expect(try await lab.ask(.get, "/2").text.count == 101)
    // A body that only passes through does not count towards the limit.
    #expect(lab.client.responseCache?.pendingBytes == 100)
    _ = try await reader.next()
    #expect(try await reader.next() == nil)
    #expect(try await lab.ask(.get, "/1").response.cacheStatus.outcome == .hit)
    #expect(try await lab.ask(.get, "/2").response.cacheStatus.outcome == .miss)
    await lab.client.shutdown()
  }

  @Test("the cache stores a decoded body with a weak ETag, without Content-Encoding and Content-Length")
  func decodedBody() async throws {
    let lab = try CacheLab { (request, _) throws(NetOptError) in
      let fields: HeaderFields = [
        "Cache-Control": "max-age=60", "Content-Encoding": "gzip", "Content-Length": "3", "ETag": "\"a\"",
      ]
      return CacheLab.response(request, 200, fields, "decoded")
    }
    _ = try await lab.ask()
    let (response, text) = try await lab.ask()
    #expect(text == "decoded")
    #expect(response.headers["Content-Encoding"] == nil)
    #expect(response.headers["Content-Length"] == nil)
    #expect(response.headers["ETag"] == "W/\"a\"")
    await lab.client.shutdown()
  }
}
