import NetOptCore

/// Checks a request, and makes its header lines in libcurl's form (CURLOPT_HTTPHEADER(3)).
enum RequestLines {
  /// Returns why a request cannot be sent; `nil` if it can.
  static func fault(of request: NetOptRequest) -> String? {
    if request.method != .get, let fault = methodFault(of: request) { return fault }
    // libcurl refuses a length below -1 and keeps the length of the previous request. It takes -1 for an
    // unknown length.
    if let length = request.body.length, length < 0 {
      return "the length of the body is \(length) bytes; leave it out when you do not know the length"
    }
    // The URL may have become longer since it was parsed: by signing, by resolving a reference such as
    // `Location`, or by percent-encoding.
    let target = request.url.target.utf8.count
    if target > HTTPURL.longest {
      return "path and query have \(target) bytes, and netopt sends at most \(HTTPURL.longest >> 10) KiB"
    }
    if let fault = request.headers.sizeFault { return fault }
    for field in request.headers {
      if let fault = HeaderFields.fault(of: field) ?? fault(of: field, in: request) { return fault }
    }
    return nil
  }

  /// Returns why a request with this method cannot be sent; `nil` if it can.
  private static func methodFault(of request: NetOptRequest) -> String? {
    guard HeaderFields.isToken(request.method.rawValue) else {
      return "the method \"\(request.method.rawValue.printable(60))\" is not a token"
    }
    if request.method.rawValue == "CONNECT" { return "CONNECT is only for proxies; configure a proxy" }
    if request.method == .head, request.body.length != 0 {
      return "a HEAD request with a body cannot be sent"
    }
    return nil
  }

  /// Returns why a request cannot have a field; `nil` if it can. Does not check the bytes of the field.
  private static func fault(of field: HeaderField, in request: NetOptRequest) -> String? {
    func isNamed(_ name: String) -> Bool { HeaderFields.equal(field.name, name) }
    if isNamed("host") { return "Host comes from the URL; change the URL instead" }
    if isNamed("transfer-encoding") || isNamed("connection") || isNamed("upgrade")
      || isNamed("http2-settings")
    {
      return "the header \(field.name) is set by netopt for the connection; leave it out"
    }
    if isNamed("content-length"), request.body.length.map({ String($0) }) != field.value {
      return "the header Content-Length differs from the length of the body; leave it out"
    }
    return nil
  }

  /// Returns the header lines of a request. They include User-Agent and Accept-Encoding, although libcurl has
  /// options for these two fields. From the options, libcurl would make both lines twice for each request,
  /// byte by byte, which is a tenth of its work for the request.
  ///
  /// - Parameter userAgent: the value of User-Agent if the request has no such field. If it is empty,
  ///   User-Agent is not sent.
  static func make(for request: NetOptRequest, userAgent: String) -> [String] {
    var lines: [String] = []
    lines.reserveCapacity(request.headers.count + 3)
    if !userAgent.isEmpty, !request.headers.contains(name: "User-Agent") {
      lines.append("User-Agent: \(userAgent)")
    }
    if request.options.decompress, !request.headers.contains(name: "Accept-Encoding"),
      !request.headers.contains(name: "Range")
    {
      lines.append("Accept-Encoding: \(ContentDecoder.codings)")
    }
    for field in request.headers where !HeaderFields.equal(field.name, "content-length") {
      let value = trimmed(field.value)
      // A line with nothing after the colon makes libcurl leave the field out. libcurl writes `Name;` as a
      // field without a value.
      lines.append(value.isEmpty ? "\(field.name);" : "\(field.name): \(value)")
    }
    // `Expect:` keeps libcurl from asking for "100 Continue" before a large body and waiting for it for up to
    // a second.
    if request.body.length != 0, !request.headers.contains(name: "Expect") { lines.append("Expect:") }
    return lines
  }

  /// Returns the value without the white space around it, which is not part of the value (RFC 9110, section
  /// 5.5).
  private static func trimmed(_ value: String) -> Substring {
    // Nearly all values have no such white space. Searching for the first and the last other character takes
    // much longer than this check.
    if let first = value.utf8.first, let last = value.utf8.last, first > 0x20, last > 0x20 {
      return value[...]
    }
    let isSpace = { (character: Character) in character == " " || character == "\t" }
    guard let first = value.firstIndex(where: { !isSpace($0) }),
      let last = value.lastIndex(where: { !isSpace($0) })
    else { return "" }
    return value[first...last]
  }
}
