/// The cache settings of a request. The value has the size of one reference, so that copies are cheap.
public struct CacheOptions: Hashable, Sendable {
  /// Who decides what the cache stores and for how long.
  public enum Mode: Hashable, Sendable {
    /// The cache is not used.
    case off
    /// The server decides, with the fields of its responses. The cache is a private cache of RFC 9111 and
    /// supports RFC 5861 (`stale-while-revalidate`, `stale-if-error`) and RFC 8246 (`immutable`).
    case http
    /// The caller decides, with a declaration for the responses of an API.
    case api(Declaration)
    /// The version that the request's query names decides. For resources that have numbered versions.
    case versioned(Versions)
  }

  /// How the cache treats the responses of an API, as the caller declares it. The cache still stores no
  /// response with `no-store`.
  public struct Declaration: Hashable, Sendable {
    /// What the cache does with a stored response after its time to live.
    public enum Expired: Hashable, Sendable {
      /// The cache fetches the response again.
      case refetch
      /// For the duration `within` after the end of the time to live, the cache serves the stored response
      /// and fetches a new one in the background. After that, the cache fetches the response again before it
      /// answers. Applies only to responses with a status from 200 to 299.
      case serveAndRefresh(within: Duration)
    }

    /// The name of the API, which should contain its service and environment. The name is part of the cache
    /// key. `nil` stands for the request's method, origin and path.
    public var name: String?
    /// The longest time for which a response with a status from 200 to 299 is fresh. The cache shortens the
    /// time by a random part, at most 10 %, so that responses do not all expire together. `nil` means that no
    /// such response is stored.
    public var timeToLive: Duration?
    /// What the cache does with a stored response after its time to live. Default: `refetch`.
    public var expired = Expired.refetch
    /// The longest time for which an error response is fresh if its status is cacheable by default (404, 410
    /// and similar; RFC 9110, section 15.1). The cache shortens the time as it does with `timeToLive`. `nil`
    /// means that no error response is stored. Default: `nil`. Keep the time short.
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

  /// How the cache compares versions of resources in the mode `versioned`. A stored response answers requests
  /// for its own version and for older versions. The cache does not answer a request without a version, and
  /// does not store the response to it.
  public struct Versions: Hashable, Sendable {
    /// The name of the API, as in `Declaration.name`. Default: `nil`.
    public var name: String?
    /// The name of the query parameter that has the version, a whole number. The parameter is not part of the
    /// cache key. Default: `cachevers`.
    public var parameter = "cachevers"
    /// The limit for serving old versions. If the stored version is older than the requested version by less
    /// than `threshold`, the cache serves the stored version and fetches the requested one in the background.
    /// Otherwise the cache fetches the requested version first. Default: 1, so that no old version is served.
    public var threshold: Int64 = 1

    /// Creates the default settings.
    public init() {}
  }

  /// The values of `mode` and `partition`, in one object.
  private final class Storage: Sendable {
    let mode: Mode
    let partition: String

    init(_ mode: Mode, _ partition: String) {
      self.mode = mode
      self.partition = partition
    }
  }

  private var storage: Storage

  /// Who decides what the cache stores and for how long.
  public var mode: Mode {
    get { storage.mode }
    set { storage = Storage(newValue, storage.partition) }
  }
  /// The cache partition. A request never gets a response from another partition. If one client serves
  /// several tenants or users, use the name of the tenant or user as the partition. Whatever the partition,
  /// the cache separates requests with different credentials
  /// (`ClientConfiguration.Cache.credentialFields`). Default: empty.
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
