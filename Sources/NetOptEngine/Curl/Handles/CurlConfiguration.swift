package import NetOptCore

/// The settings that all transfers of a `CurlTransport` share.
public struct CurlConfiguration: Hashable, Sendable {
  /// A PEM file with the certificate authorities to trust instead of the system's.
  public var caFile: String?
  /// The value of `User-Agent` for requests without this field. If the value is empty, the field is not sent.
  public var userAgent = "netopt"
  /// The most connections of one origin to one endpoint, at least 1. Further requests wait. Default: 16.
  /// HTTP/2 seldom needs a second connection.
  public var connectionsPerEndpoint = 16
  /// The most connections in total, at least 1. Default: 256.
  public var totalConnections = 256
  /// The most idle connections to keep, at least 0. Default: 64.
  public var idleConnections = 64
  /// The longest idle time after which a connection is reused, 1 s to 365 days. It should be shorter than the
  /// limit of load balancers. Default: 55 s.
  public var idleAge = Duration.seconds(55)
  /// The age up to which a connection is used, 1 s to 365 days; `nil` for no limit, which is the default.
  public var lifetime: Duration?
  /// The number of body bytes to hold for a consumer that does not read, before the transfer is paused. 1
  /// byte to 1 GiB. Default: 512 KiB. An HTTP/2 server may have more on the way: libcurl announces a window
  /// per stream.
  public var bodyBuffer = 512 * 1024

  /// Makes the defaults.
  public init() {}
}

// The ranges of the settings. `ClientConfiguration` checks its own settings against the same ranges. Its
// errors name the client's setting, such as `connections.idle` and not `idleConnections`.
extension CurlConfiguration {
  /// The range of connection counts. libcurl takes 0 for no limit.
  package static let connectionCounts = SettingRange(1...1_000_000)
  /// The range of idle connection counts. With 0, libcurl closes each connection after its last transfer.
  package static let idleCounts = SettingRange(0...1_000_000)
  /// The range of ages of a connection. libcurl counts whole seconds, and takes 0 for no limit.
  package static let ages = SettingRange(Duration.seconds(1) ... .seconds(31_536_000), "1 s to 365 days")
  /// The range of body buffers, in bytes. With 0, no byte would ever be received.
  package static let bodyBuffers = SettingRange(1...1 << 30)

  /// Refuses numbers that libcurl would misunderstand or that would stop a transfer, and a `User-Agent` that
  /// is not a valid field value.
  ///
  /// - Throws: `invalidConfiguration` with the setting, its value and its range.
  func check() throws(NetOptError) {
    try Self.connectionCounts.check(connectionsPerEndpoint, "connectionsPerEndpoint")
    try Self.connectionCounts.check(totalConnections, "totalConnections")
    try Self.idleCounts.check(idleConnections, "idleConnections")
    try Self.ages.check(idleAge, "idleAge")
    if let lifetime { try Self.ages.check(lifetime, "lifetime") }
    try Self.bodyBuffers.check(bodyBuffer, "bodyBuffer")
    try Self.checkUserAgent(userAgent)
  }

  /// Refuses a value of `User-Agent` that would add further fields or requests.
  ///
  /// - Throws: `invalidConfiguration`.
  package static func checkUserAgent(_ value: String) throws(NetOptError) {
    guard HeaderFields.fault(of: HeaderField("User-Agent", value)) != nil else { return }
    throw NetOptError(
      .invalidConfiguration, phase: .connect,
      "userAgent is \(value.debugDescription); allowed: any text without line ends and NUL")
  }
}
