import FoundationEssentials
import NetOptCore

/// A file of certificate authorities in PEM form (RFC 7468), which libcurl reads.
enum AuthorityFile {
  /// The maximum size in bytes: 1 MiB. The bundles of systems have some hundred kilobytes. OpenSSL takes 10 s
  /// for 10,000 certificates, and does so on the event loop.
  static let maximumBytes = 1 << 20

  /// Reads a file of certificate authorities.
  ///
  /// - Throws: `unreadableFile`; also for a file that is too large.
  static func read(_ path: String) throws(NetOptError) -> [UInt8] {
    let bytes = try FileBytes.read(path, upTo: maximumBytes, as: "the file with the authorities", in: .tls)
    guard bytes.count <= maximumBytes else {
      throw NetOptError(
        .unreadableFile, phase: .tls,
        "the file with the authorities, \(FileBytes.shown(path)), has more than \(maximumBytes >> 20) MiB; name a file with only the authorities that are needed"
      )
    }
    return bytes
  }

  /// Whether a certificate has a key on an elliptic curve that is given by parameters (`CurveParameters`).
  static func describesCurve(_ bytes: [UInt8]) -> Bool {
    var block: [UInt8]?
    for line in bytes.split(separator: 0x0a) {
      if line.starts(with: "-----BEGIN ".utf8) {
        block = []
      } else if line.starts(with: "-----END ".utf8) {
        let der = Data(base64Encoded: Data(block ?? []), options: .ignoreUnknownCharacters) ?? Data()
        if CurveParameters.occur(in: der) { return true }
        block = nil
      } else {
        block?.append(contentsOf: line)
      }
    }
    return false
  }
}
