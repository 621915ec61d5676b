import Glibc
import NetOptCore
import NetOptLocking

@testable import NetOptCaching

/// Keys and entries for tests.
enum Samples {
  /// The key of a GET of `https://a.test/NAME?q=1`.
  static func key(_ name: String, partition: String = "") throws -> CacheKey {
    try CacheKey(api: "GET https://a.test/\(name)", parameters: "q=1", partition: partition)
  }

  /// A stored response with the status 200, of a request that was sent 20 ms before `received`.
  ///
  /// - Parameters:
  ///   - received: when the response head was received, in milliseconds since 1970.
  ///   - cost: how long the fetch took, in microseconds (`CacheEntry.fetchMicroseconds`).
  ///   - expiry: `CacheEntry.declaredExpiry`, in milliseconds since 1970.
  ///   - version: `CacheEntry.resourceVersion`.
  static func entry(
    _ key: CacheKey, body: [UInt8] = Array("hello".utf8), selectors: [CacheEntry.Selector] = [],
    received: Int64 = 1_700_000_000_000, cost: Int64 = 20_000, expiry: Int64? = nil, version: Int64? = nil
  ) -> CacheEntry {
    CacheEntry(
      key: key, selectors: selectors, status: 200,
      fields: ["Content-Type": "text/plain", "ETag": "\"a-validator-of-some-length\""], body: body,
      requested: received - 20, received: received, declaredExpiry: expiry, resourceVersion: version,
      fetchMicroseconds: cost)
  }

  /// Two keys with the same MD5 digest and different texts. Wang, Feng, Lai and Yu published two messages
  /// with the same MD5 digest in 2004. The digest of both keys is the digest of these messages. The text of
  /// a key has one character, from U+0000 to U+00FF, for each byte of its message.
  static func collision(partition: String = "") throws -> (CacheKey, CacheKey) {
    let one =
      "d131dd02c5e6eec4693d9a0698aff95c2fcab58712467eab4004583eb8fb7f8955ad340609f4b30283e488832571415a"
      + "085125e8f7cdc99fd91dbdf280373c5bd8823e3156348f5bae6dacd436c919c6dd53e2b487da03fd02396306d248cda0"
      + "e99f33420f577ee8ce54b67080a80d1ec69821bcb6a8839396f9652b6ff72a70"
    let other =
      "d131dd02c5e6eec4693d9a0698aff95c2fcab50712467eab4004583eb8fb7f8955ad340609f4b30283e4888325f1415a"
      + "085125e8f7cdc99fd91dbd7280373c5bd8823e3156348f5bae6dacd436c919c6dd53e23487da03fd02396306d248cda0"
      + "e99f33420f577ee8ce54b67080280d1ec69821bcb6a8839396f965ab6ff72a70"
    func bytes(_ text: String) -> [UInt8] {
      stride(from: 0, to: text.count, by: 2).map { offset in
        let start = text.index(text.startIndex, offsetBy: offset)
        return UInt8(text[start..<text.index(start, offsetBy: 2)], radix: 16) ?? 0
      }
    }
    func key(_ bytes: [UInt8]) throws -> CacheKey {
      let digest = CacheKey.digest(of: bytes) ?? MD5Digest([UInt8](repeating: 0, count: 16))
      let text = String(String.UnicodeScalarView(bytes.map { Unicode.Scalar($0) }))
      return CacheKey(text: text, digest: digest, partition: partition)
    }
    return (try key(bytes(one)), try key(bytes(other)))
  }
}

/// A clock that stands still until a test advances it. The time is in milliseconds since 1970.
final class StoppedDate: Sendable {
  private let moment = Locked<Int64>(1_700_000_000_000)
  var now: Int64 { moment.withLock { $0 } }
  func advance(milliseconds: Int64) { moment.withLock { $0 += milliseconds } }
}

/// Collects the warnings of a store, in the order in which the store reports them.
final class Warnings: Sendable {
  private let kept = Locked<[NetOptError]>([])
  var messages: [String] { kept.withLock { $0.map(\.message) } }
  func add(_ warning: NetOptError) { kept.withLock { $0.append(warning) } }
}
