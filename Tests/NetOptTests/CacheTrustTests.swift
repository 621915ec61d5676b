import NetOptCore
import NetOptCrypto
import NetOptSigning
import NetOptTestSupport
import TestTools
import Testing

@testable import NetOpt

/// Clients that share a cache directory but have different settings: certificate authorities, credential
/// fields, signing keys, proxies or `User-Agent`. A client must not find entries of a client with settings to
/// which the origin might have answered differently.
@Suite struct CacheTrustTests {
  /// Makes a client with the shared directory. The origin names in each response the user for whom it takes
  /// the request (`X-Ours`).
  ///
  /// - Parameters:
  ///   - change: changes the cache's configuration.
  ///   - authorities: the client's `caFile`; `nil` for the system's authorities.
  private static func lab(
    _ directory: String, _ change: (inout ClientConfiguration.Cache) -> Void = { _ in },
    authorities: String? = nil
  ) throws -> CacheLab {
    try CacheLab(
      {
        $0.directory = directory
        change(&$0)
      }, configure: { $0.tls.caFile = authorities }
    ) { (request, number) throws(NetOptError) in
      CacheLab.response(
        request, 200, ["Cache-Control": "private, max-age=600"],
        "for \(request.headers["X-Ours"] ?? "nobody")")
    }
  }

  @Test("a client with other credential or harmless fields does not find stored entries")
  func otherCredentialFields() async throws {
    let directory = try TemporaryDirectory.make("cache-trust") + "/cache"
    let before = try Self.lab(directory)
    #expect(try await before.ask(.get, "/thing", ["X-Ours": "alice"]).text == "for alice")
    await before.client.shutdown()
    // A client with the same rules finds the entry.
    let same = try Self.lab(directory)
    #expect(try await same.ask(.get, "/thing", ["X-Ours": "bob"]).text == "for alice")
    await same.client.shutdown()
    for name in ["X-Ours", "x-ours", "X-Unrelated"] {
      let after = try Self.lab(directory) { $0.credentialFields.insert(name) }
      #expect(try await after.ask().text == "for nobody")
      #expect(after.sent == (name == "x-ours" ? 0 : 1), "case does not matter")
      await after.client.shutdown()
    }
    let harmless = try Self.lab(directory) { $0.harmlessFields.insert("X-Page-Token") }
    #expect(try await harmless.ask().text == "for nobody")
    #expect(harmless.sent == 1)
    await harmless.client.shutdown()
  }

  @Test("a client with other certificate authorities does not find stored entries")
  func otherAuthorities() async throws {
    let directory = try TemporaryDirectory.make("cache-trust") + "/cache"
    let files = try ["one", "two", "one"].enumerated().map { (number, content) in
      let file = try TemporaryDirectory.make("authorities") + "/\(number).pem"
      try TextFile.write("-----BEGIN CERTIFICATE-----\n\(content)\n", to: file)
      return file
    }
    var sent: [Int] = []
    for file in [nil] + files {
      let lab = try Self.lab(directory, authorities: file)
      #expect(try await lab.ask().text == "for nobody")
      sent.append(lab.sent)
      await lab.client.shutdown()
    }
    // The content of the file counts, not its name.
    #expect(sent == [1, 1, 1, 0])
  }

  /// Lets clients with different configurations request the same resource, one after the other, with one
  /// cache directory. Returns how many requests each client sent: 0 if it found the entry of an earlier
  /// client.
  private static func sent(
    _ url: String, by configurations: [(inout ClientConfiguration) -> Void]
  ) async throws -> [Int] {
    let directory = try TemporaryDirectory.make("cache-trust") + "/cache"
    var sent: [Int] = []
    for configure in configurations {
      let lab = try CacheLab({ $0.directory = directory }, configure: configure) {
        (request, number) throws(NetOptError) in
        CacheLab.response(request, 200, ["Cache-Control": "private, max-age=600"], "for one user")
      }
      let response = try await lab.client.execute(NetOptRequest(.get, url))
      #expect(try await response.body.collect(upTo: 100) == Array("for one user".utf8))
      sent.append(lab.sent)
      await lab.client.shutdown()
    }
    return sent
  }

  /// Makes a client sign requests to `api.test`.
  private static func signing(_ signer: RequestSigner) -> (inout ClientConfiguration) -> Void {
    { $0.signing = ClientConfiguration.Signing(signer: signer, hosts: ["api.test"]) }
  }

  /// Makes a key ring from keys in JSON.
  private static func ring(_ keys: String...) throws -> KeyRing {
    let text = #"{"schema":1,"keys":[\#(keys.joined(separator: ","))]}"#
    return try KeyRing(json: SecretBytes(copying: Array(text.utf8)))
  }

  @Test("clients with other signing keys or schemes do not share responses, even if the key ids are equal")
  func signers() async throws {
    func ring(_ secret: String, salt: String = "s", token: String? = nil) throws -> KeyRing {
      let token = token.map { #","session_token":"\#($0)""# } ?? ""
      return try Self.ring(
        #"{"id":"a","secret":"\#(secret)","salt":"\#(salt)","schemes":["netopt1","sigv4"]\#(token)}"#)
    }
    func signer(_ ring: KeyRing) throws -> RequestSigner {
      try RequestSigner(keys: ring, keyID: "a", scheme: .sigv4, options: #"{"region":"r","service":"s"}"#)
    }
    let signers = try [
      RequestSigner(keys: ring("one"), keyID: "a"), RequestSigner(keys: ring("two"), keyID: "a"),
      RequestSigner(keys: ring("one", salt: "t"), keyID: "a"), signer(ring("one")),
      signer(ring("one", token: "T1")), signer(ring("one", token: "T2")), signer(ring("one", token: "T1")),
      RequestSigner(keys: ring("one"), keyID: "a"),
    ]
    #expect(
      try await Self.sent("https://api.test/", by: signers.map(Self.signing)) == [1, 1, 1, 1, 1, 1, 0, 0])
  }

  @Test("clients with keys sealed for different platforms do not share responses")
  func platforms() async throws {
    func signer(_ platform: String, _ inner: String = "netopt1") throws -> RequestSigner {
      let secret = String(repeating: "0123456789abcdef", count: 2)
      let keys = try Self.ring(
        #"{"id":"a","secret":"one","salt":"s","schemes":["sealed-key","netopt1"]}"#,
        #"{"id":"p1","secret":"\#(secret)","schemes":["sealed-key"]}"#,
        #"{"id":"p2","secret":"\#(secret)","schemes":["sealed-key"]}"#)
      return try RequestSigner(
        keys: keys, keyID: "a", scheme: .sealedKey,
        options: #"{"platform_key_id":"\#(platform)","inner":"\#(inner)"}"#)
    }
    let signers = try [signer("p1"), signer("p2"), signer("p1")]
    #expect(try await Self.sent("https://api.test/", by: signers.map(Self.signing)) == [1, 1, 0])
  }

  /// The commands of the keys fail, as if a vault were unreachable for a moment. The command of a key may
  /// succeed later, when the client signs. So it is not known with which secret the client signs, and the
  /// clients must not share responses.
  @Test("keys with the same id whose secrets cannot be read have separate identities")
  func unknownKeys() async throws {
    let signers = try (0..<3).map { _ in
      let keys = try Self.ring(#"{"id":"a","secret_command":"exit 1","schemes":["netopt1"]}"#)
      return try RequestSigner(keys: keys, keyID: "a")
    }
    #expect(Set(signers.map(\.identity)).count == 3)
    // A signer keeps its identity as long as it lives. So an unsafe request still invalidates the entries
    // that the same client has stored.
    #expect(signers.map(\.identity) == signers.map(\.identity))
    // The clients sign only requests to `api.test`, so they share responses of other hosts.
    #expect(try await Self.sent("http://other.test/", by: signers.map(Self.signing)) == [1, 0, 0])
  }

  @Test("users of an HTTP proxy do not share http responses, but share what passes through tunnels")
  func proxyUsers() async throws {
    let proxies = ["http://alice:pa@p:1", "http://bob:pb@p:1", "http://p:1", "http://alice:pa@p:1"]
    let configurations = proxies.map { url in
      { (configuration: inout ClientConfiguration) in configuration.proxy = .url(url) }
    }
    #expect(try await Self.sent("http://api.test/", by: configurations) == [1, 1, 1, 0])
    // A SOCKS proxy passes bytes on and answers nothing itself. An HTTP proxy does the same with the bytes of
    // a tunnel.
    let tunnels = ["socks5h://alice:pa@p:1", "socks5h://bob:pb@p:1"].map { url in
      { (configuration: inout ClientConfiguration) in configuration.proxy = .url(url) }
    }
    #expect(try await Self.sent("http://api.test/", by: tunnels) == [1, 0])
    #expect(try await Self.sent("https://api.test/", by: configurations) == [1, 0, 0, 0])
  }

  @Test("Vary: User-Agent includes the User-Agent that the client adds")
  func userAgents() async throws {
    let directory = try TemporaryDirectory.make("cache-trust") + "/cache"
    let text = { (agent: String, fields: HeaderFields) in
      let lab = try CacheLab({ $0.directory = directory }, configure: { $0.userAgent = agent }) {
        (request, number) throws(NetOptError) in
        // The transport adds the client's `User-Agent`.
        let agent = request.headers["User-Agent"] ?? agent
        return CacheLab.response(
          request, 200, ["Cache-Control": "max-age=600", "Vary": "User-Agent"], "for \(agent)")
      }
      let text = try await lab.ask(.get, "/thing", fields).text
      let sent = lab.sent
      await lab.client.shutdown()
      return "\(text), \(sent) sent"
    }
    #expect(try await text("one/1", [:]) == "for one/1, 1 sent")
    #expect(try await text("two/1", [:]) == "for two/1, 1 sent")
    #expect(try await text("two/1", ["User-Agent": "one/1"]) == "for one/1, 0 sent")
    #expect(try await text("one/1", ["user-agent": "three/1"]) == "for three/1, 1 sent")
    #expect(try await text("two/1", [:]) == "for two/1, 0 sent")
    // The explanation of a request uses the same `User-Agent`.
    var configuration = ClientConfiguration.Cache()
    configuration.directory = directory
    configuration.now = { 1_795_219_200_000 }
    for (agent, isFound) in [("two/1", true), ("four/1", false)] {
      let explanation = try await CacheExplanation.of(
        NetOptRequest(.get, "https://api.test/thing"), configuration, userAgent: agent
      ) { _ in }
      let isServed = if case .serve = explanation.decision { true } else { false }
      #expect(isServed == isFound, "\(agent)")
    }
  }

  @Test("a hit has no Set-Cookie, and a revalidated response has the new one")
  func storedCookies() async throws {
    let lab = try CacheLab { (request, number) throws(NetOptError) in
      let fields: HeaderFields = [
        "Cache-Control": "private, max-age=600", "ETag": "\"1\"", "Set-Cookie": "sid=\(number)", "X": "1",
      ]
      let isValidated = request.headers["If-None-Match"] != nil
      return CacheLab.response(request, isValidated ? 304 : 200, fields, isValidated ? "" : "page")
    }
    let first = try await lab.ask().response
    let second = try await lab.ask().response
    #expect(first.headers["Set-Cookie"] == "sid=1")
    #expect(second.cacheStatus.outcome == .hit && second.headers["X"] == "1")
    #expect(second.headers["Set-Cookie"] == nil)
    lab.wait(700)
    let validated = try await lab.ask().response
    // The second request revalidates the stored response.
    #expect(validated.cacheStatus.outcome == .revalidated)
    #expect(validated.headers.values(of: "Set-Cookie") == ["sid=2"])
    #expect(try await lab.ask().response.headers["Set-Cookie"] == nil)
    await lab.client.shutdown()
  }
}
