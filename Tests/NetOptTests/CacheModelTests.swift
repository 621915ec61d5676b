import Foundation
import NetOptCore
import NetOptLocking
import NetOptTestSupport
import TestTools
import Testing

@testable import NetOpt

/// Tests the cache with random calls against a model of the origin (`CacheModelOrigin`). The calls overlap.
/// They have several users and variants, and some change resources or fail. The client is restarted, and the
/// clock is set forward and back. Half of the seeds also use the disk.
@Suite struct CacheModelTests {
  /// The seeds of the test: the range in `CACHE_MODEL_SEEDS=FROM-TO`, by default 1 to 12.
  static let seeds: ClosedRange<UInt64> = {
    let parts = (ProcessInfo.processInfo.environment["CACHE_MODEL_SEEDS"] ?? "1-12").split(separator: "-")
      .compactMap { UInt64($0) }
    return parts[0]...parts[parts.count - 1]
  }()

  @Test(
    "a call gets its own, whole and fresh response, not older than any its caller has seen",
    arguments: seeds)
  func everyResponse(seed: UInt64) async throws {
    let origin = CacheModelOrigin(seed: seed)
    let directory = seed % 2 == 0 ? try TemporaryDirectory.make("cache-model") : nil
    // All calls run on one thread, so requests arrive at the origin in the order in which they are sent.
    let thread = DedicatedThread()
    var hits = 0
    for round in 0..<6 {
      let lab = try CacheLab {
        $0.directory = directory
        $0.maxBytes = [64_000, 1_000_000][origin.draw(2)]
        $0.maxEntryBytes = 8000
        $0.now = { origin.now }
      } connecting: {
        if origin.draw(3) == 0 { await origin.pause() }
      } _: { request, _ throws(NetOptError) in
        try await origin.answer(request)
      }
      let counts = await withTaskGroup(of: Int.self) { group in
        for task in 0..<8 {
          group.addTask(executorPreference: thread) {
            await Self.calls(40, of: lab, on: thread, origin, "seed \(seed), round \(round), task \(task)")
          }
        }
        return await group.reduce(0, +)
      }
      hits += counts
      let cache = try #require(lab.client.responseCache)
      await lab.client.shutdown()
      let fetches = cache.inFlightFetches
      #expect(fetches.count == 0 && fetches.waiting == 0 && cache.pendingBytes == 0)
      origin.moveClock(by: Int64(origin.pick([0, 3, 100, -50, -2000])))
    }
    #expect(origin.faults.isEmpty, "\(origin.faults.prefix(5).joined(separator: "\n"))")
    #expect(hits > 20, "hardly anything was served from the cache: \(hits)")
  }

  /// Performs random calls one after the other, and lets the origin judge each response.
  ///
  /// - Parameter context: names seed, round and task in the texts of faults.
  /// - Returns: the number of calls that the cache answered.
  private static func calls(
    _ count: Int, of lab: CacheLab, on thread: DedicatedThread, _ origin: CacheModelOrigin, _ context: String
  ) async -> Int {
    var hits = 0
    for step in 0..<count {
      if origin.draw(30) == 0 {
        origin.moveClock(
          by: Int64(origin.pick(origin.setsClockBack ? [1, 7, 20, -1, -8, -100] : [1, 2, 3, 7, 20])))
      }
      let target = origin.pick(CacheModelOrigin.targets)
      let method: NetOptRequest.Method = origin.pick([
        .get, .get, .get, .get, .get, .get, .head, .post, .delete,
      ])
      var fields: HeaderFields = [
        "X-Variant": origin.pick(CacheModelOrigin.variants), "X-Call": "\(context) \(step)",
      ]
      if origin.draw(3) == 0 { fields["Authorization"] = "u\(origin.draw(2))" }
      switch origin.draw(14) {
      case 0, 1: fields["Cache-Control"] = "no-cache"
      case 2: fields["Cache-Control"] = "max-age=4"
      case 3: fields["Cache-Control"] = "max-stale=100"
      case 4: fields["Cache-Control"] = "only-if-cached"
      case 5: fields["Range"] = "bytes=2-5"
      case 6: fields["Cache-Control"] = "no-store"
      case 7: fields["If-None-Match"] = "\"v0..\(origin.draw(20))\""
      default: break
      }
      guard let request = try? NetOptRequest(method, "https://api.test\(target)", headers: fields) else {
        continue
      }
      let floor = origin.floor(of: CacheModelOrigin.subject(of: request))
      let settings = origin.settings
      let attempts = 1 + origin.draw(2)
      let isBodyDropped = origin.draw(3) == 0
      let isCancelled = origin.draw(25) == 0
      let call = Task(executorPreference: thread) {
        // Some reloads drop their body unread. The cache never lets another call wait for the response to a
        // reload, so no other call is affected.
        if fields["Cache-Control"] == "no-cache", isBodyDropped {
          let head = try await lab.begin(method, target, fields) { $0.options.maxAttempts = attempts }
          return (response: head.withoutBody, text: nil as String?)
        }
        let answer = try await lab.ask(method, target, fields) { $0.options.maxAttempts = attempts }
        return (response: answer.response, text: answer.text)
      }
      if isCancelled {
        await origin.pause()
        call.cancel()
      }
      do {
        let (response, text) = try await call.value
        if response.cacheStatus.isFromCache { hits += 1 }
        origin.judge(
          response, text, to: request, floor: floor, settings: settings, "\(context), step \(step):")
      } catch let error as NetOptError {
        let expected: Set<NetOptError.Code> =
          isCancelled ? [.cancelled, .connectFailed, .receiveFailed] : [.connectFailed, .receiveFailed]
        if !expected.contains(error.code) { origin.report("\(context), step \(step): \(error)") }
      } catch {
        origin.report("\(context), step \(step): \(error)")
      }
    }
    return hits
  }
}

extension NetOptResponse {
  /// The response with an empty body. The original body is dropped.
  fileprivate var withoutBody: NetOptResponse {
    var response = self
    response.body = ResponseBody([])
    return response
  }
}
