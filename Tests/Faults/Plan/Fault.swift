/// One way in which a server, the path to it, a name server or a proxy fails while requests are sent.
package struct Fault: Sendable {
  /// The component that has the fault. The "server in use" is the server that answered most of the calls just
  /// before the fault. A `String` is the word that tells a Python program which fault to play
  /// (`Program.apply`).
  package enum Location: Sendable, Equatable {
    /// The server in use; `origin.py` plays the fault.
    case origin(String)
    /// All servers; `origin.py` plays the fault.
    case origins(String)
    /// The server in use is stopped: SIGSTOP.
    case stopped
    /// The server in use is killed and restarted.
    case restart
    /// All servers are killed and restarted, one after the other.
    case rollingRestart
    /// The network path to all servers; `wire.py` plays the fault.
    case wire(String)
    /// The network path to the server in use; `wire.py` plays the fault.
    case wireToVictim(String)
    /// The name server, while the server in use refuses connections; `names.py` plays the fault.
    case names(String)
    /// The first address that clients get for the host (`Site.unreachable`). It has no route, also before and
    /// after the time of the fault.
    case noRoute
    /// The proxy of all requests; `proxy.py` plays the fault.
    case proxy(String)
  }

  package let name: String
  let location: Location
  /// Words that name the cause: the message of a failure must contain one of them.
  package let causes: [String]
  /// Whether the fault breaks off responses that have begun.
  package var breaksAnswers = false
  /// Why netopt is known to break a rule with this fault; `nil` when it is not. The table shows such a fault;
  /// the tests skip it.
  package var knownViolation: String?
  /// Whether the fault exists only in HTTP/2.
  var isHTTP2Only = false
  /// Whether a single server has the fault, so that clients may leave the server and come back to it.
  var hasVictim: Bool {
    switch location {
    case .origins, .rollingRestart, .wire, .noRoute, .proxy: false
    default: true
    }
  }

  /// Whether the fault is over as soon as it has begun, as a restart is.
  var isOverWhenBegun: Bool { location == .restart || location == .rollingRestart }

  /// Whether the fault affects only connections that have been idle. The pauses between requests must then be
  /// long enough (`CellRun.pause`).
  var needsIdleConnections: Bool { location == .wire("forget") }

  /// Whether the fault needs a network namespace of the process's own.
  package var needsOwnNetwork: Bool {
    switch location {
    case .wire, .wireToVictim, .noRoute: true
    default: false
    }
  }

  init(_ name: String, _ location: Location, causes: [String]) {
    self.name = name
    self.location = location
    self.causes = causes
  }

  private func breakingAnswers() -> Fault { with { $0.breaksAnswers = true } }

  private func onlyHTTP2() -> Fault { with { $0.isHTTP2Only = true } }

  private func violating(_ reason: String) -> Fault { with { $0.knownViolation = reason } }

  private func with(_ change: (inout Fault) -> Void) -> Fault {
    var fault = self
    change(&fault)
    return fault
  }

  /// Words that name the end of a connection.
  private static let closed = ["closed", "reset", "ended", "broke", "cut", "went away", "died"]
  /// Words that name a peer that sends nothing.
  private static let silent = ["silent", "not answered", "not complete", "did not answer"]
  private static let refused = ["refused"]

  /// All faults, in the order of the table.
  package static let all: [Fault] = [
    Fault("refused", .origin("refused"), causes: refused + closed),
    Fault("black hole", .origin("black-hole"), causes: silent + closed),
    Fault("silent TCP", .origin("tcp-silent"), causes: silent + closed),
    Fault("silent TLS", .origin("tls-silent"), causes: silent + closed),
    Fault("wrong certificate", .origin("wrong-certificate"), causes: ["certificate"] + closed),
    Fault("expired certificate", .origin("expired-certificate"), causes: ["expired"] + closed),
    Fault("clock set back", .origin("early-certificate"), causes: ["not yet valid"] + closed),
    Fault("reset before the head", .origin("reset-before-head"), causes: closed),
    Fault("reset in the head", .origin("reset-in-head"), causes: closed).breakingAnswers(),
    Fault("reset after the head", .origin("reset-after-head"), causes: closed).breakingAnswers(),
    Fault("cut body", .origin("cut-body"), causes: closed).breakingAnswers(),
    Fault("stall", .origin("stall"), causes: silent + closed).breakingAnswers(),
    Fault("SIGSTOP", .stopped, causes: silent),
    Fault("GOAWAY by requests", .origin("goaway-requests"), causes: closed),
    Fault("GOAWAY by time", .origin("goaway-time"), causes: closed),
    Fault("keep-alive race", .origin("keep-alive-race"), causes: closed).breakingAnswers(),
    Fault("max streams 1", .origin("max-streams-1"), causes: closed).onlyHTTP2(),
    Fault("max streams 1 everywhere", .origins("max-streams-1"), causes: closed).onlyHTTP2(),
    Fault("max streams 0", .origin("max-streams-0"), causes: ["refused", "stream"]).onlyHTTP2(),
    Fault("server restart", .restart, causes: closed + refused).breakingAnswers(),
    Fault("rolling restart", .rollingRestart, causes: closed + refused).breakingAnswers(),
    Fault("no descriptors", .origin("no-descriptors"), causes: silent + closed),
    Fault("refused, DNS lies", .names("lie"), causes: refused + closed),
    Fault("refused, DNS down", .names("down"), causes: refused + closed),
    Fault("refused, DNS slow", .names("slow"), causes: refused + closed),
    Fault("proxy refuses", .proxy("refuse"), causes: ["proxy"]),
    Fault("proxy answers 503", .proxy("answer-503"), causes: ["proxy"]),
    Fault("proxy resets", .proxy("reset"), causes: ["proxy"]),
    Fault("IPv6 without a route", .noRoute, causes: ["route", "unreachable"]),
    Fault("idle connections dropped", .wire("forget"), causes: silent),
    Fault("loss 1 %", .wire("loss-1"), causes: silent),
    Fault("loss 5 %", .wire("loss-5"), causes: silent),
    Fault("link down and up", .wireToVictim("down"), causes: silent),
  ]
}
