import NetOpt
import NetOptCore

/// The values of the cache options, for commands that make requests.
struct CacheArguments: Sendable {
  /// The rules for storing and reusing responses.
  enum Mode: String, CaseIterable, Sendable {
    /// HTTP caching by RFC 9111.
    case http
    /// Responses are fresh for the time that `--cache-ttl` declares.
    case api
    /// The client has no cache.
    case off
  }

  static let directory = Option(
    "cache", takes: .required("DIR"), "cache responses in DIR; several processes can share it",
    environment: "NETOPT_CACHE")
  static let mode = Option(
    "cache-mode", takes: .required("MODE"),
    "rules of the cache: http (RFC 9111), api (--cache-ttl) or off; default with --cache: http",
    environment: "NETOPT_CACHE_MODE")
  static let timeToLive = Option(
    "cache-ttl", takes: .required("SECONDS"),
    "in mode api, how long a response is fresh, at most 1 year; without it, nothing is cached")

  /// The options as a group of the help text.
  static let group = OptionGroup("Caching", [directory, mode, timeToLive])

  /// The directory of the disk cache; `nil` for a cache in memory only.
  let directory: String?
  /// The mode from `--cache-mode`, else `http` if a directory is given, else `nil`, which means no cache.
  var mode: Mode?
  /// How long responses are fresh in mode `api` (`--cache-ttl`), at most a year. With `nil`, the mode stores
  /// no response.
  let timeToLive: Duration?

  /// Reads the options.
  init(_ arguments: Arguments) throws(UsageError) {
    directory = arguments.value(of: Self.directory)
    timeToLive = try arguments.seconds(Self.timeToLive)
    guard let name = arguments.value(of: Self.mode) else {
      mode = directory == nil ? nil : .http
      return
    }
    guard let mode = Mode(rawValue: name) else {
      let known = Mode.allCases.map(\.rawValue).joined(separator: ", ")
      throw UsageError("\(arguments.name(of: Self.mode)) takes one of \(known), not \"\(name)\"")
    }
    self.mode = mode
  }

  /// The settings of the client's cache; `nil` when the arguments ask for no cache.
  var configuration: ClientConfiguration.Cache? {
    guard let mode, mode != .off else { return nil }
    var cache = ClientConfiguration.Cache()
    cache.options = options(mode)
    cache.directory = directory
    return cache
  }

  /// Returns the cache options for requests in this mode.
  func options(_ mode: Mode) -> NetOptCore.CacheOptions {
    switch mode {
    case .http: .http
    case .api: .api(.init(timeToLive: timeToLive))
    case .off: .off
    }
  }
}
