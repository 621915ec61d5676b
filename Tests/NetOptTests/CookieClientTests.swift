import NetOptCore
import NetOptLocking
import NetOptTestSupport
import TestTools
import Testing

@testable import NetOpt

/// Cookies of a client, from response to request.
@Suite struct CookieClientTests {
  private static let address = IPAddress.loopback
  private static let names = ["shop.test", "www.shop.test", "api.shop.test", "other.test", "left-out.test"]

  /// A client of all `names` and its transport.
  ///
  /// - Parameter answer: gets the URL and the `Cookie` field of each request.
  private static func client(
    _ hosts: Set<String>, cache: ClientConfiguration.Cache? = nil,
    _ answer: @escaping @Sendable (HTTPURL, String?) -> StubResponse
  ) throws -> (NetOptClient, StubTransport) {
    var configuration = ClientConfiguration()
    configuration.cookieHosts = hosts
    configuration.cache = cache
    let outcomes = Dictionary(
      uniqueKeysWithValues: names.map { ($0, StubResolver.Outcome.addresses([address])) })
    let transport = StubTransport(
      [address: .answer { request, _ in .response(answer(request.url, request.headers["Cookie"])) }],
      resolver: StubResolver(outcomes))
    return (try NetOptClient(configuration, transport: transport), transport)
  }

  private static func get(_ client: NetOptClient, _ url: String, _ cookie: String? = nil) async throws -> Int
  {
    var request = try NetOptRequest(.get, url)
    request.headers["Cookie"] = cookie
    let response = try await client.execute(request)
    _ = try await response.text()
    return response.status
  }

  /// A step of a conversation: what is asked, and what the server sets.
  private struct Step: Sendable {
    let url: String
    let cookies: [String]

    /// Draws a step of those that curl and RFC 6265 judge alike. curl ignores the case of names, refuses
    /// cookies without names, cuts the last slash off a path, takes a path without a slash for another than
    /// none, and ends cookies whose `Max-Age` is no number.
    init(_ random: inout SplitMix64) {
      let paths = ["/", "/a", "/a/", "/a/b", "/a/b/c", "/ab", "/b?q=/a"]
      url = "http://\(random.element(of: CookieClientTests.names))\(random.element(of: paths))"
      cookies = (0..<random.below(4)).map { _ in
        var text = "\(random.element(of: ["n", "m", "o", "long-name"]))=\(random.below(1000))"
        if random.isOne(in: 2) {
          text += "; Path=\(random.element(of: ["/", "/a", "/a/b", "/ab", "/x"]))"
        }
        if random.isOne(in: 2) {
          let domains = [
            "shop.test", ".shop.test", "www.shop.test", "test", "other.test", "OTHER.test", "hop.test",
          ]
          text += "; domain=\(random.element(of: domains))"
        }
        switch random.below(8) {
        case 0: text += "; Max-Age=0"
        case 1: text += "; Max-Age=9999"
        case 2: text += "; Expires=Thu, 01 Jan 1970 00:00:00 GMT"
        case 3: text += "; Expires=Sun, 06-Nov-2089 08:49:37 GMT"
        case 4: text += "; Secure"
        case 5: text += "; HttpOnly; SameSite=Lax"
        default: break
        }
        return text
      }
    }
  }

  /// A text of cookies as a set: curl orders cookies of paths of one length by their names.
  private static func set(_ field: String?) -> [String] {
    (field ?? "").split(separator: "; ").map(String.init).sorted()
  }

  @Test(
    "the client sends the cookies that curl sends", .timeLimit(.minutes(1)),
    arguments: 1...12 as ClosedRange<UInt64>)
  func asCurl(seed: UInt64) async throws {
    var random = SplitMix64(seed: seed)
    let steps = (0..<80).map { _ in Step(&random) }
    let asked = Locked(0)
    let server = try LoopbackServer(
      .raw { exchange in
        let number = asked.withLock { count in
          defer { count += 1 }
          return count
        }
        let fields = steps[number].cookies.map { HeaderField("Set-Cookie", $0) }
        try exchange.respond(200, HeaderFields(fields))
      })
    defer { server.stop() }
    let directory = try TemporaryDirectory.make("cookies")
    try await ChildProcess.run(
      "curl",
      ["-q", "-sS", "--noproxy", "*", "-b", "", "--connect-to", "::\(server.endpoint)"]
        + steps.flatMap { [$0.url, "-o", "/dev/null"] }, in: directory)
    let sentByCurl = server.requests.map { Self.set($0.fields["Cookie"]) }
    try #require(sentByCurl.count == steps.count)

    let next = Locked(0)
    let sent = Locked<[[String]]>([])
    let (client, _) = try Self.client(Set(Self.names)) { _, cookie in
      sent.withLock { $0.append(Self.set(cookie)) }
      let step = next.withLock { number in
        defer { number += 1 }
        return steps[number]
      }
      return StubResponse(200, fields: HeaderFields(step.cookies.map { HeaderField("Set-Cookie", $0) }))
    }
    for step in steps { #expect(try await Self.get(client, step.url) == 200) }
    await client.shutdown()
    for (number, (ours, curls)) in zip(sent.withLock { $0 }, sentByCurl).enumerated() where ours != curls {
      Issue.record("seed \(seed), step \(number), \(steps[number].url): \(ours), but curl sends \(curls)")
    }
    // Enough steps have cookies to compare.
    #expect(sentByCurl.count { $0.count > 1 } > 10)
  }

  @Test(
    "a cookie that a redirect sets goes to the next hop; a login server of the configuration may redirect back"
  )
  func redirects() async throws {
    let seen = Locked<[String]>([])
    let (client, _) = try Self.client(["shop.test", "www.shop.test"]) { url, cookie in
      seen.withLock { $0.append("\(url.host)\(url.path) \(cookie ?? "-")") }
      switch "\(url.host)\(url.path)" {
      case "shop.test/":
        return StubResponse(
          302,
          fields: [
            "Location": "https://www.shop.test/login", "Set-Cookie": "state=1; Domain=shop.test; Path=/",
          ])
      case "www.shop.test/login":
        return StubResponse(302, fields: ["Location": "https://shop.test/home", "Set-Cookie": "session=2"])
      case "shop.test/leave": return StubResponse(302, fields: ["Location": "https://left-out.test/"])
      case "left-out.test/":
        return StubResponse(
          307, fields: ["Location": "https://shop.test/buy", "Set-Cookie": "spy=3; Domain=shop.test"])
      default: return StubResponse()
      }
    }
    #expect(try await Self.get(client, "https://shop.test/") == 200)
    #expect(try await Self.get(client, "https://www.shop.test/login/x") == 200)
    // A host outside the set gets no cookie, sets none, and cannot cause a request with cookies.
    #expect(try await Self.get(client, "https://shop.test/leave") == 307)
    #expect(try await Self.get(client, "https://shop.test/end", "own=1") == 200)
    #expect(
      seen.withLock { $0 } == [
        "shop.test/ -", "www.shop.test/login state=1", "shop.test/home state=1",
        "www.shop.test/login/x state=1; session=2", "shop.test/leave state=1", "left-out.test/ -",
        "shop.test/end own=1",
      ])
    await client.shutdown()
  }

  @Test("the cache keeps responses to requests with different cookies apart")
  func cache() async throws {
    let (client, transport) = try Self.client(["shop.test"], cache: .init()) { url, cookie in
      if url.path == "/login" {
        return StubResponse(fields: [
          "Set-Cookie": "user=\(url.query ?? ""); Path=/", "Cache-Control": "no-store",
        ])
      }
      return StubResponse(fields: ["Cache-Control": "max-age=600"], body: Array((cookie ?? "nobody").utf8))
    }
    let read = { () async throws -> String in
      try await client.execute(NetOptRequest(.get, "https://shop.test/me")).text()
    }
    #expect(try await read() == "nobody")
    for user in ["ann", "bob", "ann"] {
      _ = try await Self.get(client, "https://shop.test/login?\(user)")
      for _ in 0..<3 { #expect(try await read() == "user=\(user)") }
    }
    // Three logins, and one request in each of four sessions.
    #expect(transport.received.count == 7)
    await client.shutdown()
  }

  @Test("a cookie of a refresh in the background is kept", .timeLimit(.minutes(1)))
  func refresh() async throws {
    let fetches = Locked(0)
    var cache = ClientConfiguration.Cache()
    cache.options = .api(.init(timeToLive: .zero, expired: .serveAndRefresh(within: .seconds(3600))))
    let (client, _) = try Self.client(["shop.test"], cache: cache) { url, cookie in
      if url.path == "/cookies" { return StubResponse(404, body: Array((cookie ?? "-").utf8)) }
      let number = fetches.withLock { count in
        count += 1
        return count
      }
      return StubResponse(fields: number == 1 ? [:] : ["Set-Cookie": "n=\(number); Path=/cookies"])
    }
    for _ in 0..<2 { _ = try await Self.get(client, "https://shop.test/list") }
    try await wait(for: "the refresh") { fetches.withLock { $0 } == 2 }
    try await wait(for: "its cookie") {
      try await client.execute(NetOptRequest(.get, "https://shop.test/cookies")).text() == "n=2"
    }
    await client.shutdown()
  }

  @Test("a POST makes an entry outdated for ever, also if cookies came and went")
  func invalidation() async throws {
    let posts = Locked(0)
    let (client, _) = try Self.client(["shop.test"], cache: .init()) { url, cookie in
      switch url.path {
      case "/cart/add":
        posts.withLock { $0 += 1 }
        return StubResponse(201, fields: ["Location": "/cart"])
      case "/flash": return StubResponse(fields: ["Set-Cookie": "flash=1; Path=/"])
      case "/unflash": return StubResponse(fields: ["Set-Cookie": "flash=; Path=/; Max-Age=0"])
      case "/narrow": return StubResponse(fields: ["Set-Cookie": "add=1; Path=/cart/add"])
      default:
        return StubResponse(
          fields: ["Cache-Control": "max-age=600"], text: "\(posts.withLock { $0 }) \(cookie ?? "-")")
      }
    }
    let read = { () async throws -> String in
      try await client.execute(NetOptRequest(.get, "https://shop.test/cart")).text()
    }
    let post = { () async throws -> Int in
      try await client.execute(NetOptRequest(.post, "https://shop.test/cart/add")).status
    }
    #expect(try await read() == "0 -")
    #expect(try await Self.get(client, "https://shop.test/flash") == 200)
    #expect(try await post() == 201)
    #expect(try await read() == "1 flash=1")
    #expect(try await Self.get(client, "https://shop.test/unflash") == 200)
    #expect(try await read() == "1 -")
    // A cookie that only the POST gets does not hide what it changes.
    #expect(try await Self.get(client, "https://shop.test/narrow") == 200)
    #expect(try await read() == "1 -")
    #expect(try await post() == 201)
    #expect(try await read() == "2 -")
    await client.shutdown()
  }

  @Test("a client that counts no Cookie as a credential still keeps sessions apart")
  func harmlessCookies() async throws {
    var cache = ClientConfiguration.Cache()
    cache.credentialFields = []
    cache.harmlessFields = ["Cookie"]
    let (client, _) = try Self.client(["shop.test"], cache: cache) { url, cookie in
      url.path == "/login"
        ? StubResponse(fields: ["Set-Cookie": "user=ann; Path=/"])
        : StubResponse(fields: ["Cache-Control": "max-age=600"], text: cookie ?? "nobody")
    }
    let read = { () async throws -> String in
      try await client.execute(NetOptRequest(.get, "https://shop.test/me")).text()
    }
    #expect(try await read() == "nobody")
    #expect(try await Self.get(client, "https://shop.test/login") == 200)
    #expect(try await read() == "user=ann")
    await client.shutdown()
  }

  @Test("over TLS without verification, cookies neither come nor go")
  func unverified() async throws {
    let seen = Locked<[String]>([])
    let (client, _) = try Self.client(["shop.test"]) { url, cookie in
      seen.withLock { $0.append("\(url.path) \(cookie ?? "-")") }
      return StubResponse(fields: ["Set-Cookie": "\(url.path.dropFirst())=1; Path=/"])
    }
    for (path, isVerified) in [("a", true), ("b", false), ("c", true)] {
      var request = try NetOptRequest(.get, "https://shop.test/\(path)")
      if !isVerified { request.options.verification = .none }
      #expect(try await client.execute(request).status == 200)
    }
    #expect(try await Self.get(client, "http://SHOP.test:8080/d") == 200)
    #expect(seen.withLock { $0 } == ["/a -", "/b -", "/c a=1", "/d a=1; c=1"])
    await client.shutdown()
  }

  @Test("each attempt has the cookies that the attempts before it have set")
  func attempts() async throws {
    let seen = Locked<[String?]>([])
    let (client, _) = try Self.client(["shop.test"]) { _, cookie in
      let number = seen.withLock { seen in
        seen.append(cookie)
        return seen.count
      }
      return StubResponse(number < 3 ? 503 : 200, fields: ["Set-Cookie": "n=\(number)"])
    }
    #expect(try await Self.get(client, "https://shop.test/") == 200)
    #expect(seen.withLock { $0 } == [nil, "n=1", "n=2"])
    await client.shutdown()
  }

  @Test("a dump of a client does not show cookies")
  func dumped() async throws {
    let (client, _) = try Self.client(["shop.test"]) { _, _ in
      StubResponse(fields: ["Set-Cookie": "session=geheim"])
    }
    #expect(try await Self.get(client, "https://shop.test/") == 200)
    var text = ""
    dump(client, to: &text)
    #expect(text.contains("CookieJar") && !text.contains("geheim"))
    await client.shutdown()
  }

  @Test("hosts are named in any form of their names and addresses")
  func forms() throws {
    var configuration = ClientConfiguration()
    configuration.cookieHosts = ["Shop.TEST.", "2001:DB8:0:0::1", "192.0.2.1"]
    #expect(try configuration.checked().cookieHosts == ["shop.test", "2001:db8::1", "192.0.2.1"])
  }

  @Test(
    "a text that is no host name is refused",
    arguments: ["shop.test:443", "https://shop.test", "*.shop.test", ""])
  func hostNames(_ name: String) throws {
    let error = #expect(throws: NetOptError.self) { try Self.client([name]) { _, _ in StubResponse() } }
    #expect(error?.code == .invalidConfiguration && error?.message.contains("cookieHosts") == true)
  }
}
