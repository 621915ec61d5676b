import NetOptCore

extension ClientConfiguration {
  /// Looks whether the file with the authorities is one: otherwise it would show at the first handshake.
  ///
  /// - Throws: `invalidConfiguration`.
  func checkAuthorities() throws(NetOptError) {
    guard let path = tls.caFile else { return }
    let bytes: [UInt8]
    do throws(NetOptError) {
      // Bundles have some hundred kilobytes.
      bytes = try FileBytes.read(path, upTo: 1 << 24, as: "the file with the authorities", in: .tls)
    } catch {
      throw NetOptError(.invalidConfiguration, phase: .tls, error.message, underlying: error.underlying)
    }
    // RFC 7468, and the form that OpenSSL writes for certificates with trust settings.
    let marks = ["-----BEGIN CERTIFICATE-----", "-----BEGIN TRUSTED CERTIFICATE-----"]
    guard marks.contains(where: { bytes.firstRange(of: Array($0.utf8)) != nil }) else {
      throw NetOptError(
        .invalidConfiguration, phase: .tls,
        "\(path) has no certificate in PEM form, so no authority could be trusted; name a file that begins with -----BEGIN CERTIFICATE-----"
      )
    }
  }
}
