import NetOpt
import NetOptCore

/// The options of commands that make requests and may answer them from a cache.
struct CacheArguments: Sendable {
  /// Whose rules the cache goes by.
  enum Mode: String, CaseIterable, Sendable {
    /// RFC 9111.
    case http
    /// What `--cache-ttl` declares.
    case api
    /// Nobody's: it is not used.
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

  /// The options.
  static let group = OptionGroup("Caching", [directory, mode, timeToLive])

  /// Where responses are kept; `nil` for memory alone.
  let directory: String?
  /// What the command line says; `nil` when it says nothing.
  var mode: Mode?
  /// How long answers are fresh in mode `api`.
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

  /// The client's cache; `nil` when none is asked for.
  var configuration: ClientConfiguration.Cache? {
    guard let mode, mode != .off else { return nil }
    var cache = ClientConfiguration.Cache()
    cache.options = options(mode)
    cache.directory = directory
    return cache
  }

  /// How the cache is used in a mode.
  func options(_ mode: Mode) -> NetOptCore.CacheOptions {
    switch mode {
    case .http: .http
    case .api: .api(.init(timeToLive: timeToLive))
    case .off: .off
    }
  }
}
