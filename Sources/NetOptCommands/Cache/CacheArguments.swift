import NetOpt
import NetOptCore

/// The cache options of commands that make requests.
struct CacheArguments: Sendable {
  /// The rules for storing and reusing responses.
  enum Mode: String, CaseIterable, Sendable {
    /// HTTP caching by RFC 9111.
    case http
    /// Responses are fresh for the time that `--cache-ttl` declares.
    case api
    /// The client does not use the cache.
    case off
  }

  static let directory = Option(
    "cache", takes: .required("DIR"), "keep responses in this directory, which processes may share",
    environment: "NETOPT_CACHE")
  static let mode = Option(
    "cache-mode", takes: .required("MODE"),
    "whose rules the cache goes by: http (RFC 9111), api (--cache-ttl), off; default with --cache: http",
    environment: "NETOPT_CACHE_MODE")
  static let timeToLive = Option(
    "cache-ttl", takes: .required("SECONDS"),
    "with mode api, how long an answer is fresh, at most a year; without it none is stored")

  /// The options as a group of the help text.
  static let group = OptionGroup("Caching", [directory, mode, timeToLive])

  /// The directory of the disk cache; `nil` for a cache in memory only.
  let directory: String?
  /// The mode from `--cache-mode`, else `http` if a directory is given, else `nil`.
  var mode: Mode?
  /// How long responses are fresh in mode `api`, at most a year; `nil` to store no responses.
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

  /// The client's cache; `nil` when the arguments ask for no cache.
  var configuration: ClientConfiguration.Cache? {
    guard let mode, mode != .off else { return nil }
    var cache = ClientConfiguration.Cache()
    cache.options = options(mode)
    cache.directory = directory
    return cache
  }

  /// Returns the cache options of requests in a mode.
  func options(_ mode: Mode) -> NetOptCore.CacheOptions {
    switch mode {
    case .http: .http
    case .api: .api(.init(timeToLive: timeToLive))
    case .off: .off
    }
  }
}
