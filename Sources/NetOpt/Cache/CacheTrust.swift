import NetOptCaching
import NetOptCore
import NetOptCrypto

extension ClientConfiguration.Cache {
  /// The part of each partition that depends on the client's TLS settings and credential fields. Clients with
  /// the same directory share responses only if these settings are equal. Otherwise a client could receive a
  /// response from a server that it does not trust, or the response to another user, whom the server knows by
  /// the client certificate. Empty for the default settings; otherwise a digest of the settings in
  /// hexadecimal.
  ///
  /// - Throws: `libraryFailed` when libcrypto fails.
  func settingsDigest(_ tls: LoadedTLS) throws(NetOptError) -> String {
    var choices: [[UInt8]] = []
    let fields = credentials()
    if fields.text != Self().credentials().text { choices.append(Array("fields \(fields.text)".utf8)) }
    choices += tls.trustTexts
    if choices.isEmpty { return "" }
    do throws(CryptoError) {
      let digests = try choices.map { bytes throws(CryptoError) in try Digest.of(bytes, .sha256) }
      var digest: [UInt8] = []
      digest.append(hex: Array(try Digest.of(Array(digests.joined()), .sha256).prefix(16)))
      return String(decoding: digest, as: UTF8.self)
    } catch {
      throw NetOptError(
        .libraryFailed, phase: .cache, "netopt cannot compute the keys of cache entries: \(error)")
    }
  }
}
