import FoundationEssentials
package import NetOptCore

/// Certificate authorities in PEM form (RFC 7468) that a setting names.
package enum AuthorityFile {
  /// The maximum size in bytes: 1 MiB. The bundles of systems have some hundred kilobytes. OpenSSL takes 10 s
  /// for 10,000 certificates.
  static let maximumBytes = 1 << 20

  /// Reads a file of certificate authorities.
  ///
  /// - Throws: `unreadableFile`; also for a file that is too large.
  package static func read(_ path: String) throws(NetOptError) -> [UInt8] {
    let bytes = try FileBytes.read(path, upTo: maximumBytes, as: "the file with the authorities", in: .tls)
    guard bytes.count <= maximumBytes else {
      throw NetOptError(
        .unreadableFile, phase: .tls,
        "the file with the authorities, \(FileBytes.shown(path)), has more than \(maximumBytes >> 20) MiB; name a file with only the authorities that are needed"
      )
    }
    return bytes
  }

  /// Checks that there is a certificate in PEM form, and none that takes long to read.
  ///
  /// - Parameter name: the name of the file or the setting, for the message.
  /// - Throws: `invalidConfiguration`.
  package static func check(_ bytes: [UInt8], named name: String) throws(NetOptError) {
    guard bytes.count <= maximumBytes else {
      throw NetOptError(
        .invalidConfiguration, phase: .tls, "\(name) has more than \(maximumBytes >> 20) MiB")
    }
    // The certificate label of RFC 7468, and the label of OpenSSL for certificates with trust settings.
    let marks = ["-----BEGIN CERTIFICATE-----", "-----BEGIN TRUSTED CERTIFICATE-----"]
    guard marks.contains(where: { bytes.firstRange(ofBytes: $0) != nil }) else {
      throw NetOptError(
        .invalidConfiguration, phase: .tls,
        "\(name) has no certificate in PEM form, so no authority could be trusted; name a file that begins with -----BEGIN CERTIFICATE-----"
      )
    }
    guard !describesCurve(bytes) else {
      throw NetOptError(
        .invalidConfiguration, phase: .tls,
        "\(name) has a certificate whose key is on an elliptic curve that is given by parameters; replace it by one with a named curve (RFC 5480)"
      )
    }
  }

  /// Whether a certificate has a key on an elliptic curve that is given by parameters (`CurveParameters`).
  package static func describesCurve(_ bytes: [UInt8]) -> Bool {
    PEMBlock.all(in: bytes).contains { CurveParameters.occur(in: $0.bytes) }
  }
}

/// A block of a PEM text, decoded.
struct PEMBlock {
  /// The label, such as `CERTIFICATE`.
  let label: String
  /// The bytes between the lines BEGIN and END. Header lines (RFC 1421) make them unusable.
  let bytes: Data

  /// Returns the blocks of a text, also those that OpenSSL would not read.
  static func all(in text: [UInt8]) -> [PEMBlock] {
    var blocks: [PEMBlock] = []
    var label = ""
    var lines: [UInt8]?
    func end() {
      if let content = lines { blocks.append(PEMBlock(label: label, bytes: decoded(content))) }
      lines = nil
    }
    for line in text.split(separator: 0x0a) {
      // OpenSSL reads long lines in pieces, so a block may begin and end within a line. It takes BEGIN within a
      // block for the end of the base64.
      if let mark = line.firstRange(ofBytes: "-----BEGIN ") {
        end()
        let name = line[mark.upperBound...].prefix { $0 != UInt8(ascii: "-") }
        label = String(decoding: name, as: UTF8.self)
        lines = []
      } else if let mark = line.firstRange(ofBytes: "-----END ") {
        lines?.append(contentsOf: line[..<mark.lowerBound])
        end()
      } else {
        lines?.append(contentsOf: line)
      }
    }
    end()
    return blocks
  }

  /// Decodes base64 up to its end: a "=" or "-", as for OpenSSL.
  private static func decoded(_ content: [UInt8]) -> Data {
    var digits = content.prefix { $0 != UInt8(ascii: "=") && $0 != UInt8(ascii: "-") }
      .filter { ByteClass.isUnreserved($0) && !"._~".utf8.contains($0) || "+/".utf8.contains($0) }
    if digits.count % 4 == 1 { digits.removeLast() }
    while digits.count % 4 != 0 { digits.append(UInt8(ascii: "=")) }
    return Data(base64Encoded: Data(digits)) ?? Data()
  }
}
