import NetOptCore
import NetOptCurl
import NetOptResolver

extension ClientConfiguration {
  /// Refuses values that make no sense, before anything is made of them: numbers that would stop a transfer or a clock further down,
  /// and a name that would add header fields to every request.
  ///
  /// - Throws: `invalidConfiguration` with the setting, its value and what it may be.
  func checkValues() throws(NetOptError) {
    let (hour, century) = (Duration.seconds(3600), Duration.seconds(36_500 * 86_400))
    try probing.budget.isSetting("probing.budget", in: .milliseconds(1)...hour, "1 ms to 1 h")
    try probing.concurrency.isSetting("probing.concurrency", in: 1...65_536)
    try probing.firstRequestWait.isSetting("probing.firstRequestWait", in: .zero...hour, "0 s to 1 h")
    try dns.timeout.isSetting("dns.timeout", in: ResolverConfiguration.timeouts, "1 ms to 60 s")
    try dns.tries.isSetting("dns.tries", in: ResolverConfiguration.attempts)
    try connections.check()
    if HTTPFields.fault(of: HTTPField("User-Agent", userAgent)) != nil {
      throw NetOptError(
        .invalidConfiguration, phase: .connect,
        "userAgent is \(userAgent.debugDescription); it may be any text without line ends and NUL")
    }
    let bytes = 0...1 << 50
    guard let cache else { return }
    try cache.maxBytes.isSetting("cache.maxBytes", in: bytes)
    try cache.maxDiskBytes.isSetting("cache.maxDiskBytes", in: bytes)
    try cache.maxEntryBytes.isSetting("cache.maxEntryBytes", in: bytes)
    try cache.maxPendingBytes.isSetting("cache.maxPendingBytes", in: bytes)
    try cache.maxAge?.isSetting("cache.maxAge", in: .zero...century, "0 s to 36500 days")
    try cache.staleWhenUnreachable.isSetting(
      "cache.staleWhenUnreachable", in: .zero...century, "0 s to 36500 days")
  }

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

extension ClientConfiguration.Connections {
  fileprivate func check() throws(NetOptError) {
    let year = "1 s to 365 days"
    try perEndpoint.isSetting("connections.perEndpoint", in: CurlConfiguration.connectionCounts)
    try total.isSetting("connections.total", in: CurlConfiguration.connectionCounts)
    try idle.isSetting("connections.idle", in: CurlConfiguration.idleCounts)
    try idleAge.isSetting("connections.idleAge", in: CurlConfiguration.ages, year)
    try lifetime?.isSetting("connections.lifetime", in: CurlConfiguration.ages, year)
    try bodyBuffer.isSetting("connections.bodyBuffer", in: CurlConfiguration.bodyBuffers)
  }
}

extension Comparable {
  /// Holds a setting's value against its range.
  ///
  /// - Parameter words: the range in words.
  /// - Throws: `invalidConfiguration`.
  fileprivate func isSetting(
    _ name: String, in range: ClosedRange<Self>, _ words: String? = nil
  ) throws(NetOptError) {
    if range.contains(self) { return }
    let words = words ?? "\(range.lowerBound) to \(range.upperBound)"
    throw NetOptError(.invalidConfiguration, phase: .connect, "\(name) is \(self); it may be \(words)")
  }
}
