import CCurl

/// libcurl's text about the failure of a transfer (CURLOPT_ERRORBUFFER(3)). libcurl uses one code for many
/// causes, and the text tells the causes apart.
///
/// The texts that this type recognises are those of libcurl 7.88 and OpenSSL 3. With any other text, each
/// property is false, `nil` or its most general value.
struct CurlErrorText: Sendable {
  private let text: String

  init(_ text: String) { self.text = text }

  /// The printable ASCII characters of the text, for `NetOptError.Underlying`; `nil` if there are none.
  ///
  /// Use it only for failures of connections that were ready: in errors about a proxy's URL, libcurl repeats
  /// the password.
  var shown: String? {
    let shown = String(text.unicodeScalars.filter { (0x20...0x7e).contains($0.value) }.map(Character.init))
    return shown.isEmpty ? nil : shown
  }

  // MARK: Responses that libcurl refuses

  /// Parts of the texts of lib/http.c and lib/http_chunks.c, and the faults that they mean.
  private static let faults: [(words: String, fault: ResponseFault)] = [
    ("Received HTTP/0.9", .head(.notHTTP)),
    ("Unsupported HTTP version", .head(.unsupportedVersion)),
    ("Unsupported response code", .head(.status)),
    ("Header without colon", .head(.noColon)),
    ("Nul byte in header", .head(.nul)),
    ("Invalid Content-Length", .head(.contentLength)),
    ("Overflow Content-Length", .head(.contentLength)),
    ("Too large response headers", .head(.tooLargeForLibcurl(kibibytes: 300))),
    ("Illegal or missing hexadecimal sequence in chunked-encoding", .chunk(.size)),
    ("Too long hexadecimal number in chunked-encoding", .chunk(.longSize)),
    ("Malformed encoding found in chunked-encoding", .chunk(.end)),
    ("Out of memory in chunked-encoding", .head(.trailerTooLong)),
  ]

  /// Returns the fault of the response because of which libcurl ended the transfer; `nil` if libcurl ended it
  /// for another reason.
  ///
  /// - Parameter isHeadComplete: whether the head of the response was complete.
  func fault(_ code: CURLcode, isHeadComplete: Bool) -> ResponseFault? {
    if let known = Self.faults.first(where: { has($0.words) }) { return known.fault }
    switch code {
    // `Curl_headers_push` refuses a line that has no colon before its end. It takes the first CR for the end.
    // A line of the head has a colon somewhere, because netopt checked this before.
    case CURLE_BAD_FUNCTION_ARGUMENT: return .head(has("chunked-encoded stream") ? .trailer : .name(0x0d))
    // Swift ends the process when memory is out. So this code means that a line is longer than libcurl
    // accepts.
    case CURLE_OUT_OF_MEMORY where !isHeadComplete: return .head(.lineTooLong)
    case _ where code.isTooLarge && !isHeadComplete: return .head(.lineTooLong)
    default: return nil
    }
  }

  // MARK: Connections that end

  /// How a connection or a stream ended: a verb phrase whose subject is the connection or the stream.
  var ending: String {
    if wasReset { return "was reset" }
    if let tlsReason { return "broke off (TLS: \(tlsReason))" }
    // The text has the form `HTTP/2 stream 1 was not closed cleanly: CANCEL (err 8)`.
    if has("was not closed cleanly: "), let name = text.split(separator: ":").last,
      let code = name.split(separator: " ").first
    {
      return "was reset with \(code)"
    }
    return "ended"
  }

  /// Whether the peer reset the TCP connection.
  var wasReset: Bool { has("Connection reset by peer") }

  /// Whether reading from the socket or writing to it failed. libcurl's code may say only that HTTP/2 failed
  /// (CURLE_HTTP2).
  var isAboutSocket: Bool { wasReset || has("Recv failure: ") || has("Send failure: ") }

  /// Whether the peer closed the connection during the TLS handshake.
  var wasClosedInHandshake: Bool { has("SSL_ERROR_SYSCALL") || has("SSL_ERROR_ZERO_RETURN") }

  /// OpenSSL's reason for a failure of TLS, such as `wrong version number` in the text
  /// `error:0A00010B:SSL routines::wrong version number`. `nil` if the text has none.
  var tlsReason: String? {
    guard has(" routines:"), let last = text.split(separator: ":").last else { return nil }
    // OpenSSL's text for every group that `OpenSSL.limitGroups` refuses.
    if last.hasPrefix("dh key too small") {
      return "its Diffie-Hellman group is too small, or has more than \(OpenSSL.largestGroup) bits"
    }
    // The text for certificates that `OpenSSL.checkCertificates` refuses.
    if last.hasPrefix("explicit params not supported") {
      return "one of its certificates has a key on an unnamed curve"
    }
    // OpenSSL uses this text also for a server that asks for the client's certificate and names too many
    // authorities.
    if last.hasPrefix("excessive message size") {
      let limits = "\(OpenSSL.largestList / 1024) KiB or \(OpenSSL.mostCertificates) certificates"
      return "its list of certificates has more than \(limits), or another TLS message is too long"
    }
    return String(last.prefix { $0 != "," })
  }

  /// The alerts by which a server refuses a client's certificate or its lack (RFC 8446, section 6.2): their
  /// numbers, and OpenSSL's words.
  private static let clientCertificateAlerts: [(number: Int32, name: String)] = [
    (116, "certificate required"), (42, "bad certificate"), (43, "unsupported certificate"),
    (44, "certificate revoked"), (45, "certificate expired"), (46, "certificate unknown"),
    (48, "unknown ca"), (49, "access denied"),
  ]

  /// The name of an alert by which a server refuses a client's certificate or its lack; `nil` for any other.
  static func clientCertificateAlert(_ number: Int32) -> String? {
    clientCertificateAlerts.first { $0.number == number }?.name
  }

  /// The alert by which a server refused the client's certificate or its lack; `nil` for any other failure.
  var clientCertificateAlert: String? {
    guard let tlsReason else { return nil }
    return Self.clientCertificateAlerts.first { tlsReason.hasSuffix(" alert \($0.name)") }?.name
  }

  /// The fault that OpenSSL found in a certificate, such as `certificate has expired` in the text `SSL
  /// certificate problem: certificate has expired`. `nil` if the text has none.
  var certificateReason: String? {
    guard has("certificate problem: ") else { return nil }
    return text.split(separator: ":").last.map { String($0.drop { $0 == " " }) }
  }

  /// Whether the text says that the certificate is for another name.
  var isAboutName: Bool { has("subject name") }

  // MARK: Proxies

  /// Whether the text says that a proxy answered CONNECT but opened no tunnel.
  var isAboutTunnel: Bool { has("CONNECT tunnel failed") }

  /// Whether the text says that the response to CONNECT is longer than libcurl accepts.
  var isAboutLongAnswer: Bool { has("CONNECT response too large") }

  private func has(_ words: String) -> Bool { text.utf8.firstRange(ofBytes: words) != nil }
}

extension CURLcode {
  /// Whether the code is CURLE_TOO_LARGE, which the headers of older releases lack: something is longer than
  /// libcurl accepts.
  var isTooLarge: Bool { rawValue == 100 }
}
