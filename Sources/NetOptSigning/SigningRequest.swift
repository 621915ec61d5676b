public import NetOptCore

/// A request as it is signed and verified: the bytes of its target are kept as they were written.
public struct SigningRequest: Sendable {
  /// The method; its case matters.
  public var method: String
  /// http or https: says which port is the default one.
  public var scheme: Origin.Scheme
  /// Host and port as the request names them, in any case.
  public var authority: String
  /// The path as it was written, without the query; begins with "/".
  public var path: String
  /// The query as it was written, without its "?"; `nil` when there is none.
  public var query: String?
  /// The header fields.
  public var headers: HTTPFields
  /// The body as it is sent, after content coding.
  public var body: [UInt8]

  /// Makes a request of its parts.
  public init(
    method: String, scheme: Origin.Scheme = .https, authority: String, path: String, query: String? = nil,
    headers: HTTPFields = [:], body: [UInt8] = []
  ) {
    self.method = method
    self.scheme = scheme
    self.authority = authority
    self.path = path
    self.query = query
    self.headers = headers
    self.body = body
  }

  /// Makes a request as the client sends it.
  ///
  /// - Parameters:
  ///   - request: the request. A `Host` field in it is the authority.
  ///   - body: its body.
  public init(_ request: HTTPRequest, body: [UInt8]) {
    self.init(
      method: request.method.rawValue, scheme: request.url.origin.scheme,
      authority: request.headers["Host"] ?? request.url.origin.authority, path: String(request.url.path),
      query: request.url.query.map(String.init), headers: request.headers, body: body)
  }

  /// Makes a request of a URL that is taken raw: spaces, UTF-8, "//" and ".." stay as they are. A `Host` field in the
  /// headers is the authority, whatever the URL says. A fragment is dropped.
  ///
  /// - Throws: `NetOptError.Code.invalidURL`.
  public init(
    _ method: String, _ url: String, headers: HTTPFields = [:], body: [UInt8] = []
  ) throws(NetOptError) {
    do {
      try self.init(method, rawURL: url, headers: headers, body: body)
    } catch {
      throw NetOptError(.invalidURL, phase: .sign, error.detail)
    }
  }

  /// Like the initialiser with a URL; faults have the reason `malformedRequest`.
  package init(
    _ method: String, rawURL url: String, headers: HTTPFields, body: [UInt8]
  ) throws(SigningFault) {
    let bytes = url.utf8
    guard let mark = bytes.firstRange(of: "://".utf8),
      let scheme = Origin.Scheme(rawValue: String(url[..<mark.lowerBound]).lowercased())
    else { throw SigningFault(.malformedRequest, "the URL has no scheme; begin with https:// or http://") }
    let rest = bytes[mark.upperBound...].prefix { $0 != UInt8(ascii: "#") }
    let end = rest.firstIndex { $0 == UInt8(ascii: "/") || $0 == UInt8(ascii: "?") } ?? rest.endIndex
    let target = String(Substring(rest[end...]))
    self.init(
      method: method, scheme: scheme, authority: headers["Host"] ?? String(Substring(rest[..<end])),
      path: "", headers: headers, body: body)
    set(target: target)
    try check()
  }

  /// Takes path and query from the target of a request line. An empty path is "/".
  package mutating func set(target: String) {
    let mark = target.utf8.firstIndex(of: UInt8(ascii: "?"))
    path = String(target[..<(mark ?? target.endIndex)])
    if path.isEmpty { path = "/" }
    query = mark.map { String(target[target.utf8.index(after: $0)...]) }
  }

  /// Checks what every scheme relies on.
  package func check() throws(SigningFault) {
    guard HTTPFields.isToken(method) else {
      throw SigningFault(.malformedRequest, "the method is not a token; write one as POST")
    }
    guard path.utf8.first == UInt8(ascii: "/") else {
      throw SigningFault(.malformedRequest, "the path does not begin with /")
    }
    let isControl = { (byte: UInt8) in byte < 0x20 || byte == 0x7f }
    if path.utf8.contains(where: isControl) || query?.utf8.contains(where: isControl) == true {
      throw SigningFault(.malformedRequest, "the target has a control character; percent-encode it")
    }
    try checkAuthority()
    for field in headers {
      if let fault = HTTPFields.fault(of: field) { throw SigningFault(.malformedRequest, fault) }
    }
  }

  private func checkAuthority() throws(SigningFault) {
    let isFine = { (byte: UInt8) in
      (0x21...0x7e).contains(byte) && !"/?#@\\\"<>^`{|},".utf8.contains(byte)
    }
    guard !authority.isEmpty, authority.utf8.allSatisfy(isFine) else {
      throw SigningFault(
        .malformedRequest, "the request names no usable host; give it a Host field or a URL with one")
    }
  }

  /// Host and port, as they are signed: in lower case, without the scheme's default port.
  ///
  /// - Parameter keepsPort: whether a default port is kept.
  func appendAuthority(to out: inout [UInt8], keepsPort: Bool = false) {
    let text = authority.utf8
    var end = text.endIndex
    if !keepsPort, let colon = text.lastIndex(of: 0x3a) {
      let port = text[text.index(after: colon)...]
      let isUsual = scheme == .https ? port.elementsEqual("443".utf8) : port.elementsEqual("80".utf8)
      // Within the brackets of an IPv6 address there are colons too.
      if isUsual || port.isEmpty, text.last != 0x5d { end = colon }
    }
    for byte in text[..<end] { out.append(ByteClass.lowered(byte)) }
  }

  /// Host and port as they are signed.
  var signedAuthority: String {
    var out: [UInt8] = []
    appendAuthority(to: &out)
    return String(decoding: out, as: UTF8.self)
  }

  /// The host alone, in lower case.
  var host: String {
    let authority = signedAuthority
    guard let colon = authority.lastIndex(of: ":"), !authority.hasSuffix("]") else { return authority }
    return String(authority[..<colon])
  }
}
