import NetOptCore

/// A host of the storm: a name with a port, and the HTTP versions of the servers behind it.
struct StormHost: Sendable, Hashable {
  /// The HTTP versions that clients get from a host when they allow both.
  enum Speaks: Sendable, Hashable {
    /// HTTP/1.1 on every connection.
    case http1
    /// HTTP/2 on every connection.
    case http2
    /// The version differs between connections or between addresses.
    case either
  }

  /// One of the three ports that all names share. `StormOrigins.ports` has the port numbers.
  enum Port: Int, Sendable, Hashable, CaseIterable {
    /// TLS.
    case first
    /// TLS. Here `new.test` speaks HTTP/1.1, and `old.test` speaks HTTP/2.
    case second
    /// HTTP without TLS.
    case plain
  }

  let name: String
  var port = Port.first
  /// The HTTP versions of the servers behind the host.
  let speaks: Speaks
  /// Whether the endpoint list contains the name with this port. DNS has every name.
  var isListed = true

  var scheme: Origin.Scheme { port == .plain ? .http : .https }

  /// All hosts. `StormOrigins` defines the servers behind them.
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
    // Hosts at the second and the third port. Their names, except one, occur above with other servers.
    StormHost(name: "new.test", port: .second, speaks: .http1, isListed: false),
    StormHost(name: "old.test", port: .second, speaks: .http2, isListed: false),
    StormHost(name: "new.test", port: .plain, speaks: .http1, isListed: false),
    StormHost(name: "plain.test", port: .plain, speaks: .http1, isListed: false),
  ]

  /// The names of all hosts, each once, in alphabetical order.
  static let names = Array(Set(all.map(\.name))).sorted()
}
