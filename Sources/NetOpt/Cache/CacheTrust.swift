import NetOptCaching
import NetOptCore
import NetOptCrypto

extension ClientConfiguration.Cache {
  /// What tells the entries of a client from those of clients that share its directory and believe other authorities, or tell users apart
  /// by other fields: such a client could be given what it would not have believed, or what another user was answered. Empty for what
  /// is usual.
  ///
  /// - Parameter authorities: the file with those that are believed instead of the system's.
  /// - Throws: `unreadableFile` for that file.
  func trust(authorities: String?) throws(NetOptError) -> String {
    var choices: [[UInt8]] = []
    let fields = credentials()
    if fields.text != Self().credentials().text { choices.append(Array(fields.text.utf8)) }
    if let authorities {
      choices.append(
        try FileBytes.read(authorities, upTo: 1 << 24, as: "the file with the authorities", in: .tls))
    }
    if choices.isEmpty { return "" }
    do throws(CryptoError) {
      let digests = try choices.map { bytes throws(CryptoError) in try Digest.of(bytes, .sha256) }
      var trust: [UInt8] = []
      trust.append(hex: Array(try Digest.of(Array(digests.joined()), .sha256).prefix(16)))
      return String(decoding: trust, as: UTF8.self)
    } catch {
      throw NetOptError(.libraryFailed, phase: .cache, "the cache's entries cannot be told apart: \(error)")
    }
  }
}
