/// The cache settings of a request. The value is one reference wide.
public struct CacheOptions: Hashable, Sendable {
  /// The party that decides what the cache stores and for how long.
  public enum Mode: Hashable, Sendable {
    /// The cache is not used.
    case off
    /// The server decides: RFC 9111 as a private cache, RFC 5861 and RFC 8246.
    case http
    /// The caller decides, with a declaration for an API.
    case api(Declaration)
    /// The version in each request decides, for resources with versions.
    case versioned(Versions)
  }

  /// The caller's declaration for the responses of an API. `no-store` overrides the declaration.
  public struct Declaration: Hashable, Sendable {
    /// What the cache does with a response after its time to live.
    public enum Expired: Hashable, Sendable {
      /// The cache fetches the response again.
      case refetch
      /// The cache serves the old response and refreshes it in the background, until `within` after the end
      /// of its time to live. Applies to responses with a status from 200 to 299.
      case serveAndRefresh(within: Duration)
    }

    /// The service, environment and name of the API; `nil` stands for the request's method, origin and path.
    public var name: String?
    /// How long a response with a status from 200 to 299 is fresh; `nil` means that no such response is
    /// stored.
    public var timeToLive: Duration?
    /// What the cache does after the time to live. Default: `refetch`.
    public var expired = Expired.refetch
    /// How long an error response is fresh if its status is cacheable by default (404, 410 and similar; RFC
    /// 9110, section 15.1). `nil` means that no error response is stored. Default: `nil`. Keep the time
    /// short.
    public var negativeTimeToLive: Duration?

    /// Creates a declaration.
    public init(
      name: String? = nil, timeToLive: Duration?, expired: Expired = .refetch,
      negativeTimeToLive: Duration? = nil
    ) {
      self.name = name
      self.timeToLive = timeToLive
      self.expired = expired
      self.negativeTimeToLive = negativeTimeToLive
    }
  }

  /// How the cache compares versions of resources. In this mode the cache ignores requests without a version.
  public struct Versions: Hashable, Sendable {
    /// The name of the API, as in `Declaration`.
    public var name: String?
    /// The query parameter with the version, a whole number. The parameter is not part of the cache key.
    /// Default: `cachevers`.
    public var parameter = "cachevers"
    /// The limit for serving old versions. If a stored version is older than the requested version by less
    /// than `threshold`, the cache serves it and refreshes it in the background. Otherwise the cache fetches
    /// the requested version. Default: 1, which serves no old version.
    public var threshold: Int64 = 1

    /// Creates the default settings.
    public init() {}
  }

  private final class Storage: Sendable {
    let mode: Mode
    let partition: String

    init(_ mode: Mode, _ partition: String) {
      self.mode = mode
      self.partition = partition
    }
  }

  private var storage: Storage

  /// The party that decides what the cache stores and for how long.
  public var mode: Mode {
    get { storage.mode }
    set { storage = Storage(newValue, storage.partition) }
  }
  /// The cache partition. A partition never sees the entries of another. If one client serves several tenants
  /// or users, put the tenant or user here. The cache separates requests with different credentials
  /// (`ClientConfiguration.Cache.credentialFields`) in any case. Default: empty.
  public var partition: String {
    get { storage.partition }
    set { storage = Storage(storage.mode, newValue) }
  }

  /// Creates options.
  public init(_ mode: Mode, partition: String = "") { storage = Storage(mode, partition) }

  /// Does not use the cache.
  public static let off = CacheOptions(.off)
  /// Follows RFC 9111.
  public static let http = CacheOptions(.http)
  /// Follows the caller's declaration for the responses of an API.
  public static func api(_ declaration: Declaration) -> CacheOptions { CacheOptions(.api(declaration)) }

  /// Whether both options are equal.
  public static func == (a: CacheOptions, b: CacheOptions) -> Bool {
    a.storage === b.storage || a.mode == b.mode && a.partition == b.partition
  }

  /// Hashes the options.
  public func hash(into hasher: inout Hasher) {
    hasher.combine(mode)
    hasher.combine(partition)
  }
}
