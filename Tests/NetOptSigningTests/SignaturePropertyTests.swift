import NetOptCore
import Testing

@testable import NetOptSigning

/// Requests by chance: what is signed is accepted, and what was changed in one byte is not.
@Suite struct SignaturePropertyTests {
  private static let now: Int64 = 1_700_000_000
  private static let keys = KeyRing([
    GoldenVectorTests.key, SigningKey(id: "app1.v1", secret: Array("other".utf8), salt: "salt-2023"),
  ])
  private static let pieces = [
    "a", "Z", "0", "-", "_", ".", "~", "%20", "%2F", "%C3%A9", "é", "日", "+", "*", "(", "!", ":", "@", ",",
    "%zz", "%",
  ]

  private func text(_ random: inout SplitMix64, upTo count: UInt64) -> String {
    (0..<random.below(count)).map { _ in Self.pieces[Int(random.below(UInt64(Self.pieces.count)))] }.joined()
  }

  private func request(_ random: inout SplitMix64) -> SigningRequest {
    let path = (0...random.below(3)).map { _ in "/" + text(&random, upTo: 6) }.joined()
    let query = (0..<random.below(5)).map { _ in
      text(&random, upTo: 4) + (random.below(4) > 0 ? "=" + text(&random, upTo: 5) : "")
    }.joined(separator: "&")
    var headers: HTTPFields = [:]
    if random.below(2) == 0 { headers.append(HTTPField("Content-Type", "text/plain")) }
    if random.below(2) == 0 { headers.append(HTTPField("Idempotency-Key", "k-\(random.below(100))")) }
    return SigningRequest(
      method: ["GET", "POST", "PUT"][Int(random.below(3))], scheme: .https, authority: "api.example.com:8443",
      path: path, query: query.isEmpty ? nil : query, headers: headers,
      body: (0..<random.below(40)).map { _ in UInt8(truncatingIfNeeded: random.next()) })
  }

  private func signed(_ request: SigningRequest) throws -> SigningRequest {
    let result = try NetOpt1().sign(request, with: GoldenVectorTests.key, at: SigningMoment(now: Self.now))
    var request = request
    for field in result.headers { request.headers[field.name] = field.value }
    return request
  }

  private func verdict(_ request: SigningRequest) -> Reason {
    SignatureVerifier(keys: Self.keys, nonces: nil).verify(request, .init(now: Self.now)).reason
  }

  @Test(arguments: 1...40 as ClosedRange<UInt64>)
  func everyByteThatIsChangedIsNoticed(_ seed: UInt64) throws {
    var random = SplitMix64(seed: seed)
    let request = try signed(request(&random))
    #expect(verdict(request) == .ok)
    for place in places(request) {
      for _ in 0..<2 {
        guard let changed = place(&random), !Self.means(changed, theSameAs: request) else { continue }
        #expect(verdict(changed) != .ok, "seed \(seed): \(changed) for \(request)")
      }
    }
  }

  /// What changes one byte of each part of a request, at each place.
  private func places(_ request: SigningRequest) -> [(inout SplitMix64) -> SigningRequest?] {
    var places: [(inout SplitMix64) -> SigningRequest?] = []
    func add(_ path: WritableKeyPath<SigningRequest, String>) {
      for index in request[keyPath: path].utf8.indices {
        places.append { random in
          var bytes = Array(request[keyPath: path].utf8)
          let offset = request[keyPath: path].utf8.distance(
            from: request[keyPath: path].utf8.startIndex, to: index)
          bytes[offset] = Self.other(bytes[offset], &random)
          guard let text = String(validating: bytes, as: UTF8.self) else { return nil }
          var changed = request
          changed[keyPath: path] = text
          return changed
        }
      }
    }
    add(\.method)
    add(\.authority)
    add(\.path)
    add(\.queryText)
    for index in request.headers.indices { add(\.headers[index].value) }
    for index in request.body.indices {
      places.append { random in
        var changed = request
        changed.body[index] ^= UInt8(1 + random.below(255))
        return changed
      }
    }
    return places
  }

  private static func other(_ byte: UInt8, _ random: inout SplitMix64) -> UInt8 {
    while true {
      let next = UInt8(0x21 + random.below(0x5e))
      if next != byte { return next }
    }
  }

  /// Whether two requests say the same by the rules of URLs: the case of a host's letters and of the digits of a percent-encoding.
  private static func means(_ a: SigningRequest, theSameAs b: SigningRequest) -> Bool {
    func pairs(_ request: SigningRequest) -> [[UInt8]] {
      QueryParameters(request.query, plus: true).pairs.flatMap { [$0.key, $0.value] }
    }
    return a.method == b.method && a.authority.lowercased() == b.authority.lowercased()
      && PercentEncoding.decoded(a.path.utf8) == PercentEncoding.decoded(b.path.utf8)
      && a.path.utf8.count { $0 == 0x2f } == b.path.utf8.count { $0 == 0x2f }
      && pairs(a) == pairs(b) && a.body == b.body && a.headers == b.headers
  }

  @Test func whatIsSignedByChanceIsAccepted() throws {
    var random = SplitMix64(seed: 7)
    for _ in 0..<500 { #expect(verdict(try signed(request(&random))) == .ok) }
  }
}

extension SigningRequest {
  fileprivate var queryText: String {
    get { query ?? "" }
    set { if query != nil { query = newValue } }
  }
}
