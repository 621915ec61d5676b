/// Limits and wishes for one request.
public struct RequestOptions: Hashable, Sendable {
  /// The longest that the call may take, from `execute` to the last byte of the body; 60 s unless said otherwise,
  /// `nil` for no limit. A long download or a stream of events wants more.
  public var timeout: Duration? = .seconds(60)

  /// The longest that one leg of the race may take to be ready (TCP and TLS). Default: 10 s.
  public var connectTimeout: Duration = .seconds(10)

  /// How the server's certificate is checked.
  public enum Verification: Hashable, Sendable {
    /// Chain and name; the default.
    case full
    /// Neither: anyone on the path can read and change the exchange. The response says that it was so.
    case none
  }

  /// How the server's certificate is checked.
  public var verification: Verification = .full

  /// Which version of HTTP is asked for.
  public enum Version: Hashable, Sendable {
    /// HTTP/2 over TLS when the server offers it, else HTTP/1.1.
    case automatic
    /// HTTP/1.1.
    case http1
    /// HTTP/2 or nothing.
    case http2
  }

  /// Which version of HTTP is asked for. Default: `automatic`.
  public var version: Version = .automatic

  /// Which way a request may go.
  public enum Routing: Hashable, Sendable {
    /// The list's endpoints, fastest first, then DNS.
    case automatic
    /// DNS alone.
    case dns
    /// This address alone, whatever list and DNS say.
    case pinned(IPAddress)
  }

  /// Which way the request may go. Default: `automatic`.
  public var routing: Routing = .automatic

  /// Which addresses may be used, the list's and DNS's, or `nil` for both families.
  public var family: IPAddress.Family?

  /// Whether direct mode is used although a proxy is configured. Default: no; the request goes through the proxy.
  public var directDespiteProxy = false

  /// How connections and their caches are used.
  public enum ConnectionUse: Hashable, Sendable {
    /// A pooled connection when there is one; the connection is kept afterwards.
    case pooled
    /// A new connection, without a resumed TLS session or a cached DNS answer, closed afterwards. For measuring.
    case fresh
  }

  /// How connections are used. Default: `pooled`.
  public var connection: ConnectionUse = .pooled

  /// Whether compressed responses are asked for and decoded (gzip, deflate, br, zstd). Default: yes.
  public var decompress = true

  /// How many redirects are followed; 0 gives the redirect itself back. Default: 10.
  public var maxRedirects = 10

  /// How often the request may be sent in all, for one hop of a redirected call; 1 or less for no retries. Default: 3.
  ///
  /// A further attempt is made only for a request that may be repeated (`NetOptRequest.mayBeRepeated`), when its connection
  /// failed after it was sent, its endpoint went silent, or the answer was 421, 502, 503 or 504; elsewhere when there is
  /// an elsewhere; within the client's budget for retries, but for a connection that turned out to be dead; and never when it
  /// could not end before the deadline. Any other request is sent again only when servers refused to process it.
  public var maxAttempts = 3

  /// Whether a second copy is sent to another endpoint when an answer takes longer than nearly all (95 %) of the origin's
  /// answers took to requests with this option. The first answer counts, the other copy is cancelled. Only for a request
  /// that may be repeated, and drawn from the budget for retries. Default: no.
  public var hedges = false

  /// How the cache is used; `nil`, the default, for what the client's configuration says. A client without a cache uses none.
  public var cache: CacheOptions?

  /// Makes the defaults.
  public init() {}
}
