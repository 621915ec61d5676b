/// The limits and preferences of one request.
public struct RequestOptions: Hashable, Sendable {
  /// The maximum duration of the call, from `execute` to the last byte of the body; `nil` for no limit. Raise
  /// the limit for long downloads and event streams. An interceptor may change the limit of a call.
  ///
  /// Default: the limit of the client (`ClientConfiguration.Defaults.timeout`), which is 60 s unless it is
  /// configured. In options in which it is not set, the property reads 60 s.
  public var timeout: Duration? {
    get { limit.value }
    set { limit = TimeLimit(value: newValue, isSet: true) }
  }

  /// The time limit of requests that set none, in clients with default settings.
  package static var usualTimeout: Duration? { .seconds(60) }

  private struct TimeLimit: Hashable, Sendable {
    var value = RequestOptions.usualTimeout
    var isSet = false
  }

  private var limit = TimeLimit()

  /// Whether `timeout` was set.
  package var hasTimeout: Bool { limit.isSet }

  /// The maximum time for one leg of the race to become ready (TCP and TLS). Default: 10 s.
  public var connectTimeout: Duration = .seconds(10)

  /// How the client verifies the server's certificate.
  public enum Verification: Hashable, Sendable {
    /// Verifies the certificate's chain and name.
    case full
    /// Does not verify the certificate. Anyone on the network path can read and change the request and the
    /// response. `TLSReport.verified` of the response is then false.
    case none
  }

  /// How the client verifies the server's certificate. Default: `full`.
  public var verification: Verification = .full

  /// The version of HTTP to use.
  public enum Version: Hashable, Sendable {
    /// HTTP/2 over TLS if the server offers it, otherwise HTTP/1.1.
    case automatic
    /// HTTP/1.1.
    case http1
    /// HTTP/2 only. The request fails if the server does not offer it.
    case http2
  }

  /// The version of HTTP to use. Default: `automatic`.
  public var version: Version = .automatic

  /// The endpoints that a request may use.
  public enum Routing: Hashable, Sendable {
    /// The list's endpoints, fastest first, then DNS.
    case automatic
    /// Only DNS.
    case dns
    /// Only this address, regardless of the list and DNS.
    case pinned(IPAddress)
  }

  /// The endpoints that the request may use. Default: `automatic`.
  public var routing: Routing = .automatic

  /// The address family that the request may use, for addresses from the list and from DNS; `nil` for both
  /// families. Default: `nil`.
  public var family: IPAddress.Family?

  /// Whether the client sends the request directly to the server although a proxy is configured. The address
  /// of the server then comes from the list or from DNS. Default: false.
  public var directDespiteProxy = false

  /// How a request uses pooled connections and cached connection data.
  public enum ConnectionUse: Hashable, Sendable {
    /// Uses a pooled connection if there is one, and returns the connection to the pool afterwards.
    case pooled
    /// Opens a new connection for the request and closes it afterwards. Resumes no TLS session and uses no
    /// cached DNS result. For measurements.
    case fresh
  }

  /// How the request uses pooled connections and cached connection data. Default: `pooled`.
  public var connection: ConnectionUse = .pooled

  /// Whether the client asks for compressed responses (gzip, deflate, br, zstd) and decodes them. The client
  /// does not ask for them in a request with a `Range`: a part of a compressed body cannot be decoded.
  /// Default: true.
  public var decompress = true

  /// The maximum number of redirects to follow. With 0, the call returns the redirect itself. Default: 10.
  public var maxRedirects = 10

  /// The maximum number of attempts, for each hop of a redirected call. 1 or less disables retries and
  /// hedges. Default: 3.
  ///
  /// Within one attempt, the client may send the request several times. It sends any request again when the
  /// server did not process it. If a pooled connection was dead, it sends the request again on a new
  /// connection, provided that the request may be repeated. `maxAttempts` does not limit these resends.
  /// `NetOptResponse.attempts` counts them.
  ///
  /// The client retries a request that may be repeated (`NetOptRequest.mayBeRepeated`) after one of these
  /// events, if the caller does not have a response yet: the connection failed after the request was sent,
  /// the server broke the rules of HTTP, the endpoint went silent, or the status was 421, 502, 503 or 504.
  /// The client retries any other request only if no server processed it and its body is not a stream.
  ///
  /// The retry uses another endpoint if there is one. Each retry uses a part of the client's retry budget,
  /// with one exception: a retry is free if the connection went silent before the server's kernel
  /// acknowledged the request. The client does not retry if too little time is left until the deadline.
  public var maxAttempts = 3

  /// Whether the client hedges the request: it sends a second copy to another endpoint if the response takes
  /// longer than 95 % of the origin's responses to requests with this option. The first response whose status
  /// is not 421, 502, 503 or 504 wins, and the client cancels the other copy. Applies only to requests that
  /// may be repeated, and when at least 40 such responses are known. Each hedge uses a part of the retry
  /// budget. Default: false.
  public var hedges = false

  /// How the request uses the cache of the client; `nil` to use the options in the client's configuration.
  /// Has no effect in a client without a cache. Default: `nil`.
  public var cache: CacheOptions?

  /// The kind of the request in the metrics of the client (`NetOptClient.metrics`), such as the name of an
  /// API. A client tells at most 50 tags of at most 128 bytes apart, so a tag must not contain an id of a user
  /// or of a document. Must not contain a secret. Default: `nil`.
  public var tag: String?

  /// Creates the default options.
  public init() {}
}
