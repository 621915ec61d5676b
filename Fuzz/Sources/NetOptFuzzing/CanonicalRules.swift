import NetOptCore
import NetOptSigning

/// The rules for the canonical form of a request's path and query in the scheme `netopt1`. A second, slow
/// implementation of the canonical form, written from docs/signing.md alone, must give the same result.
enum CanonicalRules {
  /// Checks an input that is a path with or without a query. Returns a description of the broken rule, or
  /// `nil` when all rules hold.
  static func target(_ input: [UInt8]) -> String? {
    let url =
      "https://api.example.com" + (input.first == 0x2f ? "" : "/") + String(decoding: input, as: UTF8.self)
    guard let request = try? SigningRequest("GET", url), let lines = lines(of: request) else { return nil }
    if (request.path + "?" + (request.query ?? "")).contains(/%(?![0-9A-Fa-f]{2})/) {
      return "a % that stands for nothing is signed"
    }
    if lines.count != 10 { return "the string has \(lines.count) lines" }
    let path = joined(request.path.utf8.split(separator: 0x2f, omittingEmptySubsequences: false), "/") {
      encoded(decoded($0, plus: false))
    }
    if lines[6] != path { return "the path is \(lines[6]), and should be \(path)" }
    let query = canonical(request.query)
    if lines[7] != query { return "the parameters are \(lines[7]), and should be \(query)" }
    var again = request
    again.path = lines[6]
    again.query = request.query == nil ? nil : lines[7]
    if Self.lines(of: again) != lines { return "the canonical form of the canonical form is another one" }
    return nil
  }

  /// The lines of the string that is signed for a request; `nil` when the request cannot be signed. Line 6 is
  /// the path and line 7 the query, counted from 0.
  private static func lines(of request: SigningRequest) -> [String]? {
    let signed = try? SigningRules.signer?.sign(
      request, at: SigningMoment(now: 1_700_000_000, nonce: "AAECAwQFBgcICQoLDA0ODw"))
    return signed?.stringToSign.split(separator: "\n", omittingEmptySubsequences: false).map(String.init)
  }

  /// The canonical form of a query: its parameters decoded, encoded again and sorted by name. The values of
  /// one name stay in order.
  private static func canonical(_ query: String?) -> String {
    guard let query, !query.isEmpty else { return "" }
    let pairs = query.utf8.split(separator: 0x26, omittingEmptySubsequences: false).map { piece in
      let mark = piece.firstIndex(of: 0x3d) ?? piece.endIndex
      return (
        encoded(decoded(piece[..<mark], plus: true)),
        encoded(
          decoded(mark < piece.endIndex ? piece[piece.index(after: mark)...] : piece[mark...], plus: true))
      )
    }
    let sorted = pairs.enumerated().sorted { a, b in
      a.element.0 == b.element.0
        ? a.offset < b.offset : Array(a.element.0.utf8).lexicographicallyPrecedes(b.element.0.utf8)
    }
    return sorted.map { "\($0.element.0)=\($0.element.1)" }.joined(separator: "&")
  }

  /// Converts pieces to text and joins them.
  private static func joined<Piece>(_ pieces: [Piece], _ separator: String, _ text: (Piece) -> String)
    -> String
  {
    pieces.map(text).joined(separator: separator)
  }

  /// Decodes percent-encoding.
  ///
  /// - Parameter plus: whether `+` stands for a space.
  private static func decoded(_ text: Substring.UTF8View, plus: Bool) -> [UInt8] {
    let bytes = Array(text)
    var out: [UInt8] = []
    var index = 0
    while index < bytes.count {
      if bytes[index] == 0x25, index + 2 < bytes.count,
        let high = Character(UnicodeScalar(bytes[index + 1])).hexDigitValue,
        let low = Character(UnicodeScalar(bytes[index + 2])).hexDigitValue
      {
        out.append(UInt8(high * 16 + low))
        index += 3
      } else {
        out.append(plus && bytes[index] == 0x2b ? 0x20 : bytes[index])
        index += 1
      }
    }
    return out
  }

  /// Percent-encodes all bytes except the unreserved characters of RFC 3986.
  private static func encoded(_ bytes: [UInt8]) -> String {
    let kept = Set("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~".utf8)
    return bytes.map { byte in
      let hex = String(byte, radix: 16, uppercase: true)
      return kept.contains(byte) ? String(UnicodeScalar(byte)) : "%" + (byte < 16 ? "0" : "") + hex
    }.joined()
  }
}
