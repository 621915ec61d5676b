import NetOptCaching
import NetOptCore
import Testing

struct DeclaredPolicyTests {
  private func policy(
    _ expired: CacheOptions.Declaration.Expired = .refetch, negative: Duration? = nil,
    for time: Duration? = .seconds(60)
  ) -> DeclaredPolicy {
    DeclaredPolicy(CacheOptions.Declaration(timeToLive: time, expired: expired, negativeTimeToLive: negative))
  }

  private func word(
    _ policy: DeclaredPolicy, after seconds: Int64, _ request: HeaderFields = [:]
  ) throws -> String {
    // What the server says of its freshness counts for nothing.
    let entry = try stored(["Cache-Control": "max-age=0"], declaredExpiry: start + 60_000)
    return words(policy.decide(try asked(request), [entry], at: start + seconds * 1000)).word
  }

  @Test func theDeclaredTimeDecides() throws {
    #expect(try word(policy(), after: 59) == "hit")
    #expect(try word(policy(), after: 60) == "fetch:stale")
    #expect(try word(policy(.serveAndRefresh(within: .seconds(10))), after: 69) == "stale+refresh")
    #expect(try word(policy(.serveAndRefresh(within: .seconds(10))), after: 70) == "fetch:stale")
    #expect(try word(policy(for: nil), after: 1) == "bypass")
    #expect(try word(policy(), after: 1, ["Cache-Control": "no-store"]) == "bypass")
    #expect(try word(policy(), after: 1, ["Cache-Control": "no-cache"]) == "fetch:request")
  }

  private func isStored(_ policy: DeclaredPolicy, _ status: Int, _ fields: HeaderFields = [:]) throws -> Bool
  {
    policy.storing(try asked(), status: status, fields, CacheControl(fields)).isStored
  }

  @Test func noStoreWins() throws {
    #expect(try isStored(policy(), 200))
    #expect(try isStored(policy(), 200, ["Cache-Control": "no-cache, max-age=0"]))
    #expect(try !isStored(policy(), 200, ["Cache-Control": "no-store, max-age=100"]))
    #expect(try !isStored(policy(), 200, ["Vary": "*"]))
    #expect(try !isStored(policy(), 206))
    #expect(try !isStored(policy(for: nil), 200))
    #expect(try !isStored(policy(for: .zero), 200))
  }

  @Test func anAnswerToHeadIsNoneToGet() throws {
    #expect(!policy().storing(try asked([:], .head), status: 200, [:], CacheControl([:])).isStored)
  }

  @Test func negativeAnswersAreStoredWhenAskedFor() throws {
    for status in [404, 410] {
      #expect(try !isStored(policy(), status))
      #expect(try isStored(policy(negative: .seconds(1)), status))
    }
    for status in [301, 401, 403, 429, 500, 503] {
      #expect(try !isStored(policy(negative: .seconds(1)), status))
    }
  }

  @Test func expiryIsJitteredAndNeverLate() {
    let policy = policy()
    #expect(policy.expiry(status: 200, received: start, luck: 0) == start + 60_000)
    #expect(policy.expiry(status: 200, received: start, luck: 1) == start + 54_000)
    #expect(policy.expiry(status: 404, received: start, luck: 0) == nil)
  }
}

struct VersionedPolicyTests {
  private func policy(threshold: Int64 = 1) -> VersionedPolicy {
    var versions = CacheOptions.Versions()
    versions.threshold = threshold
    return VersionedPolicy(versions)
  }

  @Test(
    arguments: [
      (1, 7, "hit"), (1, 6, "hit"), (1, 8, "fetch:stale"), (3, 8, "stale+refresh"), (3, 9, "stale+refresh"),
      (3, 10, "fetch:stale"), (3, .max, "fetch:stale"),
    ] as [(Int64, Int64, String)])
  func theVersionDecides(_ threshold: Int64, _ wanted: Int64, _ word: String) throws {
    let entry = try stored([:], version: 7)
    #expect(words(policy(threshold: threshold).decide(try asked(), wanted: wanted, [entry])).word == word)
  }

  @Test(
    "conditions that the origin evaluates are left to it", arguments: ["If-Match", "If-Unmodified-Since"])
  func conditions(_ name: String) throws {
    let request = try asked([name: name == "If-Match" ? "\"b\"" : date(-1)])
    let entry = try stored([:], version: 7)
    #expect(words(policy().decide(request, wanted: 7, [entry])).word == "bypass")
    let declaration = CacheOptions.Declaration(timeToLive: .seconds(60))
    #expect(words(DeclaredPolicy(declaration).decide(request, [entry], at: start)).word == "bypass")
  }

  @Test func theVersionIsNoPartOfTheKey() throws {
    let found = policy().version(of: try HTTPURL("https://api.test/x.js?a=1&cachevers=12&b=2"))
    #expect(found?.wanted == 12)
    #expect(found?.query == "a=1&b=2")
    #expect(policy().version(of: try HTTPURL("https://api.test/x.js?cachevers=new")) == nil)
    #expect(policy().version(of: try HTTPURL("https://api.test/x.js?cachevers")) == nil)
    #expect(policy().version(of: try HTTPURL("https://api.test/x.js")) == nil)
  }
}

struct RequestKeyTests {
  @Test func aURLIsKeptAsItIs() throws {
    let key = try RequestKey.url(try HTTPURL("https://api.test/a?b=2&a=1"), partition: "p")
    #expect(key.text == "GET https://api.test/a\0b=2&a=1")
    #expect(key.partition == "p")
  }

  @Test func parametersOfAnAPIAreCanonical() throws {
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
    // What GET has in a body is not what it asks for in the query.
    #expect(try text("b=2", "a=1", form, .get) != text("a=1&b=2", "", [:], .get))
    #expect(try text("b=2", "a=1") != text("b=2", "a=1", form))
  }

  /// Latin-1 is no UTF-8: two such forms are two keys.
  @Test func formsThatAreNoTextAreToldApart() throws {
    let form: HeaderFields = ["Content-Type": "application/x-www-form-urlencoded"]
    let texts = try [0xe8, 0xe9].map { (byte: UInt8) in
      try RequestKey.api(
        "x", try asked(form, .post), query: nil, body: Array("q=caf".utf8) + [byte], partition: ""
      )
      .text
    }
    #expect(texts[0] != texts[1])
  }

  /// What has no canonical form is told apart by digests: in the query and in a body by different ones.
  @Test func aStrayPercentSignIsNoBody() throws {
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

  @Test func anEmptyQueryIsAnotherURL() throws {
    let keys = try ["", "?"].map { try RequestKey.url(try HTTPURL("https://api.test/a\($0)"), partition: "") }
    #expect(keys[0] != keys[1])
  }

  private static let credentialFields = CredentialFields(["Authorization", "Cookie", "X-Api-Key"])

  @Test func everyFieldWithCredentialsTellsUsersApart() throws {
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

  /// The fields of one name keep their order. For each field all before it were compared once, which took 28 s for 300,000.
  @Test(.timeLimit(.minutes(1))) func manyFieldsWithCredentials() throws {
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

  @Test func credentialsArePartitionsAndNotToBeSeen() throws {
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

  /// Names as a hostile caller would choose them, to be somebody else.
  @Test func noNameOfAPartitionStandsForAnother() throws {
    let names = [
      "", "\0", "\0\0", "a", "a\0", "\0unverified", "a\0unverified", "\0signed by a", "a\0\0signed by a",
      "\0\0unverified", "\0trust a", "\0\0trust a",
    ]
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
              trust: trust, signedBy: signer)
            #expect(seen[partition] == nil, "\(who)")
            seen[partition] = who
          }
        }
      }
    }
  }
}
