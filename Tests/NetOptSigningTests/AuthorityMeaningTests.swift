import NetOptCore
import Testing

@testable import NetOptSigning

/// The verifier refuses a message whose `Host` field was changed after signing, if a server may read the new
/// field as another host or port. It also refuses messages with an invalid `Host` field or HTTP version.
@Suite struct AuthorityMeaningTests {
  /// The time of signing and of verification, in seconds since 1970.
  private static let now: Int64 = 1_700_000_000
  private static let key = SigningKey(
    id: "app1.v2", secret: Array("netopt-test-secret".utf8), salt: "salt-2024", schemes: [.netopt1])

  /// Signs `GET /a` with this `Host` field. Returns the fields that carry the signature; `nil` when netopt
  /// cannot read or sign the message.
  private static func signed(_ host: String) -> [HeaderField]? {
    guard let request = try? SigningRequest(http: message(host: host), scheme: .https) else { return nil }
    return try? NetOpt1().sign(request, with: key, at: SigningMoment(now: now)).headers
  }

  /// A message without a body. `line` is its request line.
  private static func message(_ line: String = "GET /a HTTP/1.1", host: String, _ fields: [HeaderField] = [])
    -> [UInt8]
  {
    Array(
      ([line, "Host: \(host)"] + fields.map { "\($0.name): \($0.value)" }).joined(separator: "\r\n").utf8)
      + Array("\r\n\r\n".utf8)
  }

  /// Whether the verifier accepts the signature of a message.
  private static func verifies(_ message: [UInt8]) -> Bool {
    guard let request = try? SigningRequest(http: message, scheme: .https) else { return false }
    return SignatureVerifier(keys: KeyRing([key]), nonces: nil)
      .verify(request, scheme: NetOpt1(), .init(now: now)).isValid
  }

  /// Returns a canonical form of a `Host` field: in lower case, and without an empty or default port. Fields
  /// that docs/signing.md treats as the same have the same form.
  private static func meaning(_ authority: String) -> String {
    let text = authority.lowercased()
    for ending in [":443", ":"] where text.hasSuffix(ending) && text.count > ending.count {
      return String(text.dropLast(ending.count))
    }
    return text
  }

  @Test("a signature is not valid for a Host field with another meaning", arguments: 1...300)
  func oneChange(_ seed: UInt64) throws {
    var random = SplitMix64(seed: seed)
    func pick<T>(_ choices: [T], _ random: inout SplitMix64) -> T {
      choices[Int(random.below(UInt64(choices.count)))]
    }
    let hosts = ["a.test", "api.a-b.test", "[2001:db8::1]", "127.0.0.1", "A.Test"]
    let ports = ["", ":", ":443", ":8443", ":80", ":0443"]
    let host = pick(hosts, &random) + pick(ports, &random)
    let fields = try #require(Self.signed(host), "\(host)")
    #expect(Self.verifies(Self.message(host: host, fields)))
    let pieces = [":", ":443", ":8443", ".", "[", "]", "0", "a", "%41", "::1", "@", "-", "2001:db8::1", ":x"]
    for _ in 0..<40 {
      var changed = Array(host)
      let index = Int(random.below(UInt64(changed.count + 1)))
      switch random.below(3) {
      case 0: changed.insert(contentsOf: pick(pieces, &random), at: index)
      case 1 where index < changed.count: changed.remove(at: index)
      default: changed.replaceSubrange(index..<min(index + 1, changed.count), with: pick(pieces, &random))
      }
      let other = String(changed)
      guard Self.meaning(other) != Self.meaning(host) else { continue }
      #expect(!Self.verifies(Self.message(host: other, fields)), "\(host) verifies as \(other)")
    }
  }

  @Test(
    "an authority that is not one host with at most one port is refused",
    arguments: [
      "a.test:8443:", "a.test:8443:443", "2001:db8::1", "2001:db8::1:443", "[::1", "[::1]x", "[::1]:1:2",
      "a]",
      "[]", ":443", "a.test:x", "[[::1]]",
    ])
  func refused(_ host: String) { #expect(Self.signed(host) == nil) }

  @Test(
    "an HTTP version is one digit, or two digits with a dot between them",
    arguments: [
      "HTTP/1.1": true, "HTTP/1.0": true, "HTTP/2": true, "HTTP/2.0": true, "HTTP/": false, "HTTP/A.1": false,
      "HTTP/1.": false, "HTTP/11": false, "HTTP/1.1.1": false, "HTTP/#.1": false, "http/1.1": false,
    ])
  func version(_ version: String, isRead: Bool) {
    let read = try? SigningRequest(http: Self.message("GET /a \(version)", host: "a.test"), scheme: .https)
    #expect((read != nil) == isRead)
  }
}
