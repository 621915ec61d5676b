import COpenSSL

// What a server's certificates may cost before they are verified.

extension OpenSSL {
  /// The most that a server's list of certificates may have, in bytes: what the JDK takes (jdk.tls.maxHandshakeMessageSize). OpenSSL takes 100 KiB. A
  /// list of three certificates has 3 to 6 KiB, with signatures of ML-DSA 22. A certificate of many small parts takes 30 times its bytes in
  /// memory, as long as its connection is open.
  static let largestList = 32 * 1024
  /// The most certificates in a list: what the JDK takes (jdk.tls.client.maxInboundCertificateChainLength). OpenSSL has no limit. A key may be a
  /// point of which only one coordinate is given. OpenSSL computes the other when it decodes the certificate, on secp224r1 in 0.4 ms.
  static let mostCertificates = 10

  /// Has connections refuse lists of certificates beyond `largestList`.
  ///
  /// - Parameter context: an `SSL_CTX` that libcurl has set up (CURLOPT_SSL_CTX_FUNCTION(3)).
  func limitCertificates(of context: OpaquePointer) {
    // SSL_CTX_set_max_cert_list(3) is a macro for this.
    _ = control(context, netopt_ctrl_set_max_cert_list, Self.largestList, nil)
    // What comes compressed is decoded before anybody can look at it.
    _ = setOptions(context, netopt_no_certificate_compression)
  }

  /// Checks the certificates that come, and looks at nothing else.
  static let watchesCertificates: Watch = { isSent, version, kind, bytes, count, _, _ in
    checkCertificates(isSent, version, kind, bytes, count)
  }

  /// Refuses a list that has too many certificates, or one whose key is on a curve that is described and not named, which RFC 5480, section 2.1.1,
  /// forbids. When OpenSSL decodes such a certificate it computes points of the curve, which can take a tenth of a second. It does so before anything
  /// is verified.
  ///
  /// The parameters are those of an SSL_CTX_set_msg_callback(3), which is called when a message was read and before it is decoded.
  static func checkCertificates(
    _ isSent: Int32, _ version: Int32, _ kind: Int32, _ bytes: UnsafeRawPointer?, _ count: Int
  ) {
    guard isSent == 0, kind == netopt_record_handshake, count > Int(netopt_message_head_length), let bytes,
      bytes.load(as: UInt8.self) == netopt_message_certificate
    else { return }
    let message = UnsafeRawBufferPointer(start: bytes, count: count)
    let describesCurve = describesCurve(message)
    guard describesCurve || hasTooMany(message, isOfTLS13: version == netopt_tls_1_3) else { return }
    // See `FailureWords.tlsReason`.
    Errors.loaded?.add(describesCurve ? Errors.curve : Errors.length)
    // OpenSSL asks nobody whether it shall decode a message. The bytes are those of its own buffer (`init_buf`), which it has added to the hash of
    // the handshake and decodes next. The first one is zero in all messages that it can decode: the context in TLS 1.3 (RFC 8446, section 4.4.2), before
    // that the highest byte of the list's length (RFC 5246, section 7.4.2).
    UnsafeMutableRawPointer(mutating: bytes).storeBytes(
      of: 0xff, toByteOffset: Int(netopt_message_head_length), as: UInt8.self)
  }

  /// Whether a list of certificates has one of the object identifiers prime-field and characteristic-two-field (RFC 3279, section 2.3.5). Every
  /// description of a curve has one. No name of a curve and no other part of a certificate begins with them.
  private static func describesCurve(_ message: UnsafeRawBufferPointer) -> Bool {
    guard message.count >= 8 else { return false }
    // Without tag and length, which OpenSSL takes in several encodings. Something always follows.
    for offset in 0...message.count - 8 {
      let bytes = UInt64(bigEndian: message.loadUnaligned(fromByteOffset: offset, as: UInt64.self)) >> 8
      if bytes == 0x2a_8648_ce3d_0101 || bytes == 0x2a_8648_ce3d_0102 { return true }
    }
    return false
  }

  private static func hasTooMany(_ message: UnsafeRawBufferPointer, isOfTLS13: Bool) -> Bool {
    /// What is behind a field with its length, which has so many bytes, before it.
    func rest(_ fields: Slice<UnsafeRawBufferPointer>, lengthBytes: Int) -> Slice<UnsafeRawBufferPointer> {
      fields.dropFirst(lengthBytes + fields.prefix(lengthBytes).reduce(0) { $0 << 8 | Int($1) })
    }
    // Before the list is its length, and in TLS 1.3 before that the context, which is empty.
    var list = message.dropFirst(Int(netopt_message_head_length) + (isOfTLS13 ? 4 : 3))
    for _ in 0..<mostCertificates {
      list = rest(list, lengthBytes: 3)
      // Each certificate has extensions there.
      if isOfTLS13 { list = rest(list, lengthBytes: 2) }
    }
    return !list.isEmpty
  }

  /// OpenSSL's errors of this thread. The first one is what libcurl tells.
  private struct Errors: Sendable {
    /// "explicit params not supported".
    static let curve = (library: netopt_error_library_curves, reason: netopt_error_explicit_parameters)
    /// "excessive message size", as with `largestList`.
    static let length = (library: netopt_error_library_tls, reason: netopt_error_message_size)

    private let new: @convention(c) () -> Void
    private let set: @convention(c) (Int32, Int32, UnsafePointer<CChar>?, OpaquePointer?) -> Void

    static let loaded = try? Errors()

    private init() throws(OpenSSL.MissingFunction) {
      new = try OpenSSL.function("ERR_new")
      set = try OpenSSL.function("ERR_vset_error")
    }

    func add(_ error: (library: Int32, reason: Int32)) {
      new()
      // Without a format its arguments, a va_list, are not looked at.
      set(error.library, error.reason, nil, nil)
    }
  }
}
