/// An `http` or `https` URL (RFC 9110, section 4.2).
///
/// The URL keeps its path and query as they were written, dot segments included, and requests send them
/// unchanged. So the server receives the path and query that were signed. Only non-ASCII characters are
/// changed: their UTF-8 bytes are percent-encoded. The parser rejects a user name or password (RFC 9110,
/// section 4.2.4) and drops the fragment.
public struct HTTPURL: Hashable, Sendable, CustomStringConvertible {
  /// The parts of a URL, in one object, so that a copy of a URL copies one reference. Every request and
  /// response contains a URL.
  private final class Storage: Sendable {
    let origin: Origin
    let target: String

    init(_ origin: Origin, _ target: String) {
      self.origin = origin
      self.target = target
    }
  }

  private let storage: Storage

  /// The scheme, host and port.
  package var origin: Origin { storage.origin }
  /// Whether the scheme is https.
  public var isSecure: Bool { origin.scheme == .https }
  /// The host in lower case: a name, or an IP address without brackets.
  public var host: String { origin.host }
  /// The TCP port. If the URL names none, the default port of the scheme.
  public var port: UInt16 { origin.port }
  /// The path and query, as sent in the request line. Begins with "/".
  public var target: String { storage.target }

  /// Creates a URL from its parts. `target` must begin with "/".
  package init(origin: Origin, target: String) { storage = Storage(origin, target) }

  /// Whether both URLs are equal byte for byte.
  public static func == (a: HTTPURL, b: HTTPURL) -> Bool {
    a.storage === b.storage || a.origin == b.origin && a.target == b.target
  }

  /// Hashes the URL.
  public func hash(into hasher: inout Hasher) {
    hasher.combine(origin)
    hasher.combine(target)
  }

  /// The path without the query.
  public var path: Substring { target[..<(questionMark ?? target.endIndex)] }

  /// The query without its "?", or `nil` when there is none.
  public var query: Substring? { questionMark.map { target[target.utf8.index(after: $0)...] } }

  /// Where the query begins, with its "?". Bytes are compared: a comparison of characters takes a hundred times as
  /// long.
  private var questionMark: String.Index? { target.utf8.firstIndex(of: 0x3f) }

  /// The whole URL, without the scheme's default port and without a fragment. Contains the values of all
  /// parameters, secrets included: use `shown` for logs.
  public var description: String { origin.description + target }

  /// The URL for logs and other stored text, without the secrets that `description` contains. The value of a
  /// parameter whose name suggests a secret is replaced by `[hidden]`:
  /// `https://a.test/?q=1&access_token=[hidden]`. This covers parameters in the path and query,
  /// percent-encoded parameters, and URLs and JSON inside a parameter. A secret in a parameter with a name
  /// such as `q`, or in a path segment, is not recognized (docs/security.md).
  public var shown: String { SecretParameters.hidden(inURL: description) }

  /// The first 200 characters of `shown`, for messages. Of a URL longer than 16 KiB, only the part that
  /// `start` returns is used.
  package var brief: String { SecretParameters.hidden(inURL: Self.start(of: description)).printable(200) }

  /// Returns the part of a URL or of a query that is shown: the first 16 KiB. Hiding the secrets of a whole
  /// text takes up to 0.8 s for each MB. If an "@" follows the first 16 KiB, the first 16 KiB may contain a
  /// password. Then the function returns only the scheme and "…".
  package static func start(of text: String) -> String {
    guard text.utf8.count > longestRead else { return text }
    // Begin two bytes early, so that the search finds a "%40" that begins within the 16 KiB.
    let rest = text.utf8.dropFirst(longestRead - 2)
    guard !rest.contains(UInt8(ascii: "@")), rest.firstRange(ofBytes: "%40") == nil else {
      return text[..<authorityStart(text)] + "…"
    }
    return String(decoding: text.utf8.prefix(longestRead), as: UTF8.self)
  }

  /// The maximum number of bytes of a URL that `start` returns.
  private static let longestRead = 16 * 1024

  /// The maximum length in bytes of a URL, and of the path and query of a request. RFC 9110, section 4.1,
  /// recommends that servers support at least 8,000 bytes. Most servers refuse more than 8 to 32 KiB. The
  /// limit bounds the time for hashing, comparing and signing a URL.
  package static let longest = 64 * 1024

  /// Parses an absolute URL of at most 64 KiB.
  ///
  /// - Throws: `NetOptError.Code.invalidURL`, with the violated rule in the message.
  public init(_ text: String) throws(NetOptError) {
    func invalid(_ rule: String) -> NetOptError {
      NetOptError(.invalidURL, phase: .resolve, "\(Self.quoted(text)) is not a usable URL: \(rule)")
    }
    guard text.utf8.count <= Self.longest else {
      throw invalid("it has \(text.utf8.count) bytes, and netopt sends at most \(Self.longest >> 10) KiB")
    }
    if let bad = text.utf8.first(where: { $0 <= 0x20 || $0 == 0x7f }) {
      throw invalid(
        bad == 0x20
          ? "it has a space; write %20" : "it has the control character \(bad); percent-encode it")
    }
    // Comparing such a text as a string would later take seconds (`SlowText`).
    guard !SlowText.hasLongRun(text) else { throw invalid(SlowText.violation) }
    // The search compares bytes: a slash followed by a combining mark is not the `Character` "/".
    guard let mark = text.utf8.firstRange(ofBytes: "://") else {
      throw invalid("it has no scheme; begin with https://")
    }
    guard let scheme = Origin.Scheme(rawValue: text[..<mark.lowerBound].loweredASCII) else {
      throw invalid("its scheme is not https or http")
    }
    let rest = text.utf8[mark.upperBound...]
    let end = rest.firstIndex { "/?#\\".utf8.contains($0) } ?? rest.endIndex
    if rest[end...].first == UInt8(ascii: "\\") { throw invalid("it has a backslash instead of /") }
    let authority = rest[..<end]
    if authority.contains(UInt8(ascii: "@")) {
      throw invalid("it contains a user name; send an Authorization header instead")
    }
    let (host, port) = try Self.hostAndPort(Substring(authority), invalid)
    let target = Self.encoded(rest[end...].prefix { $0 != UInt8(ascii: "#") })
    self.init(
      origin: Origin(scheme, host: host, port: port), target: target.hasPrefix("/") ? target : "/" + target)
  }

  /// Splits the authority of a URL into the host, without brackets, and the port; `nil` for no port.
  ///
  /// - Parameter invalid: makes the error to throw from the violated rule in words.
  private static func hostAndPort(
    _ authority: Substring, _ invalid: (String) -> NetOptError
  ) throws(NetOptError) -> (String, UInt16?) {
    var host = authority
    var port: Substring?
    if authority.hasPrefix("[") {
      guard let close = authority.firstIndex(of: "]") else { throw invalid("the bracket is not closed") }
      host = authority[authority.index(after: authority.startIndex)..<close]
      guard IPAddress(host)?.family == .v6 else {
        throw invalid("the text between the brackets is not an IPv6 address")
      }
      let tail = authority[authority.index(after: close)...]
      guard tail.isEmpty || tail.hasPrefix(":") else { throw invalid("the text after ] is not a port") }
      port = tail.isEmpty ? nil : tail.dropFirst()
    } else {
      if let colon = authority.firstIndex(of: ":") {
        host = authority[..<colon]
        port = authority[authority.index(after: colon)...]
      }
      if let fault = hostNameFault(host) { throw invalid(fault) }
    }
    guard let port, !port.isEmpty else { return (String(host), nil) }
    guard port.utf8.allSatisfy({ (0x30...0x39).contains($0) }), let number = UInt16(port), number > 0 else {
      throw invalid("the port is not a number from 1 to 65535")
    }
    return (String(host), number)
  }

  /// Returns the reason why a host name is invalid, or `nil` if it is valid. A valid name is an IPv4 address,
  /// or has at most 253 bytes, in labels of 1 to 63 letters, digits, "-" and "_", and its last label is not a
  /// number (`isNumber`). A dot may follow the last label. RFC 1123, section 2.1, does not allow the
  /// underscore, but host names in use have it.
  package static func hostNameFault(_ host: some StringProtocol) -> String? {
    var name = Substring(host).utf8
    if name.last == UInt8(ascii: ".") { name.removeLast() }
    if name.isEmpty { return "it has no host" }
    if name.count > 253 { return "the host name is longer than 253 bytes" }
    if !name.allSatisfy({ $0 < 0x80 }) { return "the host name is not ASCII; write its xn-- form" }
    let labels = name.split(separator: UInt8(ascii: "."), omittingEmptySubsequences: false)
    for label in labels {
      if label.isEmpty { return "the host has an empty label" }
      if label.count > 63 { return "a label of the host is longer than 63 bytes" }
      let fine = label.allSatisfy { byte in
        (0x30...0x39).contains(byte) || (0x61...0x7a).contains(byte | 0x20) || byte == 0x2d || byte == 0x5f
      }
      if !fine { return "the host name has a character that host names cannot have" }
    }
    if let last = labels.last, isNumber(last), IPAddress(Substring(name)) == nil {
      return "\(host) ends in a number but is not an IPv4 address"
    }
    return nil
  }

  /// Whether the last label of a host is a decimal or hexadecimal number. Some resolvers, including
  /// libcurl's, take a host such as "1.2.3", "127.1" or "0x7f000001" for an IPv4 address, others for a name.
  /// Attackers use the difference, so the parser rejects such hosts.
  private static func isNumber(_ label: Substring.UTF8View) -> Bool {
    if label.allSatisfy({ (0x30...0x39).contains($0) }) { return true }
    guard label.starts(with: "0x".utf8) || label.starts(with: "0X".utf8) else { return false }
    return label.dropFirst(2).allSatisfy {
      (0x30...0x39).contains($0) || (0x61...0x66).contains($0 | 0x20)
    }
  }

  /// Percent-encodes non-ASCII bytes, spaces, and the control characters below the space. A request line
  /// cannot contain these.
  static func encoded(_ text: Substring.UTF8View) -> String {
    encoded(text) { $0 > 0x20 && $0 < 0x80 }
  }

  /// Percent-encodes the non-ASCII bytes of a reference. Spaces stay.
  static func encodedBeyondASCII(_ bytes: some Collection<UInt8>) -> String { encoded(bytes) { $0 < 0x80 } }

  /// Percent-encodes the bytes for which `isFine` is false.
  private static func encoded(_ text: some Collection<UInt8>, _ isFine: (UInt8) -> Bool) -> String {
    if text.allSatisfy(isFine) { return String(decoding: text, as: UTF8.self) }
    var out: [UInt8] = []
    let digits = Array("0123456789ABCDEF".utf8)
    for byte in text {
      if isFine(byte) {
        out.append(byte)
      } else {
        out += [0x25, digits[Int(byte >> 4)], digits[Int(byte & 15)]]
      }
    }
    return String(decoding: out, as: UTF8.self)
  }

  /// Returns a text that a user gave as a URL, for messages and files: without anything that may be a
  /// password, and without the values of parameters whose names suggest secrets. The text need not be a valid
  /// URL.
  package static func shown(given text: String) -> String {
    (try? HTTPURL(text))?.shown ?? withoutSecrets(text)
  }

  /// Returns the parts of a text that cannot contain a password: the scheme, then the host and port, then the
  /// path and query without secret parameters. Shows a user name and password as "…@". If the authority is
  /// malformed, drops everything after the scheme: what looks like the end of the authority may be in the
  /// middle of a password.
  private static func withoutSecrets(_ text: String) -> String {
    let start = authorityStart(text)
    let prefix = String(text[..<start])
    var shown = prefix
    var rest = text[start...]
    if let at = rest.utf8.lastIndex(of: UInt8(ascii: "@")) {
      // The "?" or "#" before the "@" may be a part of a password. Or the text after the "@" may be the end
      // of a parameter's value, without the name that shows whether it is secret.
      if rest.utf8[..<at].contains(where: "?#".utf8.contains) { return prefix + "…" }
      shown += "…@"
      rest = rest[text.utf8.index(after: at)...]
    } else if start == text.startIndex, let end = rest.utf8.firstIndex(where: { $0 <= 0x20 }) {
      // A text without a scheme may be something else, such as a header field.
      let first = withoutSecrets(String(rest[..<end]))
      return first.hasSuffix("…") ? first : first + "…"
    }
    let authority = AuthorityText.shown(Substring(rest.utf8.prefix { !"/?#\\".utf8.contains($0) }))
    if authority == "…" { return prefix + authority }
    let target = rest.utf8.dropFirst(authority.utf8.count)
    // An authority such as `u:123` may be a user name and the start of a password. Then the rest of the
    // password and a percent-encoded "@" follow.
    if SecretParameters.unwrapped(Array(target)[...]).contains(where: { $0.contains(UInt8(ascii: "@")) }) {
      return shown == prefix ? shown + authority + "…" : prefix + "…"
    }
    shown.unicodeScalars += rest.unicodeScalars
    return SecretParameters.hidden(inURL: shown)
  }

  /// Returns the index at which the authority of a text begins: after the scheme, the colon and the slashes.
  /// The colon or one slash may be missing, and without a scheme both. Returns the start of any other text.
  private static func authorityStart(_ text: String) -> String.Index {
    let scheme = text.utf8.prefix { ByteClass.isUnreserved($0) || $0 == UInt8(ascii: "+") }
    var rest = text.utf8[scheme.endIndex...]
    let hasColon = rest.first == UInt8(ascii: ":")
    if hasColon { rest = rest.dropFirst() }
    let slashes = rest.prefix { "/\\".utf8.contains($0) }
    let least = hasColon || scheme.isEmpty ? 1 : 2
    return slashes.count < least ? text.startIndex : slashes.endIndex
  }

  /// Returns the start of a text in quotation marks for a message: without secrets, with control characters
  /// replaced, and at most 200 characters long.
  static func quoted(_ text: String) -> String {
    var shown = "\""
    shown.unicodeScalars += withoutSecrets(start(of: text)).unicodeScalars
    var cut = String.UnicodeScalarView()
    cut += shown.unicodeScalars.prefix(200).map { $0.steersTerminal ? "\u{fffd}" : $0 }
    return String(cut) + (shown.unicodeScalars.count > 200 ? "…\"" : "\"")
  }
}
