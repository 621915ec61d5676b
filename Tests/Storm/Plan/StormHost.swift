import NetOptCore

/// A host name of the storm, and the HTTP versions of its servers.
struct StormHost: Sendable, Hashable {
  /// The possible results of ALPN.
  enum Speaks: Sendable, Hashable {
    case http1
    case http2
    /// The version differs between connections or between addresses.
    case either
  }

  /// One of the three ports that all names share.
  enum Port: Int, Sendable, Hashable, CaseIterable {
    case first
    case second
    case plain
  }

  let name: String
  var port = Port.first
  let speaks: Speaks
  /// Whether the endpoint list contains the name. DNS has every name.
  var isListed = true

  var scheme: Origin.Scheme { port == .plain ? .http : .https }

  /// All names with their ports. `StormOrigins` defines the servers behind them.
  static let all: [StormHost] = [
    StormHost(name: "new.test", speaks: .http2),
    StormHost(name: "old.test", speaks: .http1),
    StormHost(name: "older.test", speaks: .http1),
    StormHost(name: "mixed.test", speaks: .either),
    StormHost(name: "split.test", speaks: .either),
    StormHost(name: "goaway.test", speaks: .http2),
    StormHost(name: "brief.test", speaks: .http1),
    StormHost(name: "tls12.test", speaks: .http2),
    StormHost(name: "dead.test", speaks: .http2),
    StormHost(name: "hole.test", speaks: .http2),
    StormHost(name: "six.test", speaks: .either),
    StormHost(name: "unlisted-new.test", speaks: .http2, isListed: false),
    StormHost(name: "unlisted-old.test", speaks: .http1, isListed: false),
    StormHost(name: "unlisted-mixed.test", speaks: .either, isListed: false),
    // The same names at another port, where their servers speak another version.
    StormHost(name: "new.test", port: .second, speaks: .http1, isListed: false),
    StormHost(name: "old.test", port: .second, speaks: .http2, isListed: false),
    StormHost(name: "new.test", port: .plain, speaks: .http1, isListed: false),
    StormHost(name: "plain.test", port: .plain, speaks: .http1, isListed: false),
  ]

  static let names = Array(Set(all.map(\.name))).sorted()
}
