import NetOptCore

/// A server in the simulated network, and the path to it.
struct Server {
  /// How the server treats connections and requests.
  enum Behaviour: Hashable {
    /// The server answers.
    case healthy
    /// The server resets each attempt to connect, and has closed its existing connections.
    case refusing
    /// Packets to the server vanish.
    case blackHole
    /// The server completes the TCP handshake and then sends nothing.
    case silentTLS
    /// The server closes each connection during the TLS handshake, and has closed its existing connections.
    case resetting
    /// The server presents the certificate of another host on new connections.
    case wrongCertificate
    /// The server answers 503, and may ask for a rest of that many seconds.
    case unavailable(rest: Int64?)
    /// Responses begin this many milliseconds later than usual.
    case slow(Int)
    /// The round trip time is multiplied by this factor.
    case distant(Int)
    /// The server can take this many requests per second. The closer the load is to the capacity, the later
    /// the responses begin.
    case loadDependent(capacity: Int)

    /// Whether the server gives usable responses.
    var works: Bool {
      switch self {
      case .healthy, .slow, .distant, .loadDependent: true
      default: false
      }
    }

    /// Whether a connection gets ready although requests fail, so that no race avoids the server.
    var failsAfterConnecting: Bool { if case .unavailable = self { true } else { false } }
  }

  let address: IPAddress
  /// The round trip time in milliseconds, and the fraction by which a single round trip differs from it.
  let roundTrip: Double
  let jitter: Double
  /// The fraction of packets that is lost.
  let loss: Double
  /// The time that the server takes for a response, in milliseconds.
  let service: Double
  private(set) var behaviour = Behaviour.healthy
  /// When the behaviour last changed.
  private(set) var changed: MonotonicInstant
  /// How often the server has closed its connections. Connections of an older generation are closed.
  private(set) var generation = 0
  /// The number of requests in about the last second.
  private var load = 0.0
  private var loadAt: MonotonicInstant

  init(
    _ address: IPAddress, roundTrip: Double, jitter: Double, loss: Double, service: Double,
    at now: MonotonicInstant
  ) {
    self.address = address
    self.roundTrip = roundTrip
    self.jitter = jitter
    self.loss = loss
    self.service = service
    changed = now
    loadAt = now
  }

  mutating func become(_ behaviour: Behaviour, at now: MonotonicInstant) {
    self.behaviour = behaviour
    changed = now
    if behaviour == .refusing || behaviour == .resetting { generation += 1 }
  }

  /// The expected round trip time in milliseconds.
  var expectedRoundTrip: Double {
    if case .distant(let factor) = behaviour { roundTrip * Double(factor) } else { roundTrip }
  }

  /// The time of one round trip.
  func trip(using random: inout SplitMix64) -> Duration {
    .milliseconds(expectedRoundTrip * (1 + jitter * Double.random(in: -1...1, using: &random)))
  }

  /// The extra time of a handshake when one of its packets is lost: the retransmission timer is 1 s (RFC
  /// 6298, section 2), and 200 ms once round trips are measured.
  ///
  /// - Parameter isFirst: whether no round trip of the connection has been measured yet.
  func lossDelay(isFirst: Bool, using random: inout SplitMix64) -> Duration {
    guard loss > 0, Double.random(in: 0..<1, using: &random) < loss else { return .zero }
    return isFirst ? .seconds(1) : .milliseconds(200)
  }

  /// The extra time until a response begins under the current load, in milliseconds.
  func expectedDelay(at now: MonotonicInstant) -> Double {
    switch behaviour {
    case .slow(let milliseconds): return Double(milliseconds)
    case .loadDependent(let capacity):
      let share = min(load(at: now) / Double(capacity), 0.98)
      return service * share / (1 - share)
    default: return 0
    }
  }

  /// The current load in requests per second.
  func load(at now: MonotonicInstant) -> Double {
    load * max(0, 1 - (now - loadAt).milliseconds / 1000)
  }

  /// Handles the arrival of a request.
  ///
  /// - Returns: the time until the response begins, without the network's round trip.
  mutating func serve(at now: MonotonicInstant, using random: inout SplitMix64) -> Duration {
    load = load(at: now) + 1
    loadAt = now
    let time = service * Double.random(in: 0.8...1.2, using: &random) + expectedDelay(at: now)
    return .milliseconds(time)
  }
}
