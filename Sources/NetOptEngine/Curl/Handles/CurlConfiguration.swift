package import NetOptCore

/// The settings that all transfers of a `CurlTransport` share.
public struct CurlConfiguration: Sendable {
  /// The TLS settings of the hosts that have none of their own.
  package var tls = TLSSettings()
  /// The TLS settings of single hosts, by the name of the host in lower case.
  package var hosts: [String: TLSSettings] = [:]
  /// The pins of the IP list, by the name of the host in lower case.
  package var listPins: [String: [PublicKeyPin]] = [:]
  /// The path of the file to which the secrets of TLS connections are written; `nil` for none.
  package var keyLog: String?
  /// The value of `User-Agent` for requests without this field. If the value is empty, the field is not sent.
  public var userAgent = "netopt"
  /// The maximum number of connections of one origin to one endpoint, at least 1. Further requests wait.
  /// Default: 16. HTTP/2 seldom needs a second connection.
  public var connectionsPerEndpoint = 16
  /// The maximum number of connections in total, at least 1. Default: 256.
  public var totalConnections = 256
  /// The maximum number of idle connections that are kept, at least 0. Default: 64.
  public var idleConnections = 64
  /// The maximum idle time of a connection, 1 s to 365 days. A connection that was idle for longer is not
  /// reused. The time should be shorter than the idle time after which load balancers drop connections.
  /// Default: 55 s.
  public var idleAge = Duration.seconds(55)
  /// The maximum age of a connection, 1 s to 365 days. An older connection is not reused. Default: `nil`, for
  /// no limit.
  public var lifetime: Duration?
  /// How many received bytes of a body may wait for the caller to read them before netopt pauses the
  /// transfer, 1 byte to 1 GiB. Default: 512 KiB. Over HTTP/2, libcurl may hold more: a server may send as
  /// much as the window that libcurl announces for each stream.
  public var bodyBuffer = 512 * 1024

  /// Makes a configuration with the default values.
  public init() {}
}

// The ranges of the settings. `ClientConfiguration` checks its own settings against the same ranges. Its
// errors name the client's setting, such as `connections.idle` and not `idleConnections`.
extension CurlConfiguration {
  /// The range of `connectionsPerEndpoint` and `totalConnections`. 0 is excluded, because libcurl takes it
  /// for no limit.
  package static let connectionCounts = SettingRange(1...1_000_000)
  /// The range of `idleConnections`. With 0, libcurl closes each connection after its last transfer.
  package static let idleCounts = SettingRange(0...1_000_000)
  /// The range of `idleAge` and `lifetime`. libcurl counts whole seconds, and takes 0 for no limit.
  package static let ages = SettingRange(Duration.seconds(1) ... .seconds(31_536_000), "1 s to 365 days")
  /// The range of `bodyBuffer`, in bytes. With 0, no byte would ever be received.
  package static let bodyBuffers = SettingRange(1...1 << 30)

  /// Checks the settings. Refuses numbers that libcurl would misunderstand or that would stop a transfer, and
  /// a `User-Agent` that is not a valid field value.
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
    try tls.check()
    for (host, settings) in hosts { try settings.check("tls.hosts[\"\(host)\"]") }
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
