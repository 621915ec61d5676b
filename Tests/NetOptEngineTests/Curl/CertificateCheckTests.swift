import Testing

@testable import NetOptEngine

/// `OpenSSL.checkCertificates`, which checks the certificates in a TLS handshake message before OpenSSL
/// decodes the message. The parameters are those of a message callback (SSL_CTX_set_msg_callback(3)).
@Suite struct CertificateCheckTests {
  /// The numbers of TLS 1.2 and TLS 1.3 in the protocol.
  private static let (tls12, tls13): (Int32, Int32) = (0x0303, 0x0304)
  /// The object identifier prime-field (RFC 3279, section 2.3.5) in DER, without the tag and the length. It
  /// occurs only in the parameters of a curve. With 2 as its last byte it is characteristic-two-field.
  private static let primeField: [UInt8] = [0x2a, 0x86, 0x48, 0xce, 0x3d, 1, 1]

  /// Returns a handshake message with a list of certificates (RFC 5246, section 7.4.2; RFC 8446, section
  /// 4.4.2).
  ///
  /// - Parameters:
  ///   - certificates: the bytes of each certificate, which need not be valid.
  ///   - version: the TLS version, which determines the form of the message.
  ///   - type: the type of the message. 11 is a certificate list.
  private func message(_ certificates: [[UInt8]], _ version: Int32, type: UInt8 = 11) -> [UInt8] {
    let (context, extensions): ([UInt8], [UInt8]) = version == Self.tls13 ? ([0], [0, 2, 7, 7]) : ([], [])
    let list: [UInt8] = certificates.flatMap { length($0.count) + $0 + extensions }
    let body = context + length(list.count) + list
    return [type] + length(body.count) + body
  }

  /// Returns a length as three bytes.
  private func length(_ count: Int) -> [UInt8] {
    [UInt8(count >> 16), UInt8(count >> 8 & 0xff), UInt8(count & 0xff)]
  }

  /// Whether the check refuses a message. It refuses a message by setting the first byte after the header of
  /// 4 bytes to 255, which makes the message invalid. Expects that the check changes no other byte.
  ///
  /// - Parameters:
  ///   - isSent: 1 for a message that this side sent, and 0 for one that it received.
  ///   - kind: the type of the TLS record. 22 is a handshake message.
  private func isRefused(_ message: [UInt8], _ version: Int32, isSent: Int32 = 0, kind: Int32 = 22) -> Bool {
    var checked = message
    checked.withUnsafeMutableBytes {
      OpenSSL.checkCertificates(isSent, version, kind, UnsafeRawPointer($0.baseAddress), $0.count, nil)
    }
    guard checked != message else { return false }
    var expected = message
    expected[4] = 0xff
    #expect(checked == expected)
    return true
  }

  @Test(
    "the check finds the parameters of a curve at any place, with a length in short or long form",
    arguments: [tls12, tls13])
  func curves(_ version: Int32) {
    let oids: [[UInt8]] = [Self.primeField, Self.primeField.dropLast() + [2]]
    for oid in oids {
      // The tag of an object identifier, and the length 7 in one, two or five bytes.
      for header in [[6, 7], [6, 0x81, 7], [6, 0x84, 0, 0, 0, 7]] as [[UInt8]] {
        // The number of bytes of the certificate before the identifier of the parameters.
        for before in 0...9 {
          let certificate = [UInt8](repeating: 0x2a, count: before) + header + oid + [2, 1, 0]
          #expect(isRefused(message([certificate], version), version))
          #expect(isRefused(message([[1, 2, 3], certificate, [4]], version), version))
        }
      }
    }
  }

  @Test("the check accepts other object identifiers with the same prefix", arguments: [tls12, tls13])
  func names(_ version: Int32) {
    // The identifiers id-ecPublicKey, prime256v1 and ecdsa-with-SHA256, and an identifier of a field that
    // does not exist. All begin like `primeField`.
    for oid in [[2, 1], [3, 1, 7], [4, 3, 2], [1, 3]] as [[UInt8]] {
      #expect(!isRefused(message([Self.primeField.dropLast(2) + oid + [5, 0]], version), version))
    }
  }

  @Test("the check ignores other messages, sent messages, other records and cut messages")
  func otherMessages() {
    let curve = [[6, 7] + Self.primeField + [2, 1, 0]]
    // 13 is a request for a certificate. A record of kind 23 contains data of the application.
    #expect(!isRefused(message(curve, Self.tls13, type: 13), Self.tls13))
    #expect(!isRefused(message(curve, Self.tls13), Self.tls13, isSent: 1))
    #expect(!isRefused(message(curve, Self.tls13), Self.tls13, kind: 23))
    for count in 0...5 { #expect(!isRefused(Array([11, 0, 0, 1, 0].prefix(count)), Self.tls13)) }
  }

  @Test(
    "the check refuses more than 10 certificates, and leaves a cut list to OpenSSL",
    arguments: [tls12, tls13])
  func count(_ version: Int32) {
    for count in 0...20 {
      let list = message([[UInt8]](repeating: [0x30, 0], count: count), version)
      #expect(isRefused(list, version) == (count > 10))
      // OpenSSL itself refuses a list that is cut.
      for end in 5..<list.count where count <= 10 { #expect(!isRefused(Array(list[..<end]), version)) }
    }
  }
}
