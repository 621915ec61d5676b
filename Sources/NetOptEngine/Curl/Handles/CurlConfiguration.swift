package import NetOptCore

/// What holds for all transfers of a `CurlTransport`.
public struct CurlConfiguration: Hashable, Sendable {
  /// A PEM file with the authorities to trust instead of the system's.
  public var caFile: String?
  /// The value of `User-Agent` for requests that bring none; empty for not sending it.
  public var userAgent = "netopt"
  /// The most connections of one origin to one endpoint, at least 1; more requests wait. Default: 16. HTTP/2 seldom needs a second one.
  public var connectionsPerEndpoint = 16
  /// The most connections in all, at least 1. Default: 256.
  public var totalConnections = 256
  /// The most idle connections that are kept, at least 0. Default: 64.
  public var idleConnections = 64
  /// How long a connection may have been idle to be used again, 1 s to 365 days; below what load balancers allow. Default: 55 s.
  public var idleAge = Duration.seconds(55)
  /// How long a connection may be used at all, 1 s to 365 days, or `nil` for no limit. Default: none.
  public var lifetime: Duration?
  /// How many bytes of a body are held for a consumer that does not read, before the transfer is paused,
  /// 1 to 1 GiB. Default: 512 KiB. An HTTP/2 server may have more on the way: libcurl announces a window per stream.
  public var bodyBuffer = 512 * 1024

  /// Makes the defaults.
  public init() {}
}

// What the numbers may be. A client holds its own settings against these, under their own names.
extension CurlConfiguration {
  /// How many connections there may be: to libcurl none means no limit.
  package static let connectionCounts = SettingRange(1...1_000_000)
  /// How many idle ones may be kept: none closes each connection after its last transfer.
  package static let idleCounts = SettingRange(0...1_000_000)
  /// How old a connection may become: libcurl counts whole seconds, and takes none for no limit.
  package static let ages = SettingRange(Duration.seconds(1) ... .seconds(31_536_000), "1 s to 365 days")
  /// How much of a body may be held: without room for a byte nothing is ever received.
  package static let bodyBuffers = SettingRange(1...1 << 30)

  /// Refuses numbers that libcurl would take for something else, or that would stop a transfer, and a `User-Agent` that is no field.
  ///
  /// - Throws: `invalidConfiguration` with the setting, its value and what it may be.
  func check() throws(NetOptError) {
    try Self.connectionCounts.check(connectionsPerEndpoint, "connectionsPerEndpoint")
    try Self.connectionCounts.check(totalConnections, "totalConnections")
    try Self.idleCounts.check(idleConnections, "idleConnections")
    try Self.ages.check(idleAge, "idleAge")
    if let lifetime { try Self.ages.check(lifetime, "lifetime") }
    try Self.bodyBuffers.check(bodyBuffer, "bodyBuffer")
    try Self.checkUserAgent(userAgent)
  }

  /// Refuses a value of `User-Agent` that would add fields or requests of its own.
  ///
  /// - Throws: `invalidConfiguration`.
  package static func checkUserAgent(_ value: String) throws(NetOptError) {
    guard HeaderFields.fault(of: HeaderField("User-Agent", value)) != nil else { return }
    throw NetOptError(
      .invalidConfiguration, phase: .connect,
      "userAgent is \(value.debugDescription); it may be any text without line ends and NUL")
  }
}
