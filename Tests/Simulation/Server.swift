import NetOptCore

/// A server in the simulated network, and the network path to it.
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
    /// The server answers 503, and may ask for a rest of this many seconds; `nil` if it does not ask.
    case unavailable(rest: Int64?)
    /// Responses begin this many milliseconds later than usual.
    case slow(Int)
    /// The round trip time is multiplied by this factor.
    case distant(Int)
    /// The server can take this many requests per second. The closer the load is to the capacity, the later
    /// the responses begin.
    case loadDependent(capacity: Int)

    /// Whether a new connection to the server gets ready and its requests get usable responses.
    var works: Bool {
      switch self {
      case .healthy, .slow, .distant, .loadDependent: true
      default: false
      }
    }

    /// Whether connections to the server get ready although its requests fail. No race avoids such a server,
    /// because a race compares only connections.
    var failsAfterConnecting: Bool { if case .unavailable = self { true } else { false } }
  }

  let address: IPAddress
  /// The mean round trip time in milliseconds, while the path is not `distant`.
  let roundTrip: Double
  /// The maximum difference between a single round trip and the mean, as a fraction of the mean.
  let jitter: Double
  /// The probability that a packet is lost in a round trip of a handshake, from 0 to 1.
  let loss: Double
  /// The mean time that the server takes for a response, in milliseconds, while it is neither `slow` nor
  /// under load.
  let service: Double
  private(set) var behaviour = Behaviour.healthy
  /// When the behaviour last changed.
  private(set) var changed: MonotonicInstant
  /// How often the server has closed all its connections. A client notes the generation when it gets a
  /// connection. When the server's generation has grown since, the connection is closed.
  private(set) var generation = 0
  /// The load at `loadAt`: the number of requests in about the last second.
  private var load = 0.0
  /// When the last request arrived; at first the start of the run.
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

  /// Changes the behaviour of the server.
  mutating func become(_ behaviour: Behaviour, at now: MonotonicInstant) {
    self.behaviour = behaviour
    changed = now
    if behaviour == .refusing || behaviour == .resetting { generation += 1 }
  }

  /// The mean round trip time with the present behaviour, in milliseconds.
  var expectedRoundTrip: Double {
    if case .distant(let factor) = behaviour { roundTrip * Double(factor) } else { roundTrip }
  }

  /// Draws the time of one round trip.
  func trip(using random: inout SplitMix64) -> Duration {
    .milliseconds(expectedRoundTrip * (1 + jitter * Double.random(in: -1...1, using: &random)))
  }

  /// Draws the extra time of one round trip of a handshake, which is zero unless a packet is lost. The
  /// retransmission timer is 1 s (RFC 6298, section 2), and 200 ms once a round trip of the connection is
  /// measured.
  ///
  /// - Parameter isFirst: whether no round trip of the connection has been measured yet.
  func lossDelay(isFirst: Bool, using random: inout SplitMix64) -> Duration {
    guard loss > 0, Double.random(in: 0..<1, using: &random) < loss else { return .zero }
    return isFirst ? .seconds(1) : .milliseconds(200)
  }

  /// The extra time until a response begins, beyond the usual `service` time, in milliseconds. With the
  /// behaviour `loadDependent`, it grows with the present load.
  func expectedDelay(at now: MonotonicInstant) -> Double {
    switch behaviour {
    case .slow(let milliseconds): return Double(milliseconds)
    case .loadDependent(let capacity):
      let share = min(load(at: now) / Double(capacity), 0.98)
      return service * share / (1 - share)
    default: return 0
    }
  }

  /// The present load in requests per second. Without further requests, the load falls to zero within a
  /// second.
  func load(at now: MonotonicInstant) -> Double {
    load * max(0, 1 - (now - loadAt).milliseconds / 1000)
  }

  /// Counts the arrival of a request in the load, and draws the time of its response.
  ///
  /// - Returns: the time from the arrival until the response begins, without the round trip of the network.
  mutating func serve(at now: MonotonicInstant, using random: inout SplitMix64) -> Duration {
    load = load(at: now) + 1
    loadAt = now
    let time = service * Double.random(in: 0.8...1.2, using: &random) + expectedDelay(at: now)
    return .milliseconds(time)
  }
}
