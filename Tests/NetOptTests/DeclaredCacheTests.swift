import NetOptCaching
import NetOptCore
import NetOptTestSupport
import Testing

@testable import NetOpt

/// The cache modes `api` and `versioned`. In these modes the caller decides how long a stored response is
/// used: by a declared time (`api`), or by a version in the query (`versioned`).
@Suite struct DeclaredCacheTests {
  /// Options for mode `api`.
  ///
  /// - Parameters:
  ///   - name: the name of the API; `nil` for none.
  ///   - time: how long a successful response is fresh; `nil` to store none.
  ///   - expired: what happens to an expired response.
  ///   - negative: how long a response with an error status, such as 404, is fresh; `nil` to store none.
  private func api(
    _ name: String? = "shop/live/item", for time: Duration? = .seconds(60),
    _ expired: CacheOptions.Declaration.Expired = .refetch, negative: Duration? = nil
  ) -> CacheOptions {
    .api(
      CacheOptions.Declaration(
        name: name, timeToLive: time, expired: expired, negativeTimeToLive: negative))
  }

  /// A client that caches only requests with cache options of their own. The text of a response is `answer`
  /// and the number of the request at the origin, from 1.
  private func numbered(_ status: Int = 200, _ fields: HeaderFields = [:]) throws -> CacheLab {
    try CacheLab({ $0.options = .off }) { (request, number) throws(NetOptError) in
      CacheLab.response(request, status, fields, "answer \(number)")
    }
  }

  @Test("api mode caches a response for the declared time, in any order of query parameters")
  func declaredTime() async throws {
    let lab = try numbered()
    let options = api()
    _ = try await lab.ask(.get, "/item?a=1&b=2") { $0.options.cache = options }
    let (response, text) = try await lab.ask(.get, "/item?b=2&a=1") { $0.options.cache = options }
    #expect(text == "answer 1")
    #expect(response.cacheStatus.outcome == .hit)
    #expect(response.cacheStatus.rule.section == "netopt, api mode")
    lab.wait(61)
    #expect(try await lab.ask(.get, "/item?b=2&a=1") { $0.options.cache = options }.text == "answer 2")
    // Without a declared time, or without the mode, nothing is cached.
    for (index, other) in [api(for: nil), .off].enumerated() {
      #expect(try await lab.ask { $0.options.cache = other }.text == "answer \(index + 3)")
    }
    await lab.client.shutdown()
  }

  @Test("api mode does not store a no-store response")
  func noStore() async throws {
    let lab = try numbered(200, ["Cache-Control": "no-store"])
    let options = api()
    for number in 1...2 {
      #expect(try await lab.ask { $0.options.cache = options }.text == "answer \(number)")
    }
    await lab.client.shutdown()
  }

  @Test("api mode caches a 404 only with a negativeTimeToLive")
  func negativeTimeToLive() async throws {
    let lab = try numbered(404)
    let (plain, negative) = (api(), api("other", negative: .seconds(2)))
    for number in 1...2 { #expect(try await lab.ask { $0.options.cache = plain }.text == "answer \(number)") }
    for _ in 1...2 { #expect(try await lab.ask { $0.options.cache = negative }.text == "answer 3") }
    lab.wait(3)
    #expect(try await lab.ask { $0.options.cache = negative }.text == "answer 4")
    await lab.client.shutdown()
  }

  @Test("serveAndRefresh serves the expired response and refreshes it in the background")
  func serveAndRefresh() async throws {
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

  @Test("a GET with a body is stored only for a named API, because a PUT could not invalidate it")
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

  @Test("api mode caches a POST by its body if the API has a name")
  func postToAPI() async throws {
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
    // Without a name a POST is an unsafe request.
    #expect(try await post("{\"a\":1}", api(nil)) == "answer 3")
    #expect(try await post("{\"a\":1}", api(nil)) == "answer 4")
    await lab.client.shutdown()
  }

  /// A request with `only-if-cached` is not sent in any mode, even if the mode caches nothing (`api` without
  /// a declared time).
  @Test("only-if-cached without a fresh entry gives 504 in every mode and sends no request")
  func onlyIfCached() async throws {
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

  /// In mode `http` the cache serves a stale response when the origin is unreachable. In mode `api` it does
  /// not, because the caller declared how long a response may be used.
  @Test("api mode throws the error when the origin is unreachable and the entry has expired")
  func unreachableOrigin() async throws {
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
    "an unsafe request for one version of a resource removes the other stored version",
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

  @Test("versioned mode serves, refreshes or fetches by how far the stored version is behind")
  func versionThreshold() async throws {
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
    // Two versions behind: the cache serves the response and refreshes it.
    #expect(try await get("cachevers=7").1 == "answer 1")
    try await wait(for: "the refresh") { try await get("cachevers=7").1 == "answer 2" }
    // Three versions behind: the cache fetches.
    #expect(try await get("cachevers=10").1 == "answer 3")
    // Without a version in its query a request is not cached.
    let (response, text) = try await get("x=1")
    #expect(text == "answer 4")
    #expect(response.cacheStatus.rule.section == "netopt, versioned mode")
    #expect(try await get("x=1").1 == "answer 5")
    await lab.client.shutdown()
  }

  @Test("concurrent calls for different versions do not share a fetch")
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
    try await wait(for: "one fetch of each version") { try lab.sent == 2 && lab.inFlightFetches.waiting == 2 }
    gate.open()
    for (query, call) in zip(queries, calls) { #expect(try await call.value == query) }
    #expect(lab.sent == 2)
    await lab.client.shutdown()
  }

  @Test("origins with the same API name do not share cache entries")
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
    "an unsafe request in any cache mode removes the API entry of its URL",
    arguments: ["?b=2&a=1", "?x=1", "", "?q=%zz"])
  func changes(query: String) async throws {
    let lab = try numbered()
    let options = api(nil)
    let get = { try await lab.ask(.get, "/p\(query)") { $0.options.cache = options }.text }
    #expect(try await get() == "answer 1")
    #expect(try await get() == "answer 1")
    #expect(try await lab.ask(.put, "/p\(query)") { $0.options.cache = options }.text == "answer 2")
    #expect(try await get() == "answer 3")
    // A request with another declaration, or with none, removes the entry as well.
    #expect(try await lab.ask(.delete, "/p\(query)").text == "answer 4")
    #expect(try await lab.ask(.delete, "/p\(query)") { $0.options.cache = .http }.text == "answer 5")
    #expect(try await get() == "answer 6")
    await lab.client.shutdown()
  }

  /// `declared` and `other` are URLs that mode `api` takes for the same resource. Mode `http` does not, and
  /// its call must make its own fetch.
  @Test(
    "a fetch for a declared URL is not shared with a similar URL in http mode",
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
      let waiting = try lab.inFlightFetches.waiting
      return lab.sent == 2 || waiting > 0
    }
    isAsked.open()
    #expect(try await second.text == other)
    #expect(try await first.text == declared)
    #expect(try await lab.ask(.head, other).response.cacheStatus.outcome == .hit)
    await lab.client.shutdown()
  }

  @Test(
    "the client drops a redirect whose body stays open before it requests the target",
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
    #expect(try lab.inFlightFetches.count == 0 && lab.inFlightFetches.waiting == 0)
    gate.open()
    await lab.client.shutdown()
  }

  /// `isOfClient`: whether the declaration is in the client's configuration, and not in the request.
  @Test("the target of an API's redirect is not stored as the API's response", arguments: [true, false])
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
