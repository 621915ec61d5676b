import NetOptCaching
import NetOptCore
import Testing

struct DeclaredPolicyTests {
  /// The policy of a declaration. `time` is the time to live of 2xx responses, and `negative` that of
  /// errors.
  private func policy(
    _ expired: CacheOptions.Declaration.Expired = .refetch, negative: Duration? = nil,
    for time: Duration? = .seconds(60)
  ) -> DeclaredPolicy {
    DeclaredPolicy(CacheOptions.Declaration(timeToLive: time, expired: expired, negativeTimeToLive: negative))
  }

  /// The decision about a request, as the word of `words`. The request is made this number of seconds
  /// after `start`. The stored response was received at `start` and expires 60 s later.
  private func word(
    _ policy: DeclaredPolicy, after seconds: Int64, _ request: HeaderFields = [:]
  ) throws -> String {
    // The policy must ignore the `max-age` of the server.
    let entry = try stored(["Cache-Control": "max-age=0"], declaredExpiry: start + 60_000)
    return words(policy.decide(try asked(request), [entry], at: start + seconds * 1000)).word
  }

  @Test("the declared times and the request's directives decide between hit, stale and fetch")
  func declaredTime() throws {
    #expect(try word(policy(), after: 59) == "hit")
    #expect(try word(policy(), after: 60) == "fetch:stale")
    #expect(try word(policy(.serveAndRefresh(within: .seconds(10))), after: 69) == "stale+refresh")
    #expect(try word(policy(.serveAndRefresh(within: .seconds(10))), after: 70) == "fetch:stale")
    #expect(try word(policy(for: nil), after: 1) == "bypass")
    #expect(try word(policy(), after: 1, ["Cache-Control": "no-store"]) == "bypass")
    #expect(try word(policy(), after: 1, ["Cache-Control": "no-cache"]) == "fetch:request")
  }

  /// Whether the policy stores the response to a GET with this status and these header fields.
  private func isStored(_ policy: DeclaredPolicy, _ status: Int, _ fields: HeaderFields = [:]) throws -> Bool
  {
    policy.storing(try asked(), status: status, fields, CacheControl(fields)).isStored
  }

  @Test("no-store, Vary: *, 206 and a missing or zero time to live prevent storing")
  func refusedResponses() throws {
    #expect(try isStored(policy(), 200))
    #expect(try isStored(policy(), 200, ["Cache-Control": "no-cache, max-age=0"]))
    #expect(try !isStored(policy(), 200, ["Cache-Control": "no-store, max-age=100"]))
    #expect(try !isStored(policy(), 200, ["Vary": "*"]))
    #expect(try !isStored(policy(), 206))
    #expect(try !isStored(policy(for: nil), 200))
    #expect(try !isStored(policy(for: .zero), 200))
  }

  @Test("a response to HEAD is not stored")
  func head() throws {
    #expect(!policy().storing(try asked([:], .head), status: 200, [:], CacheControl([:])).isStored)
  }

  @Test("with a negative time to live 404 and 410 are stored, and no redirects or other errors")
  func negativeResponses() throws {
    for status in [404, 410] {
      #expect(try !isStored(policy(), status))
      #expect(try isStored(policy(negative: .seconds(1)), status))
    }
    for status in [301, 401, 403, 429, 500, 503] {
      #expect(try !isStored(policy(negative: .seconds(1)), status))
    }
  }

  @Test("a response expires at the declared time or up to a tenth of it earlier")
  func expiry() {
    let policy = policy()
    #expect(policy.expiry(status: 200, received: start, jitterShare: 0) == start + 60_000)
    #expect(policy.expiry(status: 200, received: start, jitterShare: 1) == start + 54_000)
    #expect(policy.expiry(status: 404, received: start, jitterShare: 0) == nil)
  }
}

struct VersionedPolicyTests {
  /// A policy that serves an old version while it is behind the requested version by less than
  /// `threshold`.
  private func policy(threshold: Int64 = 1) -> VersionedPolicy {
    var versions = CacheOptions.Versions()
    versions.threshold = threshold
    return VersionedPolicy(versions)
  }

  /// The entry has the version 7. The arguments are the threshold, the version that the request names, and
  /// the decision as the word of `words`.
  @Test(
    "an entry's version decides between hit, stale with refresh, and fetch",
    arguments: [
      (1, 7, "hit"), (1, 6, "hit"), (1, 8, "fetch:stale"), (3, 8, "stale+refresh"), (3, 9, "stale+refresh"),
      (3, 10, "fetch:stale"), (3, .max, "fetch:stale"),
    ] as [(Int64, Int64, String)])
  func versions(_ threshold: Int64, _ requested: Int64, _ word: String) throws {
    let entry = try stored([:], version: 7)
    let decision = policy(threshold: threshold).decide(try asked(), requestedVersion: requested, [entry])
    #expect(words(decision).word == word)
  }

  @Test(
    "a request with If-Match or If-Unmodified-Since bypasses the cache",
    arguments: ["If-Match", "If-Unmodified-Since"])
  func conditions(_ name: String) throws {
    let request = try asked([name: name == "If-Match" ? "\"b\"" : date(-1)])
    let entry = try stored([:], version: 7)
    #expect(words(policy().decide(request, requestedVersion: 7, [entry])).word == "bypass")
    let declaration = CacheOptions.Declaration(timeToLive: .seconds(60))
    #expect(words(DeclaredPolicy(declaration).decide(request, [entry], at: start)).word == "bypass")
  }

  @Test("the version parameter is removed from the query, unless its value is not a number")
  func versionParameter() throws {
    let found = policy().version(of: try HTTPURL("https://api.test/x.js?a=1&cachevers=12&b=2"))
    #expect(found?.version == 12)
    #expect(found?.query == "a=1&b=2")
    #expect(policy().version(of: try HTTPURL("https://api.test/x.js?cachevers=new")) == nil)
    #expect(policy().version(of: try HTTPURL("https://api.test/x.js?cachevers")) == nil)
    #expect(policy().version(of: try HTTPURL("https://api.test/x.js")) == nil)
  }
}

struct RequestKeyTests {
  @Test("the key of a URL keeps the order of its parameters")
  func urlKey() throws {
    let key = try RequestKey.url(try HTTPURL("https://api.test/a?b=2&a=1"), partition: "p")
    #expect(key.text == "GET https://api.test/a\0b=2&a=1")
    #expect(key.partition == "p")
  }

  @Test("the key of an API has the canonical parameters of query and form, or the body's digest")
  func apiKey() throws {
    func text(
      _ query: String, _ body: String = "", _ fields: HeaderFields = [:],
      _ method: NetOptRequest.Method = .post
    ) throws -> String {
      try RequestKey.api(
        "shop/live/item", try asked(fields, method), query: query, body: Array(body.utf8), partition: ""
      ).text
    }
    #expect(try text("b=2&a=%41+b") == "shop/live/item\0a=A%20b&b=2")
    let form: HeaderFields = ["Content-Type": "application/x-www-form-urlencoded"]
    #expect(try text("b=2", "a=1", form) == "shop/live/item\0a=1&b=2")
    #expect(try text("b=2", "{}") != text("b=2", "{ }"))
    // Parameters in the body of a GET differ from the same parameters in its query.
    #expect(try text("b=2", "a=1", form, .get) != text("a=1&b=2", "", [:], .get))
    #expect(try text("b=2", "a=1") != text("b=2", "a=1", form))
  }

  /// The bytes 0xe8 and 0xe9 are letters in Latin-1 and are invalid in UTF-8. Decoded as UTF-8, both would
  /// become U+FFFD, so a key of decoded text would be the same for both forms.
  @Test("different forms that are not UTF-8 have different keys")
  func invalidForms() throws {
    let form: HeaderFields = ["Content-Type": "application/x-www-form-urlencoded"]
    let texts = try [0xe8, 0xe9].map { (byte: UInt8) in
      try RequestKey.api(
        "x", try asked(form, .post), query: nil, body: Array("q=caf".utf8) + [byte], partition: ""
      )
      .text
    }
    #expect(texts[0] != texts[1])
  }

  /// In a key, a digest represents a query or a body that has no canonical form. The digest of a query begins
  /// with another byte than the digest of a body. A form counts as a query, not as a body.
  @Test("a query with a stray % has another key than a body with the same bytes")
  func strayPercentSigns() throws {
    func key(_ query: String?, _ body: String, _ type: String? = nil) throws -> CacheKey {
      let fields: HeaderFields = type.map { ["Content-Type": $0] } ?? [:]
      return try RequestKey.api(
        "search", try asked(fields, .post), query: query, body: Array(body.utf8), partition: "")
    }
    let keys = try [
      key("a=%zz", ""), key(nil, "a=%zz"), key("a=%25zz", ""), key("a=%zy", ""),
      key("", "a=%zz", "text/plain"),
    ]
    #expect(Set(keys.map(\.text)).count == 4)
    #expect(keys[1].text == keys[4].text)
    #expect(try key("a=%zz", "").text == key(nil, "a=%zz", "application/x-www-form-urlencoded").text)
  }

  @Test("a URL with an empty query has another key than a URL without one")
  func emptyQuery() throws {
    let keys = try ["", "?"].map { try RequestKey.url(try HTTPURL("https://api.test/a\($0)"), partition: "") }
    #expect(keys[0] != keys[1])
  }

  private static let credentialFields = CredentialFields(["Authorization", "Cookie", "X-Api-Key"])

  @Test("each set of credential fields has its own partition, and other fields have none")
  func partitionsByFields() throws {
    let fields: [HeaderFields] = [
      [:], ["Cookie": "a=1"], ["Cookie": "a=2"], ["X-Api-Key": "a=1"], ["Authorization": "a=1"],
      ["Cookie": "a=1", "X-Api-Key": "a=1"], ["Cookie": "", "X-Api-Key": ""], ["Cookie": ""],
      ["Cookie": "a=1\0x-api-key\u{0}3\0a=1"], ["Cookie": "1", "cookie": "1"],
    ]
    let partitions = try fields.map {
      try RequestKey.partition("", try asked($0), credentialFields: Self.credentialFields, isVerified: true)
    }
    #expect(Set(partitions).count == partitions.count)
    #expect(
      try RequestKey.partition(
        "", try asked(["X-Other": "1"]), credentialFields: Self.credentialFields, isVerified: true) == "")
  }

  /// An earlier version compared each field with all fields before it, which took 28 s for 300,000 fields.
  @Test(
    "300,000 credential fields are grouped by name, in their order, within a minute",
    .timeLimit(.minutes(1)))
  func manyCredentialFields() throws {
    var fields = HeaderFields()
    for number in 0..<300_000 {
      fields.append(HeaderField(number % 2 == 0 ? "Cookie" : "X-Api-Key", "\(number)"))
    }
    let found = Self.credentialFields.of(fields)
    let expected = [("cookie", 0), ("x-api-key", 1)].flatMap { name, first in
      stride(from: first, to: 300_000, by: 2).map { "\(name) \($0)" }
    }
    #expect(found.map { "\($0.name) \($0.value)" } == expected)
  }

  @Test("credentials, verification and signing key select the partition, which hides credentials")
  func hiddenCredentials() throws {
    func partition(_ fields: HeaderFields, isVerified: Bool = true) throws -> String {
      try RequestKey.partition(
        "tenant", try asked(fields), credentialFields: Self.credentialFields, isVerified: isVerified)
    }
    let mine = try partition(["Authorization": "Bearer mine"])
    #expect(try partition([:]) == "tenant")
    #expect(mine != (try partition([:])))
    #expect(mine != (try partition(["authorization": "Bearer yours"])))
    #expect(mine == (try partition(["authorization": "Bearer mine"])))
    #expect(!mine.contains("mine"))
    #expect(try partition([:], isVerified: false) != partition([:]))
    let signed = try ["a", "b"].map {
      try RequestKey.partition(
        "tenant", try asked(), credentialFields: Self.credentialFields, isVerified: true, signedBy: $0)
    }
    #expect(Set(signed + ["tenant"]).count == 3)
  }

  /// The names contain the texts that netopt appends to the name of a partition, such as "\0unverified". If a
  /// hostile caller could imitate another partition in this way, it could read the responses of other users.
  @Test("no partition name imitates the partition of another request")
  func hostileNames() throws {
    let names = [
      "", "\0", "\0\0", "a", "a\0", "\0unverified", "a\0unverified", "\0signed by a", "a\0\0signed by a",
      "\0\0unverified", "\0trust a", "\0\0trust a",
    ]
    // For each partition so far, the text that describes its request.
    var seen: [String: String] = [:]
    for name in names {
      for isVerified in [true, false] {
        for signer in [nil, "a"] {
          for (trust, fields): (String, HeaderFields) in [
            ("", [:]), ("a", [:]), ("", ["Authorization": "Bearer mine"]),
          ] {
            let who = "\(name.debugDescription) \(isVerified) \(signer ?? "none") \(trust) \(fields)"
            let partition = try RequestKey.partition(
              name, try asked(fields), credentialFields: Self.credentialFields, isVerified: isVerified,
              settingsDigest: trust, signedBy: signer)
            #expect(seen[partition] == nil, "\(who)")
            seen[partition] = who
          }
        }
      }
    }
  }
}
