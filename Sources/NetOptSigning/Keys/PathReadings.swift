import NetOptCore

/// The ways in which different servers read one path.
///
/// Servers agree on the path of a URL, but not on the resource that it names. Some decode `%2f` before they
/// split the path into segments, some after. Servers of Java programs ignore the parameters of a segment
/// (`..;x`), servers on Windows take `\` for `/`, and a path that a proxy has decoded may be decoded again
/// (Orange Tsai, "Breaking Parser Logic", Black Hat USA 2018).
struct PathReadings {
  /// The path, percent-decoded once.
  private let decoded: [UInt8]
  /// The path, percent-decoded once except for `%2f` and `%5c`.
  private let withEncodedSeparators: [UInt8]
  /// The path, percent-decoded until nothing is encoded, with `/` for `\` and without parameters of segments.
  private let ofLenientServers: [UInt8]

  private static let slash: UInt8 = 0x2f
  private static let backslash: UInt8 = 0x5c
  private static let percent: UInt8 = 0x25
  /// The maximum number of times that a path is decoded. No chain of servers decodes it more often.
  private static let mostDecodings = 4

  /// Reads a path. The result is `nil` if the most lenient reading of the path has a segment `.` or `..`, or
  /// if the path is encoded more than `mostDecodings` times. Only the server knows where such a path leads.
  init?(_ path: String) {
    decoded = PercentEncoding.decoded(path.utf8)
    withEncodedSeparators = Self.decodedExceptSeparators(Array(path.utf8))
    var lenient = decoded
    for _ in 1..<Self.mostDecodings { lenient = PercentEncoding.decoded(lenient) }
    guard PercentEncoding.decoded(lenient) == lenient else { return nil }
    ofLenientServers = Self.withoutParameters(lenient)
    let segments = ofLenientServers.split(separator: Self.slash)
    guard !segments.contains(where: { $0.elementsEqual(".".utf8) || $0.elementsEqual("..".utf8) }) else {
      return nil
    }
  }

  /// Whether the path is equal to the prefix, or lies below it, in each of the three readings.
  func lieBelow(_ prefix: [UInt8]) -> Bool {
    Self.begins(decoded, with: prefix) && Self.begins(withEncodedSeparators, with: prefix)
      && Self.begins(ofLenientServers, with: Self.withoutParameters(prefix))
  }

  /// Whether a path is equal to a prefix, or lies below it. The prefix must end where a segment of the path
  /// ends.
  private static func begins(_ path: [UInt8], with prefix: [UInt8]) -> Bool {
    guard path.starts(with: prefix) else { return false }
    return path.count == prefix.count || prefix.last == slash || path[prefix.count] == slash
  }

  /// Percent-decodes a path once. Leaves `%2f` and `%5c` as they are, and each `%` without two hexadecimal
  /// digits.
  private static func decodedExceptSeparators(_ path: [UInt8]) -> [UInt8] {
    var out: [UInt8] = []
    var rest = path[...]
    while let index = rest.firstIndex(of: percent) {
      out += rest[..<index]
      let triplet = rest[index...].prefix(3)
      let byte = PercentEncoding.decoded(triplet)
      let isKept = byte.count > 1 || byte == [slash] || byte == [backslash]
      out += isKept ? [percent] : byte
      rest = rest[(isKept ? index + 1 : triplet.endIndex)...]
    }
    return out + rest
  }

  /// Replaces `\` by `/`, and cuts each segment at its first `;`.
  private static func withoutParameters(_ path: [UInt8]) -> [UInt8] {
    let segments = path.split(omittingEmptySubsequences: false) { $0 == slash || $0 == backslash }
    return Array(segments.map { $0.prefix { $0 != UInt8(ascii: ";") } }.joined(separator: [slash]))
  }
}
