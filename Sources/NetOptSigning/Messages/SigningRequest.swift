public import NetOptCore
import NetOptCrypto

/// A request or a response to sign or to verify. Path and query keep the bytes in which they were written,
/// because schemes sign these bytes.
public struct SigningRequest: Sendable {
  /// The method, which is case-sensitive.
  public var method: String
  /// The URL scheme, http or https. It determines the default port.
  package var scheme: Origin.Scheme
  /// Host and port as the request states them, in upper or lower case, with or without the port.
  public var authority: String
  /// The path as it was written, without the query. Begins with "/".
  public var path: String
  /// The query as it was written, without its "?"; `nil` if there is none.
  public var query: String?
  /// The header fields.
  public var headers: HeaderFields
  /// The body as it is sent: content coding has been applied.
  public var body: [UInt8]
  /// The SHA-256 digest of a body that is not in memory, such as a file; `body` is then empty. `nil` for a
  /// body in memory.
  package var digestOfBody: [UInt8]?
  /// The status of a response; `nil` for a request.
  public private(set) var status: Int?

  /// Makes a request from its parts.
  package init(
    method: String, scheme: Origin.Scheme = .https, authority: String, path: String, query: String? = nil,
    headers: HeaderFields = [:], body: [UInt8] = []
  ) {
    self.method = method
    self.scheme = scheme
    self.authority = authority
    self.path = path
    self.query = query
    self.headers = headers
    self.body = body
  }

  /// Makes a response. Only `rfc9421` signs and verifies responses: the status (`@status`) and the header
  /// fields. netopt does not support components of the request to which the response belongs (`;req`).
  public init(status: Int, headers: HeaderFields, body: [UInt8] = []) {
    self.init(method: "", authority: "", path: "", headers: headers, body: body)
    self.status = status
  }

  /// Makes a request to sign from a request of the client.
  ///
  /// - Parameters:
  ///   - request: the request. Its `Host` field, if it has one, is the authority and overrides the URL.
  ///   - body: the body as it is sent.
  public init(_ request: NetOptRequest, body: [UInt8]) {
    self.init(
      method: request.method.rawValue, scheme: request.url.origin.scheme,
      authority: request.headers["Host"] ?? request.url.origin.authority, path: String(request.url.path),
      query: request.url.query.map(String.init), headers: request.headers, body: body)
  }

  /// Makes a request with a URL whose bytes are not changed: spaces, UTF-8, "//" and ".." stay as they are. A
  /// `Host` field in `headers` is the authority and overrides the URL.
  ///
  /// A URL with an unencoded "#" is refused, because no request carries a fragment. If a verifier dropped the
  /// fragment, it would treat different targets as equal.
  ///
  /// - Throws: `NetOptError.Code.invalidURL`.
  public init(
    _ method: String, _ url: String, headers: HeaderFields = [:], body: [UInt8] = []
  ) throws(NetOptError) {
    do {
      try self.init(method, rawURL: url, headers: headers, body: body)
    } catch {
      throw NetOptError(.invalidURL, phase: .sign, error.detail)
    }
  }

  /// Does the same as the public initialiser with a URL, but throws a `SigningFault` with the reason
  /// `malformedRequest` instead of a `NetOptError`.
  package init(
    _ method: String, rawURL url: String, headers: HeaderFields, body: [UInt8]
  ) throws(SigningFault) {
    let bytes = url.utf8
    guard let mark = bytes.firstRange(ofBytes: "://"),
      let scheme = Origin.Scheme(rawValue: String(url[..<mark.lowerBound]).loweredASCII)
    else { throw SigningFault(.malformedRequest, "the URL has no scheme; begin with https:// or http://") }
    let rest = bytes[mark.upperBound...]
    guard !rest.contains(UInt8(ascii: "#")) else { throw Self.fragmentFault }
    let end = rest.firstIndex { $0 == UInt8(ascii: "/") || $0 == UInt8(ascii: "?") } ?? rest.endIndex
    let target = String(Substring(rest[end...]))
    self.init(
      method: method, scheme: scheme, authority: headers["Host"] ?? String(Substring(rest[..<end])),
      path: "", headers: headers, body: body)
    set(target: target)
    try check()
  }

  /// Sets path and query from a target as in a request line, such as `/path?query`. An empty path becomes
  /// "/".
  package mutating func set(target: String) {
    let mark = target.utf8.firstIndex(of: UInt8(ascii: "?"))
    path = String(target[..<(mark ?? target.endIndex)])
    if path.isEmpty { path = "/" }
    query = mark.map { String(target[target.utf8.index(after: $0)...]) }
  }

  /// Checks the parts of a request or response that all schemes rely on: status, method, target, authority
  /// and fields.
  ///
  /// - Throws: `malformedRequest`.
  package func check() throws(SigningFault) {
    if let status {
      guard (100...999).contains(status) else {
        throw SigningFault(.malformedRequest, "a status must have three digits")
      }
    } else {
      try checkTarget()
    }
    for field in headers {
      let isPlain =
        !field.name.isEmpty && ByteClass.all(field.name, ByteClass.isUnreserved)
        && ByteClass.all(field.value) { $0 >= 0x20 && $0 < 0x7f }
      // Only other names and values need the slower checks.
      if !isPlain {
        if let fault = HeaderFields.fault(of: field) { throw SigningFault(.malformedRequest, fault) }
        try Self.checkRuns(Array(field.value.utf8), "the field \(field.name)")
      }
      // Schemes sign the Host field or the authority, and scopes check the authority. So both must name the
      // same host.
      if ByteClass.isSameName(field.name, "Host"), !ByteClass.isSameName(field.value, authority) {
        throw SigningFault(.malformedRequest, "the Host field differs from the host of the request")
      }
    }
  }

  /// Checks method, path, query and authority of a request.
  private func checkTarget() throws(SigningFault) {
    guard HeaderFields.isToken(method) else {
      throw SigningFault(.malformedRequest, "the method is not a token such as POST")
    }
    guard path.utf8.first == UInt8(ascii: "/") else {
      throw SigningFault(.malformedRequest, "the path does not begin with /")
    }
    let isFine = { (byte: UInt8) in byte >= 0x20 && byte != 0x7f && byte != UInt8(ascii: "#") }
    guard ByteClass.all(path, isFine), ByteClass.all(query ?? "", isFine) else {
      guard !(path + (query ?? "")).utf8.contains(UInt8(ascii: "#")) else { throw Self.fragmentFault }
      throw SigningFault(.malformedRequest, "the target has a control character; percent-encode it")
    }
    // Schemes compare the decoded target. Most targets have nothing to decode.
    for part in [path, query ?? ""] where !ByteClass.all(part, { $0 < 0x80 && $0 != UInt8(ascii: "%") }) {
      try Self.checkRuns(PercentEncoding.decoded(part.utf8), "the target")
    }
    try checkAuthority()
  }

  /// Throws if different servers may read the path or the query in different ways although the signature is
  /// valid for each reading. This is so for:
  ///
  /// - A "%" without two hexadecimal digits after it. Some servers read `%zz` as `%25zz`.
  /// - An unencoded backslash. It is signed as `%5C`, and some servers read it as a slash.
  /// - An unencoded "+" in the query, unless the scheme reads the query as a form. It is signed as `%2B`, and
  ///   most servers read it as a space.
  ///
  /// - Parameter isForm: whether the scheme reads "+" in the query as a space.
  func checkEncoding(isForm: Bool) throws(SigningFault) {
    for (name, text) in [("path", path), ("query", query ?? "")] {
      if let index = PercentEncoding.fault(in: text) {
        throw SigningFault(
          .malformedRequest,
          "no two hexadecimal digits follow the % at byte \(index + 1) of the \(name); write %25 for a percent sign"
        )
      }
      guard ByteClass.all(text, { $0 != UInt8(ascii: "\\") }) else {
        throw SigningFault(.malformedRequest, "the \(name) has a raw backslash; write %5C for one")
      }
    }
    guard isForm || query?.utf8.contains(UInt8(ascii: "+")) != true else {
      throw SigningFault(
        .malformedRequest,
        "the query has a raw +, which servers read as a plus or as a space; write %2B or %20")
    }
  }

  /// Throws if a text has a long run (`SlowText`). Processing such a text as a `String` can take seconds.
  private static func checkRuns(_ text: [UInt8], _ part: String) throws(SigningFault) {
    guard text.withUnsafeBytes({ SlowText.hasLongRun($0) }) else { return }
    throw SigningFault(.malformedRequest, "\(part) is not usable: \(SlowText.violation)")
  }

  /// The fault of a target with an unencoded "#". Some servers read "#" as the start of a fragment, and drop
  /// or keep the fragment. Other servers read "#" as part of a value.
  private static let fragmentFault = SigningFault(
    .malformedRequest,
    "the target has a raw #, but a request cannot have a fragment; leave it out, or write %23 for a # in a value"
  )

  /// Checks the authority. Throws unless it is a host with characters that URLs allow, with at most one port.
  private func checkAuthority() throws(SigningFault) {
    // The characters that RFC 3986, section 3.2.2, allows in a host and a port.
    let isFine = { (byte: UInt8) -> Bool in
      if ByteClass.isUnreserved(byte) { return true }
      return switch byte {
      case 0x21, 0x24, 0x25, 0x26, 0x27, 0x28, 0x29, 0x2a, 0x2b, 0x3a, 0x3b, 0x3d, 0x5b, 0x5d: true
      default: false
      }
    }
    guard !authority.isEmpty, ByteClass.all(authority, isFine), hasOnePort else {
      throw SigningFault(
        .malformedRequest, "the request names no usable host; add a Host field, or a host in the URL")
    }
  }

  /// Whether the authority is a host with at most one port (RFC 3986, section 3.2). An IPv6 address must be
  /// in brackets. With several ports, servers disagree about which port counts.
  private var hasOnePort: Bool {
    let text = authority.utf8
    let host = text.first == 0x5b ? text.prefix { $0 != 0x5d } : text.prefix { $0 != 0x3a }
    var rest = text[host.endIndex...]
    if text.first == 0x5b {
      guard rest.popFirst() != nil, host.count > 1, !host.dropFirst().contains(0x5b) else { return false }
    } else if host.isEmpty || host.contains(where: { $0 == 0x5b || $0 == 0x5d }) {
      return false
    }
    return rest.isEmpty || rest.first == 0x3a && rest.dropFirst().allSatisfy(ByteClass.isDigit)
  }

  /// Appends host and port in the form in which schemes sign them: in lower case, without the default port of
  /// the URL scheme.
  ///
  /// - Parameter keepsPort: whether to make the mistake `SignerMistake.portKept`. If true, the default port
  ///   is appended when the authority has the default port, an empty port or no port.
  func appendAuthority(to out: inout [UInt8], keepsPort: Bool = false) {
    let usual: StaticString = scheme == .https ? "443" : "80"
    var authority = authority
    authority.withUTF8 { text in
      var end = text.count
      // An IPv6 address in brackets contains colons too.
      if text.last != 0x5d, let colon = text.lastIndex(of: 0x3a) {
        let port = text[(colon + 1)...]
        let isUsual = usual.withUTF8Buffer { port.elementsEqual($0) }
        if isUsual || port.isEmpty { end = colon }
        if keepsPort, !isUsual, !port.isEmpty { return out += text.map(ByteClass.lowered) }
      }
      let host = UnsafeBufferPointer(rebasing: text[..<end])
      // Most hosts are already in lower case: one copy suffices.
      if host.allSatisfy({ ByteClass.lowered($0) == $0 }) {
        out.append(contentsOf: host)
      } else {
        for byte in host { out.append(ByteClass.lowered(byte)) }
      }
      if keepsPort { out.append(text: ":\(usual)") }
    }
  }

  /// Whether the request has a body, in memory or not.
  var hasBody: Bool { !body.isEmpty || digestOfBody != nil }

  /// The SHA-256 digest of the body.
  func bodySHA256() throws(SigningFault) -> [UInt8] {
    if let digestOfBody { return digestOfBody }
    return try crypto { () throws(CryptoError) in try Digest.of(body, .sha256) }
  }

  /// Whether the request has a field with this name. Ignores case.
  func hasField(_ name: String) -> Bool {
    for field in headers where ByteClass.isSameName(field.name, name) { return true }
    return false
  }

  /// Host and port in the form in which schemes sign them: in lower case, without the default port of the URL
  /// scheme.
  var signedAuthority: String {
    var out: [UInt8] = []
    appendAuthority(to: &out)
    return String(decoding: out, as: UTF8.self)
  }

  /// The host without the port, in lower case.
  var host: String {
    let authority = signedAuthority
    guard let colon = authority.lastIndex(of: ":"), !authority.hasSuffix("]") else { return authority }
    return String(authority[..<colon])
  }
}
