import NetOptCaching
import NetOptCore
import NetOptLocking
import NetOptTestSupport
import TestTools
import Testing

@testable import NetOpt

/// Tests that the cache does not store or serve a response after something newer has overtaken it: an unsafe
/// request to the resource, or the response to a request that was sent later.
@Suite struct OvertakenAnswersTests {
  /// An origin that counts the changes of each resource. The count is the body of each response.
  private final class Origin: Sendable {
    /// The number of changes so far, by target.
    private let versions = Locked<[String: Int]>([:])
    /// The highest count that `hasAnswered` has noted, by target.
    private let answered = Locked<[String: Int]>([:])
    private let random: Locked<SplitMix64>

    init(seed: UInt64) { random = Locked(SplitMix64(seed: seed)) }

    /// A random number from 0 to `count` - 1.
    func draw(_ count: Int) -> Int {
      random.withLock { random in Int(random.next() % UInt64(count)) }
    }

    /// The lowest count that is a correct response to a call that begins now.
    func floor(of target: String) -> Int { answered.withLock { $0[target, default: 0] } }

    /// Notes that a caller has got this count. Calls that begin later must not get a lower one.
    func hasAnswered(_ target: String, _ version: Int) {
      answered.withLock { $0[target] = max($0[target, default: 0], version) }
    }

    /// Answers a request with the count of its target.
    ///
    /// - Parameter changes: whether the request changes the resource. With `nil`, every request except GET
    ///   changes the resource, and requests may overtake each other on the way to the origin.
    func answer(_ request: NetOptRequest, changes: Bool? = nil) async -> NetOptResponse {
      let target = request.url.target
      if changes == nil { await pause() }
      let version = versions.withLock { versions in
        if changes ?? (request.method != .get) { versions[target, default: 0] += 1 }
        return versions[target, default: 0]
      }
      await pause()
      var fields: HeaderFields = ["Cache-Control": "max-age=600"]
      if request.method == .post { fields["Content-Location"] = target }
      return CacheLab.response(request, 200, fields, "\(version)")
    }

    /// Lets other tasks run, up to 19 times.
    private func pause() async { for _ in 0..<draw(20) { await Task.yield() } }
  }

  @Test(
    "a call gets nothing older than a change that was answered before the call began",
    arguments: [false, true])
  func nothingOlder(onDisk: Bool) async throws {
    let origin = Origin(seed: 11)
    let directory = try TemporaryDirectory.make("overtaken")
    let lab = try CacheLab { cache in
      if onDisk { cache.directory = directory }
    } _: { request, _ in
      await origin.answer(request)
    }
    for round in 0..<(onDisk ? 60 : 200) {
      let target = "/thing?\(round)"
      try await withThrowingTaskGroup(of: Void.self) { group in
        for _ in 0..<8 {
          group.addTask {
            for _ in 0..<12 {
              let method: NetOptRequest.Method = [.get, .get, .get, .get, .post, .delete][origin.draw(6)]
              let floor = origin.floor(of: target)
              let (response, text) = try await lab.ask(method, target)
              let version = try #require(Int(text))
              #expect(version >= floor, "\(method) \(target): \(response.cacheStatus.text)")
              if method != .get { origin.hasAnswered(target, version) }
            }
          }
        }
        try await group.waitForAll()
      }
    }
    await lab.client.shutdown()
  }

  @Test(
    "a call gets nothing older than a response before it, whether or not that was stored",
    arguments: [0, 1, 2])
  func nothingOlderThanResponses(variants: Int) async throws {
    // One thread runs all calls. So requests reach the origin in the order in which they are sent. Otherwise
    // the test could not tell which response is newer.
    let thread = DedicatedThread()
    let origin = Origin(seed: 12)
    let lab = try CacheLab { request, _ in
      var response = await origin.answer(request, changes: origin.draw(2) == 0)
      // With 0 variants, the responses have no `Vary`.
      if variants > 0 {
        response = CacheLab.response(
          request, 200, ["Cache-Control": "max-age=600", "Vary": "X-Variant"], response.body)
      }
      guard let body = response.body.whole else { return response }
      // Half of the responses must not be stored, and some of these say that the resource is gone.
      switch origin.draw(4) {
      case 0:
        return CacheLab.response(
          request, 410, ["Cache-Control": "no-store"], String(decoding: body, as: UTF8.self))
      case 1:
        return CacheLab.response(
          request, 200, ["Cache-Control": "no-store"], String(decoding: body, as: UTF8.self))
      default: return response
      }
    }
    for round in 0..<300 {
      let target = "/thing?\(round)"
      try await withThrowingTaskGroup(of: Void.self) { group in
        for _ in 0..<6 {
          group.addTask(executorPreference: thread) {
            for _ in 0..<12 {
              var fields: HeaderFields = origin.draw(2) == 0 ? [:] : ["Cache-Control": "no-cache"]
              let variant = variants > 0 ? "\(origin.draw(variants))" : ""
              if variants > 0 { fields["X-Variant"] = variant }
              let floor = origin.floor(of: target + variant)
              let (response, text) = try await lab.ask(.get, target, fields)
              let version = try #require(Int(text))
              #expect(version >= floor, "\(target) \(fields.count): \(response.cacheStatus.text ?? "")")
              origin.hasAnswered(target + variant, version)
            }
          }
        }
        try await group.waitForAll()
      }
    }
    await lab.client.shutdown()
  }

  @Test(
    "the cache does not store an older response that arrives after a newer no-store response",
    arguments: [
      (410, "no-store"), (200, "no-store"), (403, "no-cache, no-store"), (404, "private, no-store"),
    ])
  func lateOlderResponse(status: Int, control: String) async throws {
    // Holds the first response back until the later one has been received.
    let isLater = Latch()
    let lab = try CacheLab { request, number throws(NetOptError) in
      switch number {
      case 1:
        try? await isLater.wait()
        return CacheLab.response(request, 200, ["Cache-Control": "max-age=600"], "old")
      case 2: return CacheLab.response(request, status, ["Cache-Control": control], "later")
      default: return CacheLab.response(request, 200, ["Cache-Control": "max-age=600"], "new")
      }
    }
    async let older = lab.ask(.get, "/thing")
    try await wait(for: "the older request") { lab.sent == 1 }
    #expect(try await lab.ask(.get, "/thing", ["Cache-Control": "no-cache"]).text == "later")
    isLater.open()
    #expect(try await older.text == "old")
    #expect(try await lab.ask(.get, "/thing").text == "new")
    await lab.client.shutdown()
  }

  @Test(
    "a 410 for a request that bypasses the cache removes the stored response",
    arguments: [["Cache-Control": "no-cache"], ["Pragma": "no-cache"], ["Range": "bytes=900-"]]
      as [HeaderFields])
  func goneResource(fields: HeaderFields) async throws {
    for mode in [CacheOptions.http, .api(.init(name: "thing", timeToLive: .seconds(600)))] {
      let lab = try CacheLab { request, number throws(NetOptError) in
        number == 2
          ? CacheLab.response(request, 410, ["Cache-Control": "no-store"], "gone")
          : CacheLab.response(request, 200, ["Cache-Control": "max-age=600"], "answer \(number)")
      }
      func ask(_ fields: HeaderFields = [:]) async throws -> String {
        var request = try NetOptRequest(.get, "https://a.test/thing", headers: fields)
        request.options.cache = mode
        return String(decoding: try await lab.client.execute(request).body.collect(upTo: 100), as: UTF8.self)
      }
      #expect(try await ask() == "answer 1")
      #expect(try await ask() == "answer 1")
      #expect(try await ask(fields) == "gone")
      #expect(try await ask() == "answer 3", "\(mode) \(fields)")
      await lab.client.shutdown()
    }
  }

  @Test(
    "a response that is not stored and has no Vary removes all stored variants",
    arguments: [(410, "no-store"), (200, "no-store"), (302, "no-store"), (404, "private, no-store")])
  func goneForAllVariants(status: Int, control: String) async throws {
    let lab = try CacheLab { request, number throws(NetOptError) in
      number == 3
        ? CacheLab.response(request, status, ["Cache-Control": control], "gone")
        : CacheLab.response(
          request, 200, ["Cache-Control": "max-age=600", "Vary": "X-Variant"], "answer \(number)")
    }
    for variant in 1...2 {
      #expect(try await lab.ask(.get, "/thing", ["X-Variant": "\(variant)"]).text == "answer \(variant)")
    }
    #expect(
      try await lab.ask(.get, "/thing", ["X-Variant": "1", "Cache-Control": "no-cache"]).text == "gone")
    #expect(try await lab.ask(.get, "/thing", ["X-Variant": "2"]).text == "answer 4")
    await lab.client.shutdown()
  }

  @Test(
    "a followed redirect replaces the stored response before the redirect's body arrives",
    arguments: [302, 307])
  func redirectWithLateBody(status: Int) async throws {
    // Holds the body of the redirect response back.
    let gate = Latch()
    let lab = try CacheLab { request, number throws(NetOptError) in
      if request.url.target == "/new" {
        return CacheLab.response(request, 200, ["Cache-Control": "no-store"], "new")
      }
      if number == 1 { return CacheLab.response(request, 200, ["Cache-Control": "max-age=600"], "old") }
      return CacheLab.response(
        request, status, ["Cache-Control": "max-age=600", "Location": "/new"],
        ResponseBody(GatedBody(["elsewhere"], gates: [gate])))
    }
    #expect(try await lab.ask().text == "old")
    #expect(try await lab.ask(.get, "/thing", ["Cache-Control": "no-cache"]).text == "new")
    #expect(try await lab.ask().text == "new")
    gate.open()
    await lab.client.shutdown()
  }

  @Test(
    "a 206, 304 or 416 with another ETag removes the stored response, one with its ETag does not",
    arguments: [206, 304, 416], [true, false])
  func partOfAnother(status: Int, isOfAnother: Bool) async throws {
    let lab = try CacheLab { request, number throws(NetOptError) in
      // The second request comes from a caller that validates a response or asks for a part of it.
      let tag = number == 1 || !isOfAnother ? "\"1\"" : "\"2\""
      let fields: HeaderFields = ["ETag": tag, "Cache-Control": "max-age=600"]
      guard number == 2 else { return CacheLab.response(request, 200, fields, "answer \(number)") }
      var part = fields
      if status == 206 { part["Content-Range"] = "bytes 90-93/100" }
      if status == 416 { part["Content-Range"] = "bytes */100" }
      return CacheLab.response(request, status, part, status == 206 ? "part" : "")
    }
    #expect(try await lab.ask().text == "answer 1")
    // The caller's own fields, which go to the origin unchanged.
    var own: HeaderFields = ["Cache-Control": "no-cache"]
    if status == 304 { own["If-None-Match"] = "\"2\", \"1\"" } else { own["Range"] = "bytes=90-93" }
    #expect(try await lab.ask(.get, "/thing", own).response.status == status)
    #expect(try await lab.ask().text == (isOfAnother ? "answer 3" : "answer 1"))
    await lab.client.shutdown()
  }

  /// What happens to the stored response while its revalidation is in flight: a PUT or DELETE invalidates it,
  /// a GET with `no-cache` brings a new response (`reload`), or such a GET brings a 410 (`gone`).
  enum Change: String, CaseIterable { case put, delete, reload, gone }

  /// How the revalidation in flight fails: with a 503 response (`trouble`), or because the connection ends
  /// (`lost`).
  enum Failure: String, CaseIterable { case trouble, lost }

  @Test(
    "no waiting call gets a response that was replaced or invalidated while its revalidation failed",
    arguments: Change.allCases, Failure.allCases)
  func replacedDuringFailure(change: Change, failure: Failure) async throws {
    // Holds the revalidation back until the stored response has been replaced or invalidated.
    let mayFail = Latch()
    let lab = try CacheLab { request, number throws(NetOptError) in
      let fields: HeaderFields = ["ETag": "\"\(number)\"", "Cache-Control": "max-age=0, stale-if-error=600"]
      switch number {
      case 1: return CacheLab.response(request, 200, fields, "old")
      case 2:
        try? await mayFail.wait()
        if failure == .lost { throw NetOptError(.receiveFailed, phase: .receive, "the connection ended") }
        return CacheLab.response(request, 503, ["Cache-Control": "no-store"], "trouble")
      default:
        if change == .gone { return CacheLab.response(request, 410, ["Cache-Control": "no-store"], "gone") }
        return CacheLab.response(request, 200, fields, "new")
      }
    }
    #expect(try await lab.ask().text == "old")
    let waiters = (0..<3).map { _ in Task { try await lab.ask().text } }
    try await wait(for: "the validation, and those who wait for it") {
      let waiting = try lab.inFlightFetches.waiting
      return lab.sent == 2 && waiting == 2
    }
    switch change {
    case .put: _ = try await lab.ask(.put)
    case .delete: _ = try await lab.ask(.delete)
    case .reload, .gone: _ = try await lab.ask(.get, "/thing", ["Cache-Control": "no-cache"])
    }
    mayFail.open()
    for waiter in waiters {
      let text = try? await waiter.value
      #expect(text != "old")
      if change == .reload { #expect(text == "new") }
    }
    await lab.client.shutdown()
  }

  @Test("the cache does not store the response to a POST that a DELETE overtakes")
  func overtakenChange() async throws {
    // Open when the DELETE has been answered. Holds the response to the POST back until then.
    let isDeleted = Latch()
    let lab = try CacheLab { request, _ throws(NetOptError) in
      guard request.method != .delete else { return CacheLab.response(request, 204) }
      if request.method == .post { try? await isDeleted.wait() }
      return CacheLab.response(
        request, isDeleted.opened && request.method == .get ? 404 : 200,
        ["Cache-Control": "max-age=600", "Content-Location": "/thing"], "thing")
    }
    async let change = lab.ask(.post)
    try await wait(for: "the POST") { lab.sent == 1 }
    _ = try await lab.ask(.delete)
    isDeleted.open()
    _ = try await change
    #expect(try await lab.ask().response.status == 404)
    await lab.client.shutdown()
  }

  @Test(
    "an unsafe request with a CSRF token invalidates the entries of its user",
    arguments: ["X-CSRF-Token", "X-XSRF-TOKEN", "RequestVerification-Csrf", "Jenkins-Crumb"])
  func forgeryToken(name: String) async throws {
    // The number of POST requests so far.
    let version = Locked(0)
    let lab = try CacheLab { request, _ throws(NetOptError) in
      if request.method == .post { version.withLock { $0 += 1 } }
      return CacheLab.response(request, 200, ["Cache-Control": "max-age=600"], "\(version.withLock(\.self))")
    }
    let (user, other): (HeaderFields, HeaderFields) = (["Cookie": "a"], ["Cookie": "b"])
    for (number, fields) in [user, user + [name: "t"]].enumerated() {
      #expect(try await lab.ask(.get, "/thing", fields).text == "\(number)")
      #expect(try await lab.ask(.post, "/thing", user + [name: "u\(number)"]).text == "\(number + 1)")
      #expect(try await lab.ask(.get, "/thing", fields).text == "\(number + 1)")
    }
    // In a request without other credentials, the token itself counts as the credential, so it tells users
    // apart.
    #expect(try await lab.ask(.get, "/thing", other).text == "2")
    _ = try await lab.ask(.post, "/thing", user)
    #expect(try await lab.ask(.get, "/thing", [name: "t"]).text == "3")
    _ = try await lab.ask(.post, "/thing", user)
    #expect(try await lab.ask(.get, "/thing", [name: "u"]).text == "4")
    #expect(try await lab.ask(.get, "/thing", [name: "t"]).text == "3")
    await lab.client.shutdown()
  }
}
