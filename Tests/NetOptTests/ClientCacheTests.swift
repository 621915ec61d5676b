import Dispatch
import NetOptCore
import NetOptLocking
import NetOptTestSupport
import TestTools
import Testing

@testable import NetOpt
@testable import NetOptCaching

/// Tests `NetOptClient.cache`: what a removal forgets and what it keeps, and the statistics.
@Suite struct ClientCacheTests {
  /// Makes a client whose origin answers each request with the number of the request.
  private static func lab(
    directory: String? = nil, vary: String? = nil,
    _ change: (inout ClientConfiguration.Cache) -> Void = { _ in }
  ) throws -> CacheLab {
    try CacheLab {
      $0.directory = directory
      change(&$0)
    } _: { request, number throws(NetOptError) in
      var fields: HeaderFields = ["Cache-Control": "max-age=1000", "ETag": "\"same\""]
      if let vary { fields["Vary"] = vary }
      return CacheLab.response(request, 200, fields, "\(number)")
    }
  }

  private static func named(_ name: String?) -> CacheOptions {
    .api(.init(name: name, timeToLive: .seconds(1000)))
  }

  /// A call that stores a response of its own.
  private struct Call: Sendable {
    var target = "/a?x=1&y=2"
    var options = CacheOptions.http
    var fields: HeaderFields = [:]
    /// Whether `remove` of "/a?x=1&y=2" forgets the response.
    var isRemoved = true
  }

  /// One call for each way in which the key of a response may differ from another key of the same URL, and
  /// calls of other URLs.
  private static let calls: [Call] = {
    var versions = CacheOptions.Versions()
    let versioned = CacheOptions(.versioned(versions))
    versions.name = "name"
    let namedVersions = CacheOptions(.versioned(versions))
    versions.parameter = "y"
    versions.name = nil
    let other = CacheOptions(.versioned(versions))
    return [
      Call(), Call(fields: ["X-Variant": "b"]), Call(options: CacheOptions(.http, partition: "tenant")),
      Call(fields: ["Authorization": "user"]), Call(options: named(nil)), Call(options: named("name")),
      Call(options: CacheOptions(named("name").mode, partition: "tenant")), Call(options: other),
      Call(target: "/a?x=1", isRemoved: false), Call(target: "/a?x=1&y=2&", isRemoved: false),
      Call(target: "/A?x=1&y=2", isRemoved: false), Call(target: "/a", isRemoved: false),
      Call(target: "/b?x=1&y=2", options: named("other"), isRemoved: false),
      Call(target: "/a?x=1&y=3", options: named(nil), isRemoved: false),
      Call(target: "/a?x=1&y=3", options: named("name"), isRemoved: false),
      Call(target: "/a?x=9&cachevers=1", options: versioned, isRemoved: false),
      Call(target: "/a?x=9&cachevers=1", options: namedVersions, isRemoved: false),
    ]
  }()

  /// Performs all calls, and returns the indices of those that the origin answered.
  private static func missed(_ lab: CacheLab) async throws -> [Int] {
    var missed: [Int] = []
    for (index, call) in calls.enumerated() {
      let before = lab.sent
      _ = try await lab.ask(.get, call.target, call.fields) { $0.options.cache = call.options }
      if lab.sent > before { missed.append(index) }
    }
    return missed
  }

  @Test(
    "remove forgets all keys of a URL and keeps other URLs",
    arguments: [(false, false), (true, false), (true, true)])
  func removesURL(hasDisk: Bool, isRestarted: Bool) async throws {
    let directory = hasDisk ? try TemporaryDirectory.make("client-cache") : nil
    var lab = try Self.lab(directory: directory, vary: "X-Variant")
    #expect(try await Self.missed(lab) == Array(Self.calls.indices))
    #expect(try await Self.missed(lab) == [])
    if isRestarted {
      await lab.client.shutdown()
      lab = try Self.lab(directory: directory, vary: "X-Variant")
    }
    await lab.client.cache?.remove(try HTTPURL("https://api.test/a?x=1&y=2#part"))
    #expect(try await Self.missed(lab) == Self.calls.indices.filter { Self.calls[$0].isRemoved })
    await lab.client.shutdown()
  }

  @Test("removeAll(name:) forgets the responses of the name only", arguments: [false, true])
  func removesName(hasDisk: Bool) async throws {
    let directory = hasDisk ? try TemporaryDirectory.make("client-cache") : nil
    let lab = try Self.lab(directory: directory, vary: "X-Variant")
    _ = try await Self.missed(lab)
    // A part of a name, and the beginning of the keys without a name.
    for name in ["nam", "names", "", "GET https://api.test/a"] {
      await lab.client.cache?.removeAll(name: name)
    }
    #expect(try await Self.missed(lab) == [])
    await lab.client.cache?.removeAll(name: "name")
    let isNamed = { (call: Call) in
      switch call.options.mode {
      case .api(let declaration): declaration.name == "name"
      case .versioned(let versions): versions.name == "name"
      default: false
      }
    }
    #expect(try await Self.missed(lab) == Self.calls.indices.filter { isNamed(Self.calls[$0]) })
    await lab.client.cache?.removeAll()
    #expect(try await Self.missed(lab) == Array(Self.calls.indices))
    await lab.client.shutdown()
  }

  @Test("a posted form is forgotten with its URL")
  func posted() async throws {
    let lab = try Self.lab()
    for round in 1...2 {
      for form in ["a=1", "a=2"] {
        _ = try await lab.ask(.post, "/search?x=1", ["Content-Type": "application/x-www-form-urlencoded"]) {
          $0.body = .bytes(Array(form.utf8))
          $0.options.cache = Self.named("search")
        }
      }
      #expect(lab.sent == 2 * round)
      await lab.client.cache?.remove(try HTTPURL("https://api.test/search?x=1"))
    }
    await lab.client.shutdown()
  }

  @Test("a response in transfer during a removal answers its caller, is not stored and is not shared")
  func inTransfer() async throws {
    let gate = Latch()
    let lab = try CacheLab { request, number throws(NetOptError) in
      let fields: HeaderFields = ["Cache-Control": "max-age=1000"]
      if number > 1 { return CacheLab.response(request, 200, fields, "new") }
      return CacheLab.response(request, 200, fields, ResponseBody(GatedBody(["old"], gates: [gate])))
    }
    let first = try await lab.begin()
    await lab.client.cache?.remove(try HTTPURL("https://api.test/thing"))
    #expect(try await lab.ask().text == "new")
    gate.open()
    #expect(String(decoding: try await first.body.collect(upTo: 100), as: UTF8.self) == "old")
    #expect(try await lab.ask().text == "new")
    await lab.client.shutdown()
  }

  @Test(
    "a removal keeps the versions of another URL whose key has the same text",
    arguments: [(false, false), (true, false), (true, true)])
  func otherVersions(hasDisk: Bool, isRestarted: Bool) async throws {
    let directory = hasDisk ? try TemporaryDirectory.make("client-cache") : nil
    let versioned = CacheOptions(.versioned(.init()))
    func ask(_ lab: CacheLab) async throws -> Int {
      let before = lab.sent
      for version in 1...2 {
        for options in [versioned, CacheOptions(.versioned(.init()), partition: "tenant")] {
          _ = try await lab.ask(.get, "/a?x=1&cachevers=\(version)") { $0.options.cache = options }
        }
      }
      return lab.sent - before
    }
    var lab = try Self.lab(directory: directory)
    #expect(try await ask(lab) == 4)
    #expect(try await ask(lab) == 0)
    if isRestarted {
      await lab.client.shutdown()
      lab = try Self.lab(directory: directory)
    }
    await lab.client.cache?.remove(try HTTPURL("https://api.test/a?x=1"))
    #expect(try await ask(lab) == 0)
    await lab.client.cache?.remove(try HTTPURL("https://api.test/a?x=1&cachevers=7"))
    #expect(try await ask(lab) == 4)
    await lab.client.shutdown()
  }

  /// The disk hangs after the removal has begun, so the removal runs until the test releases the disk.
  ///
  /// - Parameter isAnsweredMeanwhile: whether the origin answers before the end of the removal.
  @Test(
    "a call that begins while a removal runs does not bring the removed entry back",
    arguments: [(NetOptRequest.Method.get, false), (.get, true), (.head, false), (.head, true)])
  func beginsDuringRemoval(method: NetOptRequest.Method, isAnsweredMeanwhile: Bool) async throws {
    let gate = Latch()
    let directory = try TemporaryDirectory.make("client-cache")
    let lab = try CacheLab {
      $0.directory = directory
    } _: { request, number throws(NetOptError) in
      if number == 2 { try? await gate.wait() }
      let fields: HeaderFields = ["Cache-Control": "max-age=0", "ETag": "\"same\""]
      if request.method == .get, request.headers.contains(name: "If-None-Match") {
        return CacheLab.response(request, 304, fields)
      }
      return CacheLab.response(request, 200, fields, request.method == .get ? "\(number)" : "")
    }
    #expect(try await lab.ask().text == "1")
    let cache = try #require(lab.client.responseCache)
    let disk = try #require(cache.store.disk)
    let key = try RequestKey.url(try HTTPURL("https://api.test/thing"), partition: "")
    let entry = try #require(cache.store.memory.entries(for: key).first)

    let (release, isHeld) = (DispatchSemaphore(value: 0), Latch())
    // Also when the test fails: otherwise the thread of the disk would never end.
    defer { release.signal() }
    let hold = Task {
      await disk.run {
        isHeld.open()
        release.wait()
      }
    }
    try await isHeld.wait()
    let removal = Task { await lab.client.cache?.remove(try HTTPURL("https://api.test/thing")) }
    try await wait(for: "the removal from memory") {
      cache.changes.isRemoving && cache.store.memory.entries(for: key).isEmpty
    }
    // A look-up on the disk may promote the entry until the disk has removed it.
    cache.store.memory.insert(entry)
    let call = Task { try await lab.ask(method).text }
    try await wait(for: "the request") { lab.sent == 2 }
    #expect(!lab.transport.requests[1].headers.contains(name: "If-None-Match"))
    if isAnsweredMeanwhile {
      gate.open()
      #expect(try await call.value == (method == .get ? "2" : ""))
    }
    release.signal()
    _ = await hold.value
    try await removal.value
    #expect(cache.store.memory.entries(for: key).isEmpty)
    gate.open()
    #expect(try await call.value == (method == .get ? "2" : ""))
    #expect(cache.store.memory.entries(for: key).isEmpty)
    #expect(await disk.entries(for: key).isEmpty)
    #expect(try await lab.ask().text == "3")
    await lab.client.shutdown()
  }

  @Test("a call that waits for a fetch does not ask the origin to confirm its response after a removal")
  func waitsDuringRemoval() async throws {
    let gate = Latch()
    let lab = try CacheLab { request, number throws(NetOptError) in
      let fields: HeaderFields = ["Cache-Control": "max-age=0", "ETag": "\"same\""]
      if request.headers.contains(name: "If-None-Match") { return CacheLab.response(request, 304, fields) }
      if number > 1 { return CacheLab.response(request, 200, fields, "new") }
      return CacheLab.response(request, 200, fields, ResponseBody(GatedBody(["old"], gates: [gate])))
    }
    let first = try await lab.begin()
    let second = Task { try await lab.ask().text }
    try await wait(for: "the call to join") { try lab.inFlightFetches.waiting == 1 }
    await lab.client.cache?.remove(try HTTPURL("https://api.test/thing"))
    gate.open()
    #expect(String(decoding: try await first.body.collect(upTo: 100), as: UTF8.self) == "old")
    #expect(try await second.value == "new")
    #expect(lab.transport.requests.allSatisfy { !$0.headers.contains(name: "If-None-Match") })
    await lab.client.shutdown()
  }

  @Test("very many removals during a fetch keep its response out, and the stored response of its URL in")
  func manyRemovals() async throws {
    let gate = Latch()
    let lab = try CacheLab { request, number throws(NetOptError) in
      let fields: HeaderFields = ["Cache-Control": "max-age=1000"]
      if number != 2 { return CacheLab.response(request, 200, fields, "\(number)") }
      return CacheLab.response(request, 200, fields, ResponseBody(GatedBody(["2"], gates: [gate])))
    }
    #expect(try await lab.ask().text == "1")
    let second = try await lab.begin(.get, "/thing", ["Cache-Control": "no-cache"])
    for number in 0..<1025 { await lab.client.cache?.removeAll(name: "\(number)") }
    gate.open()
    #expect(String(decoding: try await second.body.collect(upTo: 100), as: UTF8.self) == "2")
    #expect(try await lab.ask().text == "1")
    #expect(lab.sent == 2)
    await lab.client.shutdown()
  }

  @Test("a 304 that arrives after a removal is not stored")
  func lateConfirmation() async throws {
    let cache = Locked<ClientCache?>(nil)
    let lab = try CacheLab(
      configure: { _ in },
      { request, number throws(NetOptError) in
        let hasTag = request.headers.contains(name: "If-None-Match")
        let fields: HeaderFields = ["Cache-Control": "max-age=0", "ETag": "\"same\""]
        if number == 2 {
          // The removal comes while the origin decides.
          if let cache = cache.withLock(\.self), let url = try? HTTPURL("https://api.test/thing") {
            await cache.remove(url)
          }
        }
        return hasTag
          ? CacheLab.response(request, 304, fields) : CacheLab.response(request, 200, fields, "\(number)")
      })
    cache.withLock { $0 = lab.client.cache }
    #expect(try await lab.ask().text == "1")
    #expect(try await lab.ask().text == "1")
    #expect(try await lab.ask().text == "3")
    cache.withLock { $0 = nil }
    await lab.client.shutdown()
  }

  @Test("stats count entries, outcomes, insertions and evictions", arguments: [false, true])
  func stats(hasDisk: Bool) async throws {
    let directory = hasDisk ? try TemporaryDirectory.make("client-cache") : nil
    let lab = try Self.lab(directory: directory, vary: "X-Variant") { $0.maxBytes = 64_000 }
    let cache = try #require(lab.client.cache)
    for variant in ["a", "b", "b"] { _ = try await lab.ask(.get, "/a", ["X-Variant": "\(variant)"]) }
    lab.wait(2000)
    _ = try await lab.ask(.get, "/a", ["X-Variant": "a", "Cache-Control": "max-stale"])
    // `stats` waits for at most 1 s, which may be too short for the queued writes.
    await lab.client.responseCache?.store.disk?.flush()
    var stats = await cache.stats
    #expect((stats.memoryEntries, stats.memoryMaxBytes, stats.memoryEvicted) == (2, 64_000, 0))
    #expect(stats.memoryBytes > 500 && stats.memoryBytes < 64_000)
    #expect((stats.misses, stats.hits, stats.stale, stats.revalidated) == (2, 1, 1, 0))
    #expect(stats.insertions == 2)
    #expect((stats.diskEntries == nil) == !hasDisk && (stats.diskMaxBytes == nil) == !hasDisk)
    if hasDisk {
      #expect(stats.diskEntries == 2 && stats.diskEvictedForRoom == 0 && stats.diskEvictedForAge == 0)
      #expect(try #require(stats.diskBytes) > 500)
    }
    for number in 0..<200 { _ = try await lab.ask(.get, "/b\(number)") }
    await lab.client.responseCache?.store.disk?.flush()
    stats = await cache.stats
    #expect(stats.insertions == 202)
    #expect(stats.memoryEntries + stats.memoryEvicted == 202 && stats.memoryEvicted > 0, "\(stats)")
    #expect(stats.diskEntries == (hasDisk ? 202 : nil))
    await cache.removeAll()
    await lab.client.responseCache?.store.disk?.flush()
    let empty = await cache.stats
    #expect(empty.memoryEntries == 0 && empty.diskEntries == (hasDisk ? 0 : nil))
    #expect(empty.memoryEvicted == stats.memoryEvicted && empty.insertions == 202)
    await lab.client.shutdown()
  }

  @Test("a client without a cache has no handle, and a client that is shut down may still remove")
  func unusual() async throws {
    let plain = try CacheLab(
      configure: { $0.cache = nil },
      { request, _ throws(NetOptError) in
        CacheLab.response(request)
      })
    #expect(plain.client.cache == nil)
    let lab = try Self.lab(directory: try TemporaryDirectory.make("client-cache"))
    _ = try await lab.ask()
    await lab.client.shutdown()
    await lab.client.cache?.removeAll()
    #expect(await lab.client.cache?.stats.memoryEntries == 0)
    #expect(await lab.client.cache?.stats.diskEntries == nil)
    await plain.client.shutdown()
  }

  @Test("an entry that another client has stored on the disk is removed, and not one of its other entries")
  func otherClient() async throws {
    let directory = try TemporaryDirectory.make("client-cache")
    let one = try Self.lab(directory: directory)
    for target in ["/a", "/b"] { _ = try await one.ask(.get, target) }
    // The removal runs on the thread of the disk, after the two writes.
    await one.client.responseCache?.store.disk?.flush()
    let other = try Self.lab(directory: directory)
    await other.client.cache?.remove(try HTTPURL("https://api.test/a"))
    #expect(try await other.ask(.get, "/b").response.cacheStatus.outcome == .hit)
    #expect(try await other.ask(.get, "/a").response.cacheStatus.outcome == .miss)
    for lab in [one, other] { await lab.client.shutdown() }
  }
}
