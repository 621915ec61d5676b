import NetOptCore
import NetOptLocking
import NetOptTestSupport
import TestTools
import Testing

@testable import NetOpt

/// Tests that the cache serves no superseded response. A response supersedes those that the origin sent
/// earlier for the same resource and language. `latest` checks this for responses in memory and on disk,
/// after restarts of the client, and when the clock of the cache is set forward or back. The other tests
/// check single cases in which the cache must not answer with a wrong response.
@Suite struct SupersededAnswersTests {
  /// An origin, and the clock of the cache. Each response of the origin for a language supersedes its
  /// previous response for this language.
  private final class World: Sendable {
    /// The facts about a response that decide how long the cache may serve it.
    struct Answer {
      /// The time of `State.now` when the origin responded.
      let received: Int64
      /// How long the response is fresh, in milliseconds; 0 if the cache must not store the response.
      let lifetime: Int64
    }

    struct State {
      var random: SplitMix64
      /// The clock of the cache, in milliseconds since 1970.
      var now: Int64 = 1_795_219_200_000
      /// The number of responses so far for each language, which is also the version of the last response.
      var versions: [String: Int] = [:]
      /// The responses, by the beginning of their body: the language and the version.
      var answers: [String: Answer] = [:]
    }

    let state: Locked<State>

    init(seed: UInt64) { state = Locked(State(random: SplitMix64(seed: seed))) }

    var now: Int64 { state.withLock(\.now) }

    /// Draws a number from 0 to `count` - 1.
    func draw(_ count: UInt64) -> Int { state.withLock { Int($0.random.below(count)) } }

    /// Responds to a request with the next version for its language.
    func answer(_ request: NetOptRequest) -> NetOptResponse {
      let language = request.headers["Accept-Language"] ?? ""
      return state.withLock { state in
        let version = state.versions[language, default: 0] + 1
        state.versions[language] = version
        let text = "\(language) \(version) "
        // Some lifetimes are long enough for the disk. Others are too short for the disk, which keeps only
        // responses that stay fresh for at least 10 s. Some responses must not be stored at all.
        let kind = state.random.below(6)
        let lifetime: Int64 = kind < 3 ? 3600 : 5
        state.answers[text] = Answer(received: state.now, lifetime: kind < 4 ? lifetime * 1000 : 0)
        // Some bodies are larger than a tenth of `maxBytes`, which is the most that memory keeps for one URL.
        let body = text + String(repeating: "x", count: Int(state.random.below(9000)))
        let control = kind < 4 ? "max-age=\(lifetime)" : "no-store"
        return CacheLab.response(
          request, kind == 5 ? 410 : 200, ["Cache-Control": control, "Vary": "Accept-Language"], body)
      }
    }
  }

  @Test("a stored redirect leads to the URL of its first response, whatever encoding its Location has")
  func storedRedirect() async throws {
    let lab = try CacheLab { request, number throws(NetOptError) in
      guard request.url.target == "/thing" else {
        return CacheLab.response(request, 200, ["Cache-Control": "no-store"], request.url.target)
      }
      // 0xe9 is the letter é in Latin-1, and not valid UTF-8.
      let lines = Array("Cache-Control: max-age=600\r\nLocation: /caf".utf8) + [0xe9, 0x0d, 0x0a]
      return NetOptResponse(
        url: request.url, head: ResponseHead(status: 301, version: .http1_1, lines: lines),
        body: ResponseBody([]),
        route: RouteReport(
          plan: RoutePlan(
            origin: request.url.origin, policy: .fastest, legs: [RoutePlan.Leg(.dns, source: .dns)]), legs: []
        ))
    }
    for _ in 1...3 { #expect(try await lab.ask().text == "/caf%E9") }
    #expect(lab.transport.requests.count { $0.url.target == "/thing" } == 1)
    await lab.client.shutdown()
  }

  @Test("a date with a two-digit year is not read as a date in the next hundred years")
  func dateOfTwoDigits() async throws {
    let lab = try CacheLab { request, _ throws(NetOptError) in
      CacheLab.response(
        request, 200,
        ["Cache-Control": "max-age=600", "Last-Modified": "Fri, 20 Nov 2026 08:00:00 GMT"], "thing")
    }
    _ = try await lab.ask()
    let old = try await lab.ask(.get, "/thing", ["If-Modified-Since": "Sunday, 06-Nov-94 08:49:37 GMT"])
    #expect(old.response.status == 200 && old.text == "thing")
    let new = try await lab.ask(.get, "/thing", ["If-Modified-Since": "Saturday, 21-Nov-26 08:49:37 GMT"])
    #expect(new.response.status == 304)
    await lab.client.shutdown()
  }

  @Test(
    "a malformed no-store or no-cache directive still prevents a hit",
    arguments: [
      "no-store; max-age=600", "no-store max-age=600", "no-cache; max-age=600", "NO-STORE;max-age=600",
    ])
  func brokenDirectives(control: String) async throws {
    let lab = try CacheLab { request, number throws(NetOptError) in
      CacheLab.response(
        request, 200, ["Cache-Control": control, "Last-Modified": "Fri, 20 Nov 1998 08:00:00 GMT"],
        "\(number)")
    }
    for number in 1...2 { #expect(try await lab.ask().text == "\(number)") }
    await lab.client.shutdown()
  }

  @Test(
    "a call gets the latest response of its language, and no hit after its lifetime",
    arguments: UInt64(1)...8)
  func latest(seed: UInt64) async throws {
    // The seed determines the steps, the languages, the responses and their sizes.
    let world = World(seed: seed)
    let directory = try TemporaryDirectory.make("superseded")
    // Makes a client with an empty memory. All these clients share one directory and one clock.
    func lab() throws -> CacheLab {
      try CacheLab {
        $0.directory = directory
        $0.maxBytes = 64_000
        $0.now = { world.now }
      } _: { request, _ in
        world.answer(request)
      }
    }
    var client = try lab()
    var hits = 0
    for step in 0..<400 {
      switch world.draw(20) {
      // Restarts the client: the new client finds only what is on disk.
      case 0:
        await client.client.shutdown()
        client = try lab()
      case 1: world.state.withLock { $0.now += 1000 * Int64($0.random.below(4000)) }
      case 2: world.state.withLock { $0.now -= 1000 * Int64($0.random.below(4000)) }
      case 3: world.state.withLock { $0.now += 1000 * Int64($0.random.below(10)) }
      default: break
      }
      // Mostly one of three languages, so that the cache has hits. Sometimes one of twenty, so that it stores
      // many variants.
      let language = "l\(world.draw(world.draw(4) == 0 ? 20 : 3))"
      var fields: HeaderFields = ["Accept-Language": language]
      if world.draw(4) == 0 { fields["Cache-Control"] = "no-cache" }
      let (response, text) = try await client.ask(.get, "/thing", fields)
      let (latest, answer, now) = world.state.withLock { state in
        let latest = "\(language) \(state.versions[language, default: 0]) "
        return (latest, state.answers[latest], state.now)
      }
      #expect(text.hasPrefix(latest), "seed \(seed), step \(step): \(response.cacheStatus.text ?? "")")
      guard response.cacheStatus.outcome == .hit, let answer else { continue }
      hits += 1
      #expect(
        now >= answer.received && now - answer.received < answer.lifetime,
        "seed \(seed), step \(step): \(response.cacheStatus.text ?? "")")
    }
    #expect(hits > 30, "hardly anything was served from the cache")
    await client.client.shutdown()
  }
}
