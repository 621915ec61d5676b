import NetOptCaching
import NetOptCore
import NetOptTestSupport
import Testing

@testable import NetOpt

/// The modes in which the caller decides.
@Suite struct DeclaredCacheTests {
  private func api(
    _ name: String? = "shop/live/item", for time: Duration? = .seconds(60),
    _ expired: CacheOptions.Declaration.Expired = .refetch, negative: Duration? = nil
  ) -> CacheOptions {
    .api(
      CacheOptions.Declaration(
        name: name, timeToLive: time, expired: expired, negativeTimeToLive: negative))
  }

  private func numbered(_ status: Int = 200, _ fields: HeaderFields = [:]) throws -> CacheLab {
    try CacheLab({ $0.options = .off }) { (request, number) throws(NetOptError) in
      CacheLab.response(request, status, fields, "answer \(number)")
    }
  }

  @Test func whatIsDeclaredIsCached() async throws {
    let lab = try numbered()
    let options = api()
    _ = try await lab.ask(.get, "/item?a=1&b=2") { $0.options.cache = options }
    let (response, text) = try await lab.ask(.get, "/item?b=2&a=1") { $0.options.cache = options }
    #expect(text == "answer 1")
    #expect(response.cacheStatus.outcome == .hit)
    #expect(response.cacheStatus.rule.section == "netopt, api mode")
    lab.wait(61)
    #expect(try await lab.ask(.get, "/item?b=2&a=1") { $0.options.cache = options }.text == "answer 2")
    // Nothing without a declared time, nothing without the mode.
    for (index, other) in [api(for: nil), .off].enumerated() {
      #expect(try await lab.ask { $0.options.cache = other }.text == "answer \(index + 3)")
    }
    await lab.client.shutdown()
  }

  @Test func noStoreWins() async throws {
    let lab = try numbered(200, ["Cache-Control": "no-store"])
    let options = api()
    for number in 1...2 {
      #expect(try await lab.ask { $0.options.cache = options }.text == "answer \(number)")
    }
    await lab.client.shutdown()
  }

  @Test func negativeAnswersAreCachedWhenAskedFor() async throws {
    let lab = try numbered(404)
    let (plain, negative) = (api(), api("other", negative: .seconds(2)))
    for number in 1...2 { #expect(try await lab.ask { $0.options.cache = plain }.text == "answer \(number)") }
    for _ in 1...2 { #expect(try await lab.ask { $0.options.cache = negative }.text == "answer 3") }
    lab.wait(3)
    #expect(try await lab.ask { $0.options.cache = negative }.text == "answer 4")
    await lab.client.shutdown()
  }

  @Test func theOldOneIsServedAndRefreshed() async throws {
    let lab = try numbered()
    let options = api(.init("a"), for: .seconds(60), .serveAndRefresh(within: .seconds(600)))
    _ = try await lab.ask { $0.options.cache = options }
    lab.wait(61)
    let (response, text) = try await lab.ask { $0.options.cache = options }
    #expect(text == "answer 1")
    #expect(response.cacheStatus.outcome == .stale)
    try await wait(for: "the refresh") { try await lab.ask { $0.options.cache = options }.text == "answer 2" }
    #expect(lab.sent == 2)
    await lab.client.shutdown()
  }

  @Test("a GET with a body is stored for an API with a name, and never without: PUT could not reach it")
  func getWithBody() async throws {
    let lab = try numbered()
    func get(_ options: CacheOptions) async throws -> NetOptResponse {
      try await lab.ask {
        $0.body = .text("{}")
        $0.options.cache = options
      }.response
    }
    _ = try await get(api())
    #expect(try await get(api()).cacheStatus.outcome == .hit)
    for _ in 1...2 {
      let response = try await get(api(nil))
      #expect(response.cacheStatus.outcome != .hit)
      #expect(response.cacheStatus.rule == .unnamedBody)
    }
    #expect(lab.sent == 3)
    await lab.client.shutdown()
  }

  @Test func aDeclaredAPIMayBeAskedWithPost() async throws {
    let lab = try numbered()
    let options = api()
    func post(_ body: String, _ options: CacheOptions) async throws -> String {
      try await lab.ask(.post) {
        $0.body = .text(body)
        $0.options.cache = options
      }.text
    }
    #expect(try await post("{\"a\":1}", options) == "answer 1")
    #expect(try await post("{\"a\":1}", options) == "answer 1")
    #expect(try await post("{\"a\":2}", options) == "answer 2")
    // Without a name it is a request that changes something.
    #expect(try await post("{\"a\":1}", api(nil)) == "answer 3")
    #expect(try await post("{\"a\":1}", api(nil)) == "answer 4")
    await lab.client.shutdown()
  }

  /// In every mode, and where nothing is cached at all, `only-if-cached` wants none of the origin.
  @Test func onlyWhatIsStoredWhenNothingElseIsWanted() async throws {
    let lab = try numbered()
    let wish: HeaderFields = ["Cache-Control": "only-if-cached"]
    let modes = [api(), api(for: nil), CacheOptions(.versioned(.init())), .http]
    for options in modes {
      let (response, text) = try await lab.ask(.get, "/item", wish) { $0.options.cache = options }
      #expect(response.status == 504 && text.contains("RFC 9111, section 5.2.1.7"))
    }
    #expect(lab.sent == 0)
    _ = try await lab.ask(.get, "/item") { $0.options.cache = modes[0] }
    #expect(try await lab.ask(.get, "/item", wish) { $0.options.cache = modes[0] }.text == "answer 1")
    lab.wait(61)
    #expect(try await lab.ask(.get, "/item", wish) { $0.options.cache = modes[0] }.response.status == 504)
    #expect(lab.sent == 1)
    await lab.client.shutdown()
  }

  /// What a caller declares says nothing of an origin that is gone: the error is the answer.
  @Test func anOriginThatCannotBeReachedIsAnError() async throws {
    let lab = try CacheLab({ $0.options = .off }) { (request, number) throws(NetOptError) in
      if number > 1 { throw NetOptError(.connectFailed, phase: .connect, "nobody is there") }
      return CacheLab.response(request, 200, [:], "answer")
    }
    let options = api()
    _ = try await lab.ask { $0.options.cache = options }
    lab.wait(61)
    let error = await #expect(throws: NetOptError.self) { try await lab.ask { $0.options.cache = options } }
    #expect(error?.code == .connectFailed)
    await lab.client.shutdown()
  }

  @Test(
    "a change of a versioned resource takes away what was stored for it, whatever version it names",
    arguments: [NetOptRequest.Method.put, .delete, .post])
  func versionedChanges(method: NetOptRequest.Method) async throws {
    let lab = try numbered()
    let options = CacheOptions(.versioned(CacheOptions.Versions()))
    func ask(_ method: NetOptRequest.Method, _ target: String) async throws -> String {
      try await lab.ask(method, target) { $0.options.cache = options }.text
    }
    for query in ["cachevers=7", "a=1&cachevers=7"] {
      let first = try await ask(.get, "/app.js?\(query)")
      #expect(try await ask(.get, "/app.js?\(query)") == first)
      _ = try await ask(method, "/app.js?\(query.replacing("7", with: "8"))")
      #expect(try await ask(.get, "/app.js?\(query)") != first)
    }
    await lab.client.shutdown()
  }

  @Test func versionsDecide() async throws {
    let lab = try numbered()
    var versions = CacheOptions.Versions()
    versions.threshold = 3
    let options = CacheOptions(.versioned(versions))
    func get(_ query: String) async throws -> (NetOptResponse, String) {
      try await lab.ask(.get, "/app.js?\(query)") { $0.options.cache = options }
    }
    #expect(try await get("cachevers=5").1 == "answer 1")
    #expect(try await get("cachevers=4").1 == "answer 1")
    #expect(lab.transport.requests.first?.url.query == "cachevers=5")
    // Two behind: served and refreshed.
    #expect(try await get("cachevers=7").1 == "answer 1")
    try await wait(for: "the refresh") { try await get("cachevers=7").1 == "answer 2" }
    // Three behind: fetched.
    #expect(try await get("cachevers=10").1 == "answer 3")
    // Without a version it is not cached.
    let (response, text) = try await get("x=1")
    #expect(text == "answer 4")
    #expect(response.cacheStatus.rule.section == "netopt, versioned mode")
    #expect(try await get("x=1").1 == "answer 5")
    await lab.client.shutdown()
  }

  @Test("calls for other versions do not wait for each other's fetch")
  func versionsUnderWay() async throws {
    let gate = Latch()
    let lab = try CacheLab({ $0.options = .off }) { (request, number) throws(NetOptError) in
      try? await gate.wait()
      return CacheLab.response(request, 200, [:], request.url.query.map(String.init) ?? "")
    }
    let options = CacheOptions(.versioned(CacheOptions.Versions()))
    let queries = ["cachevers=5", "cachevers=6", "cachevers=5", "cachevers=6"]
    let calls = queries.map { query in
      Task { try await lab.ask(.get, "/app.js?\(query)") { $0.options.cache = options }.text }
    }
    try await wait(for: "one fetch of each version") { try lab.sent == 2 && lab.flights.waiting == 2 }
    gate.open()
    for (query, call) in zip(queries, calls) { #expect(try await call.value == query) }
    #expect(lab.sent == 2)
    await lab.client.shutdown()
  }

  @Test("the name of an API says nothing of another origin that has one of this name")
  func namesOfOrigins() async throws {
    let lab = try CacheLab({ $0.options = .off }) { (request, number) throws(NetOptError) in
      CacheLab.response(request, 200, [:], request.url.origin.description)
    }
    let urls = [
      "https://api.test/item", "https://other.test/item", "http://api.test/item",
      "https://api.test:8443/item",
    ]
    var versions = CacheOptions.Versions()
    versions.name = "shop/live/app"
    for options in [api(), CacheOptions(.versioned(versions))] {
      for _ in 1...2 {
        for url in urls {
          let url = try HTTPURL(url + "?cachevers=1")
          let text = try await lab.ask {
            $0.url = url
            $0.options.cache = options
          }.text
          #expect(text == url.origin.description)
        }
      }
    }
    #expect(lab.sent == 2 * urls.count)
    await lab.client.shutdown()
  }

  @Test(
    "a change of a URL takes away what was stored for it, in whatever order its parameters are",
    arguments: ["?b=2&a=1", "?x=1", "", "?q=%zz"])
  func changes(query: String) async throws {
    let lab = try numbered()
    let options = api(nil)
    let get = { try await lab.ask(.get, "/p\(query)") { $0.options.cache = options }.text }
    #expect(try await get() == "answer 1")
    #expect(try await get() == "answer 1")
    #expect(try await lab.ask(.put, "/p\(query)") { $0.options.cache = options }.text == "answer 2")
    #expect(try await get() == "answer 3")
    // A client whose requests are declared otherwise, or not at all, takes it away as well.
    #expect(try await lab.ask(.delete, "/p\(query)").text == "answer 4")
    #expect(try await lab.ask(.delete, "/p\(query)") { $0.options.cache = .http }.text == "answer 5")
    #expect(try await get() == "answer 6")
    await lab.client.shutdown()
  }

  @Test(
    "an answer under way for a declared URL is not given to a request of another URL that is cached as the server says",
    arguments: [
      ("/p?b=1&a=2", "/p?a=2&b=1"), ("/p?x=%41", "/p?x=A"), ("/p?", "/p"), ("/p?q=1+1", "/p?q=1%201"),
    ])
  func canonicalNeighbours(declared: String, other: String) async throws {
    let isAsked = Latch()
    let lab = try CacheLab { (request, _) throws(NetOptError) in
      if request.url.target == declared {
        try? await isAsked.wait()
        return CacheLab.response(request, 503, ["Cache-Control": "max-age=60"], declared)
      }
      return CacheLab.response(request, 200, ["Cache-Control": "max-age=60"], request.url.target)
    }
    let options = api(nil)
    async let first = lab.ask(.get, declared) { $0.options.cache = options }
    try await wait(for: "the declared request") { lab.sent == 1 }
    async let second = lab.ask(.get, other)
    try await wait(for: "the other request") {
      let waiting = try lab.flights.waiting
      return lab.sent == 2 || waiting > 0
    }
    isAsked.open()
    #expect(try await second.text == other)
    #expect(try await first.text == declared)
    #expect(try await lab.ask(.head, other).response.cacheStatus.outcome == .hit)
    await lab.client.shutdown()
  }

  @Test(
    "a redirect whose body stays open is let go of before its target is asked",
    arguments: ["/loop", "/other"])
  func openRedirects(target: String) async throws {
    let gate = Latch()
    let lab = try CacheLab { (request, number) throws(NetOptError) in
      if number > 1 { return CacheLab.response(request, 200, [:], "there") }
      let fields: HeaderFields = ["Location": target, "Cache-Control": "max-age=60"]
      return CacheLab.response(request, 302, fields, ResponseBody(GatedBody(["never"], gates: [gate])))
    }
    let (response, text) = try await lab.ask(.get, "/loop") { $0.options.timeout = .seconds(20) }
    #expect(response.status == 200 && text == "there" && lab.sent == 2)
    #expect(try lab.flights.count == 0 && lab.flights.waiting == 0)
    gate.open()
    await lab.client.shutdown()
  }

  @Test("what an API redirects to is not stored as its answer", arguments: [true, false])
  func redirects(isOfClient: Bool) async throws {
    let options = api()
    let lab = try CacheLab({ $0.options = isOfClient ? options : .off }) {
      (request, number) throws(NetOptError) in
      if request.url.path == "/login" { return CacheLab.response(request, 200, [:], "log in") }
      if number == 1 { return CacheLab.response(request, 302, ["Location": "/login"]) }
      return CacheLab.response(request, 200, [:], "answer")
    }
    let set = { @Sendable (request: inout NetOptRequest) in if !isOfClient { request.options.cache = options }
    }
    #expect(try await lab.ask(.get, "/item", [:], set).text == "log in")
    #expect(try await lab.ask(.get, "/item", [:], set).text == "answer")
    #expect(try await lab.ask(.get, "/item", [:], set).text == "answer")
    #expect(lab.sent == 3)
    await lab.client.shutdown()
  }
}
