import NetOptCore
import NetOptLocking
import NetOptTestSupport
import TestTools
import Testing

@testable import NetOpt

/// Tests removals by the program with random calls that overlap. Each response has a generation: the number of
/// the response. After a removal, later calls must not get a generation from before the removal.
@Suite struct CacheRemovalModelTests {
  @Test("no call that begins after a removal gets a response from before it", arguments: UInt64(1)...24)
  func randomRemovals(seed: UInt64) async throws {
    let model = RemovalModel(seed: seed)
    let directory = seed % 2 == 0 ? try TemporaryDirectory.make("cache-removal") : nil
    // The client of the second round finds only what is on the disk.
    for round in 0..<2 {
      let lab = try CacheLab {
        $0.directory = directory
        $0.maxBytes = seed % 3 == 0 ? 32_000 : 1_000_000
      } _: { request, _ throws(NetOptError) in
        try await model.answer(request)
      }
      await withTaskGroup(of: Void.self) { group in
        for task in 0..<8 {
          group.addTask { await model.calls(60, of: lab, "seed \(seed), round \(round), task \(task)") }
        }
        group.addTask { await model.removals(25, from: lab.client) }
      }
      let cache = try #require(lab.client.responseCache)
      await lab.client.shutdown()
      #expect(cache.inFlightFetches.count == 0 && cache.inFlightFetches.waiting == 0)
    }
    let (faults, hits) = model.result
    #expect(faults.isEmpty, "\(faults.prefix(5).joined(separator: "\n"))")
    #expect(hits > 20, "hardly anything was served from the cache: \(hits)")
  }
}

/// The origin of `CacheRemovalModelTests`, and what calls may get after the removals.
private final class RemovalModel: Sendable {
  /// A resource in a mode of the cache.
  struct Subject: Hashable {
    let path: Int
    let mode: Int
  }

  private struct State {
    var random: SplitMix64
    /// The number of the last response.
    var generation = 0
    /// The generations that calls must not get any more: those up to this number.
    var floors: [Subject: Int] = [:]
    var faults: [String] = []
    var hits = 0
  }

  private let state: Locked<State>

  private static let paths = 4
  /// `http`, `api` without and with a name, and `versioned` without and with a name.
  private static let modes = 5

  init(seed: UInt64) { state = Locked(State(random: SplitMix64(seed: seed))) }

  var result: (faults: [String], hits: Int) { state.withLock { ($0.faults, $0.hits) } }

  private func draw(_ count: UInt64) -> Int { state.withLock { Int($0.random.below(count)) } }
  private func pause() async { for _ in 0..<draw(30) { await Task.yield() } }

  /// Targets with a version have another query. The version is not part of the key, so with the same query the
  /// modes 1 and 3 would have the same key, and would replace each other's responses.
  private static func target(_ path: Int, version: Int?) -> String {
    version.map { "/r\(path)?q=v&cachevers=\($0)" } ?? "/r\(path)?q=u"
  }

  private static func options(_ subject: Subject) -> CacheOptions {
    var versions = CacheOptions.Versions()
    switch subject.mode {
    case 0: return .http
    case 1: return .api(.init(timeToLive: .seconds(60), expired: .serveAndRefresh(within: .seconds(60))))
    case 2: return .api(.init(name: "api \(subject.path)", timeToLive: .seconds(60)))
    case 3: break
    default: versions.name = "api \(subject.path)"
    }
    versions.threshold = 3
    return CacheOptions(.versioned(versions))
  }

  // MARK: The origin

  /// Answers with the next generation, or confirms the generation of the caller. The tags never change, so an
  /// entry that should have been forgotten would be confirmed.
  func answer(_ request: NetOptRequest) async throws(NetOptError) -> NetOptResponse {
    await pause()
    if draw(15) == 0 { throw NetOptError(.receiveFailed, phase: .receive, "the connection ended") }
    let generation = state.withLock { state in
      state.generation += 1
      return state.generation
    }
    let lifetime = ["max-age=1000", "max-age=0", "max-age=0, stale-while-revalidate=60"][draw(3)]
    var fields: HeaderFields = ["ETag": "\"same\"", "Cache-Control": lifetime]
    if draw(2) == 0 { fields["Vary"] = "X-Variant" }
    await pause()
    if request.headers.contains(name: "If-None-Match"), draw(4) > 0 {
      return CacheLab.response(request, 304, fields)
    }
    let text = String(repeating: " ", count: 600) + "\(generation)"
    if draw(2) == 0 { return CacheLab.response(request, 200, fields, text) }
    return CacheLab.response(
      request, 200, fields, ResponseBody(SlowBody(Array(text.utf8)) { await self.pause() }))
  }

  // MARK: Calls and removals

  /// Performs random calls one after the other, and checks the generation of each response.
  func calls(_ count: Int, of lab: CacheLab, _ context: String) async {
    for step in 0..<count {
      let subject = Subject(path: draw(UInt64(Self.paths)), mode: draw(UInt64(Self.modes)))
      var options = Self.options(subject)
      options.partition = ["", "tenant"][draw(2)]
      var fields: HeaderFields = ["X-Variant": "\(draw(2))"]
      if draw(3) == 0 { fields["Authorization"] = "user" }
      if draw(20) == 0 { fields["Cache-Control"] = "no-cache" }
      let method: NetOptRequest.Method = draw(12) == 0 ? .head : .get
      let target = Self.target(subject.path, version: subject.mode > 2 ? draw(4) : nil)
      let floor = state.withLock { $0.floors[subject, default: 0] }
      let call = Task { [fields, options] in
        try await lab.ask(method, target, fields) { $0.options.cache = options }
      }
      if draw(20) == 0 {
        await pause()
        call.cancel()
      }
      guard let (response, text) = try? await call.value else { continue }
      state.withLock { state in
        if response.cacheStatus.isFromCache { state.hits += 1 }
        guard method == .get, response.status == 200 else { return }
        let generation = text.split(separator: " ").last.flatMap { Int($0) } ?? 0
        if generation <= floor {
          state.faults.append(
            "\(context), step \(step): \(subject) got \(generation), removed up to \(floor): \(response.cacheStatus)"
          )
        }
      }
    }
  }

  /// Performs random removals one after the other.
  func removals(_ count: Int, from client: NetOptClient) async {
    for _ in 0..<count {
      await pause()
      await pause()
      let path = draw(UInt64(Self.paths))
      let all = (0..<Self.paths).flatMap { path in (0..<Self.modes).map { Subject(path: path, mode: $0) } }
      let kind = draw(10)
      let generation = state.withLock { $0.generation }
      var concerned: [Subject] = []
      switch kind {
      case 0:
        await client.cache?.removeAll()
        concerned = all
      case 1, 2, 3:
        await client.cache?.removeAll(name: "api \(path)")
        concerned = [Subject(path: path, mode: 2), Subject(path: path, mode: 4)]
      default:
        let version = kind % 2 == 0 ? nil : 7
        let target = Self.target(path, version: version)
        guard let url = try? HTTPURL("https://api.test\(target)") else { continue }
        await client.cache?.remove(url)
        // Without a version, the URL is not one of `versioned` mode. With it, it is another URL in the others.
        concerned = (version == nil ? [0, 1, 2] : [3, 4]).map { Subject(path: path, mode: $0) }
      }
      state.withLock { state in
        for subject in concerned {
          state.floors[subject] = max(state.floors[subject, default: 0], generation)
        }
      }
    }
  }
}

/// A response body that arrives in two parts, with pauses.
private final class SlowBody: BodySource {
  /// The parts that have not arrived, the next one last.
  private let parts: Locked<[[UInt8]]>
  private let pause: @Sendable () async -> Void
  let timings = Timings()

  init(_ body: [UInt8], _ pause: @escaping @Sendable () async -> Void) {
    parts = Locked([Array(body.dropFirst(300)), Array(body.prefix(300))])
    self.pause = pause
  }

  func next() async throws(NetOptError) -> [UInt8]? {
    await pause()
    return parts.withLock { $0.popLast() }
  }
}
