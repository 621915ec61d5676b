/// What holds for all transfers of a `CurlTransport`.
public struct CurlConfiguration: Hashable, Sendable {
  /// A PEM file with the authorities to trust instead of the system's.
  public var caFile: String?
  /// The value of `User-Agent` for requests that bring none; empty for not sending it.
  public var userAgent = "netopt"
  /// The most connections of one origin to one endpoint; more requests wait. Default: 16. HTTP/2 seldom needs a second one.
  public var connectionsPerEndpoint = 16
  /// The most connections in all. Default: 256.
  public var totalConnections = 256
  /// The most idle connections that are kept. Default: 64.
  public var idleConnections = 64
  /// How long a connection may have been idle to be used again; below what load balancers allow. Default: 55 s.
  public var idleAge = Duration.seconds(55)
  /// How long a connection may be used at all, or `nil` for no limit. Default: none.
  public var lifetime: Duration?
  /// How many bytes of a body are held for a consumer that does not read, before the transfer is paused.
  /// Default: 512 KiB. An HTTP/2 server may have more on the way: libcurl announces a window per stream.
  public var bodyBuffer = 512 * 1024

  /// Makes the defaults.
  public init() {}
}

// What the numbers may be. Whoever makes a configuration of what a caller sets holds that against these.
extension CurlConfiguration {
  /// How many connections there may be: to libcurl none means no limit.
  package static let connectionCounts = 1...1_000_000
  /// How many idle ones may be kept: none closes each connection after its last transfer.
  package static let idleCounts = 0...1_000_000
  /// How old a connection may become: libcurl counts whole seconds, and takes none for no limit.
  package static let ages = Duration.seconds(1) ... .seconds(31_536_000)
  /// How much of a body may be held: without room for a byte nothing is ever received.
  package static let bodyBuffers = 1...1 << 30
}
