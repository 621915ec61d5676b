package import NetOptCore
import NetOptCrypto

/// Computes the number by which a removal finds the responses of a URL whose key does not contain the URL:
/// the key has the declared name of an API, or it lacks the parameter with the version.
///
/// The number has 63 bits of MD5, and the lowest bit says whether the key has a declared name. The order of
/// the parameters does not matter. Two URLs may have the same number. A removal of one of them then also
/// forgets the responses of the other, which are fetched again.
package enum ResourceHash {
  /// The number of a URL.
  ///
  /// - Parameters:
  ///   - isNamed: whether the key has the declared name of an API.
  ///   - version: the name of the parameter with the version, in `versioned` mode. This
  ///     parameter is not part of the number. `nil` in `api` mode.
  /// - Returns: `nil` when this machine's libcrypto has no MD5. Then there are no keys either.
  package static func of(_ url: HTTPURL, isNamed: Bool, version: String? = nil) -> Int64? {
    guard let resource = part("\(version == nil ? "api" : "versioned") \(url.origin)\(url.path)") else {
      return nil
    }
    var sum = resource
    for piece in pieces(url) where version.map({ name(of: piece) != $0 }) ?? true {
      guard let part = part(canonical(piece)) else { return nil }
      sum &+= part
    }
    return marked(sum, isNamed: isNamed)
  }

  /// Whether the key of a response with this number has the declared name of an API.
  static func isNamed(_ number: Int64) -> Bool { number & 1 == 1 }

  private static func marked(_ sum: Int64, isNamed: Bool) -> Int64 { sum & ~1 | (isNamed ? 1 : 0) }

  /// The numbers that responses of a URL may have, whatever the mode and the name of the parameter with the
  /// version. Only a parameter whose value is an integer can be the version.
  static func all(of url: HTTPURL) -> Set<Int64> {
    guard let api = of(url, isNamed: true), let versioned = part("versioned \(url.origin)\(url.path)") else {
      return []
    }
    // The sum of the parameters of each name, and the names that may be the version.
    var sums: [Substring: Int64] = [:]
    var all = versioned
    var versions: Set<Substring> = []
    for piece in pieces(url) {
      let name = name(of: piece)
      let part = part(canonical(piece)) ?? 0
      sums[name, default: 0] &+= part
      all &+= part
      if Int64(piece.dropFirst(name.count + 1)) != nil { versions.insert(name) }
    }
    let rests = versions.map { all &- sums[$0, default: 0] }
    return Set([api] + rests.flatMap { [marked($0, isNamed: true), marked($0, isNamed: false)] })
  }

  /// The parameters of the query that are not empty, as they were written.
  private static func pieces(_ url: HTTPURL) -> [Substring] { (url.query ?? "").split(separator: "&") }

  /// The name of a parameter, as it was written.
  private static func name(of piece: Substring) -> Substring { piece.prefix { $0 != "=" } }

  /// The canonical form of a parameter; the parameter as it was written when it has none.
  private static func canonical(_ piece: Substring) -> String {
    let text = String(piece)
    guard PercentEncoding.fault(in: text) == nil else { return text }
    var bytes: [UInt8] = []
    QueryParameters.append(query: text, plus: true, to: &bytes)
    return String(decoding: bytes, as: UTF8.self)
  }

  private static func part(_ text: String) -> Int64? {
    (try? Digest.of(text, .md5)).map { Int64(bitPattern: MD5Digest($0).high) }
  }
}
