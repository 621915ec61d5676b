/// How the cache is used for a request. A value that is one reference.
public struct CacheOptions: Hashable, Sendable {
  /// Who decides what is stored, and for how long.
  public enum Mode: Hashable, Sendable {
    /// The cache is not used.
    case off
    /// The server: RFC 9111 as a private cache, RFC 5861 and RFC 8246.
    case http
    /// The caller, for a declared API.
    case api(Declaration)
    /// The version that each request names, for resources that have one.
    case versioned(Versions)
  }

  /// What a caller declares of an API's answers. `no-store` wins over it.
  public struct Declaration: Hashable, Sendable {
    /// What is done when an answer's time is over.
    public enum Expired: Hashable, Sendable {
      /// It is fetched again.
      case refetch
      /// The old one is given out, and a new one fetched beside it, for so long after its time was over.
      case serveAndRefresh(within: Duration)
    }

    /// Service, environment and name of the API; `nil` stands for the request's method, origin and path.
    public var name: String?
    /// How long an answer with a status from 200 to 299 is fresh; `nil` means that none is stored.
    public var timeToLive: Duration?
    /// What is done when that is over. Default: it is fetched again.
    public var expired = Expired.refetch
    /// How long other answers that RFC 9110, section 15.1 lets be cached (404, 410 and the like) are fresh; `nil`, the
    /// default, means that none is stored. Keep it short.
    public var negativeTimeToLive: Duration?

    /// Makes a declaration.
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

  /// How versions of resources are compared. A request without a version is not cached in this mode.
  public struct Versions: Hashable, Sendable {
    /// As in `Declaration`.
    public var name: String?
    /// The parameter of the query that has the version, a whole number. It is no part of the key. Default: `cachevers`.
    public var parameter = "cachevers"
    /// What is behind the version that is asked for by less than this is given out, and refreshed beside it; what is further
    /// behind is fetched. Default: 1, which gives nothing old out.
    public var threshold: Int64 = 1

    /// Makes the defaults.
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

  /// Who decides.
  public var mode: Mode {
    get { storage.mode }
    set { storage = Storage(newValue, storage.partition) }
  }
  /// Whose entries are used: partitions never see each other's. Name a tenant or a user here when one client serves several.
  /// Requests with different credentials (`ClientConfiguration.Cache.credentialFields`) are kept apart in any case. Default: empty.
  public var partition: String {
    get { storage.partition }
    set { storage = Storage(storage.mode, newValue) }
  }

  /// Makes options.
  public init(_ mode: Mode, partition: String = "") { storage = Storage(mode, partition) }

  /// The cache is not used.
  public static let off = CacheOptions(.off)
  /// RFC 9111.
  public static let http = CacheOptions(.http)
  /// What a caller declares of an API's answers.
  public static func api(_ declaration: Declaration) -> CacheOptions { CacheOptions(.api(declaration)) }

  /// Whether two options are the same.
  public static func == (a: CacheOptions, b: CacheOptions) -> Bool {
    a.storage === b.storage || a.mode == b.mode && a.partition == b.partition
  }

  /// Hashes the options.
  public func hash(into hasher: inout Hasher) {
    hasher.combine(mode)
    hasher.combine(partition)
  }
}
