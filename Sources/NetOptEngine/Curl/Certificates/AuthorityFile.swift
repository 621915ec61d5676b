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

  private static let dashes = "-----"

  /// Returns the blocks of a text, also those that OpenSSL would not read. A block begins behind each BEGIN
  /// and ends at the next BEGIN or END, wherever these stand: OpenSSL reads long lines in pieces, so that a
  /// mark may stand within a line.
  static func all(in text: [UInt8]) -> [PEMBlock] {
    var blocks: [PEMBlock] = []
    var rest = text[...]
    while let begin = rest.firstRange(ofBytes: "-----BEGIN ") {
      rest = rest[begin.upperBound...]
      let label = rest.prefix { $0 != UInt8(ascii: "-") }
      rest = rest[label.endIndex...]
      if rest.starts(with: dashes.utf8) { rest = rest.dropFirst(dashes.utf8.count) }
      // END is looked for only up to the next BEGIN: a text may have 90,000 of them, and no END.
      let next = rest.firstRange(ofBytes: "-----BEGIN ")?.lowerBound ?? rest.endIndex
      let end = rest[..<next].firstRange(ofBytes: "-----END ")?.lowerBound ?? next
      blocks.append(PEMBlock(label: String(decoding: label, as: UTF8.self), bytes: decoded(rest[..<end])))
      rest = rest[end...]
    }
    return blocks
  }

  /// Decodes base64 up to its end: a "=" or "-", as for OpenSSL.
  private static func decoded(_ content: ArraySlice<UInt8>) -> Data {
    var digits = content.prefix { $0 != UInt8(ascii: "=") && $0 != UInt8(ascii: "-") }
      .filter { digit in
        switch digit {
        case 0x30...0x39, 0x41...0x5a, 0x61...0x7a, UInt8(ascii: "+"), UInt8(ascii: "/"): true
        default: false
        }
      }
    if digits.count % 4 == 1 { digits.removeLast() }
    while digits.count % 4 != 0 { digits.append(UInt8(ascii: "=")) }
    return Data(base64Encoded: Data(digits)) ?? Data()
  }
}
