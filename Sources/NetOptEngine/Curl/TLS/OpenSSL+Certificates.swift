import COpenSSL
import NetOptCore

// Limits what a server's certificates may cost before OpenSSL verifies them.

extension OpenSSL {
  /// The longest certificate list that a server may send, in bytes. The JDK has the same limit
  /// (jdk.tls.maxHandshakeMessageSize), and OpenSSL accepts 100 KiB. A list of three certificates has 3 to 6
  /// KiB, or 22 KiB with ML-DSA signatures. A certificate with many small parts takes 30 times its size in
  /// memory as long as its connection is open.
  static let largestList = 32 * 1024
  /// The most certificates in a list. The JDK has the same limit
  /// (jdk.tls.client.maxInboundCertificateChainLength), and OpenSSL has none. A certificate may give
  /// only one coordinate of its key, if the key is a point of an elliptic curve. OpenSSL computes the other
  /// coordinate when it decodes the certificate, which takes 0.4 ms on the curve secp224r1.
  static let mostCertificates = 10

  /// Makes connections refuse certificate lists that are longer than `largestList`.
  ///
  /// - Parameter context: an `SSL_CTX` that libcurl has set up (CURLOPT_SSL_CTX_FUNCTION(3)).
  func limitCertificates(of context: OpaquePointer) {
    // SSL_CTX_set_max_cert_list(3) is a macro for this.
    _ = control(context, netopt_ctrl_set_max_cert_list, Self.largestList, nil)
    // OpenSSL decodes a compressed list before a callback can check it.
    _ = setOptions(context, netopt_no_certificate_compression)
  }

  /// The message callback (SSL_CTX_set_msg_callback(3)) of connections whose records netopt no longer
  /// observes (`TLSConnection.endWatch`). The callback only checks certificates.
  static let watchesCertificates: Watch = { isSent, version, kind, bytes, count, ssl, _ in
    checkCertificates(isSent, version, kind, bytes, count, ssl)
  }

  /// Refuses a list with too many certificates, or with a key on a curve that is given by parameters instead
  /// of by name (`CurveParameters`). OpenSSL decodes the keys before it verifies anything. Also makes the
  /// authorities ready (`PeerCertificate.prepare`), which OpenSSL needs next.
  ///
  /// The parameters are those of a message callback (SSL_CTX_set_msg_callback(3)). OpenSSL calls the callback
  /// after it has read a message and before it decodes the message.
  static func checkCertificates(
    _ isSent: Int32, _ version: Int32, _ kind: Int32, _ bytes: UnsafeRawPointer?, _ count: Int,
    _ ssl: OpaquePointer?
  ) {
    guard isSent == 0, kind == netopt_record_handshake, count > Int(netopt_message_head_length), let bytes,
      bytes.load(as: UInt8.self) == netopt_message_certificate
    else { return }
    if let ssl { PeerCertificate.prepare(ssl) }
    let message = UnsafeRawBufferPointer(start: bytes, count: count)
    let describesCurve = CurveParameters.occur(in: message)
    guard describesCurve || hasTooMany(message, isOfTLS13: version == netopt_tls_1_3) else { return }
    // libcurl's error text repeats this error, and `CurlErrorText.tlsReason` turns it into netopt's message.
    Errors.loaded?.add(describesCurve ? Errors.curve : Errors.length)
    // OpenSSL has no callback that can refuse to decode a message. So netopt makes the message invalid. The
    // bytes are those of OpenSSL's own buffer (`init_buf`), which OpenSSL has already added to the hash of
    // the handshake and decodes next. The first byte after the message header is zero in all messages that
    // OpenSSL can decode. In TLS 1.3 it is the length of the context (RFC 8446, section 4.4.2), in earlier
    // versions the highest byte of the list's length (RFC 5246, section 7.4.2).
    UnsafeMutableRawPointer(mutating: bytes).storeBytes(
      of: 0xff, toByteOffset: Int(netopt_message_head_length), as: UInt8.self)
  }

  /// Whether a certificate list has more than `mostCertificates` certificates.
  private static func hasTooMany(_ message: UnsafeRawBufferPointer, isOfTLS13: Bool) -> Bool {
    /// Returns the bytes after a field. The field is preceded by its length, which has `lengthBytes` bytes.
    func rest(_ fields: Slice<UnsafeRawBufferPointer>, lengthBytes: Int) -> Slice<UnsafeRawBufferPointer> {
      fields.dropFirst(lengthBytes + fields.prefix(lengthBytes).reduce(0) { $0 << 8 | Int($1) })
    }
    // The length of the list comes before the list. In TLS 1.3 an empty context comes before that length.
    var list = message.dropFirst(Int(netopt_message_head_length) + (isOfTLS13 ? 4 : 3))
    for _ in 0..<mostCertificates {
      list = rest(list, lengthBytes: 3)
      // In TLS 1.3 the extensions of the certificate follow.
      if isOfTLS13 { list = rest(list, lengthBytes: 2) }
    }
    return !list.isEmpty
  }

  /// Adds errors to OpenSSL's error queue of this thread. libcurl reports the first error in the queue.
  private struct Errors: Sendable {
    /// The error "explicit params not supported".
    static let curve = (library: netopt_error_library_curves, reason: netopt_error_explicit_parameters)
    /// The error "excessive message size", which OpenSSL also uses for lists beyond `largestList`.
    static let length = (library: netopt_error_library_tls, reason: netopt_error_message_size)

    // ERR_new(3) and ERR_vset_error(3).
    private let new: @convention(c) () -> Void
    private let set: @convention(c) (Int32, Int32, UnsafePointer<CChar>?, OpaquePointer?) -> Void

    static let loaded = try? Errors()

    private init() throws(OpenSSL.MissingFunction) {
      new = try OpenSSL.function("ERR_new")
      set = try OpenSSL.function("ERR_vset_error")
    }

    /// Adds an error to the queue.
    func add(_ error: (library: Int32, reason: Int32)) {
      new()
      // Without a format string, OpenSSL does not read the arguments, which are a va_list.
      set(error.library, error.reason, nil, nil)
    }
  }
}
