import NetOptCore

/// A server in the simulated network, and how it is reached.
struct Server {
  /// What it does with those who come.
  enum Behaviour: Hashable {
    /// It answers.
    case healthy
    /// It answers each attempt to connect with a reset, and has closed its connections.
    case refusing
    /// Packets to it vanish.
    case blackHole
    /// It completes TCP and is silent from there on.
    case silentTLS
    /// It closes each connection in the TLS handshake, and has closed those there were.
    case resetting
    /// It presents another host's certificate to those who connect.
    case wrongCertificate
    /// It answers 503, and may ask for a rest of so many seconds.
    case unavailable(rest: Int64?)
    /// Its answers begin so many milliseconds later than usual.
    case slow(Int)
    /// The path to it is so many times as long.
    case distant(Int)
    /// It can take so many requests a second: near them its answers begin later and later.
    case crowded(capacity: Int)

    /// Whether it answers requests with something that is of use.
    var works: Bool {
      switch self {
      case .healthy, .slow, .distant, .crowded: true
      default: false
      }
    }

    /// Whether a connection gets ready and requests fail all the same, so that no race passes it by.
    var deceives: Bool { if case .unavailable = self { true } else { false } }
  }

  let address: IPAddress
  /// The round trip time in milliseconds, and by what part of it a single one differs.
  let roundTrip: Double
  let jitter: Double
  /// The part of packets that is lost.
  let loss: Double
  /// What answering takes, in milliseconds.
  let service: Double
  private(set) var behaviour = Behaviour.healthy
  /// When the behaviour last changed.
  private(set) var changed: MonotonicInstant
  /// How often connections have been closed from its side: those that are older are gone.
  private(set) var generation = 0
  /// The requests of the last second or so.
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

  /// The round trip time that is expected, in milliseconds.
  var expectedRoundTrip: Double {
    if case .distant(let factor) = behaviour { roundTrip * Double(factor) } else { roundTrip }
  }

  /// One round trip.
  func trip(using random: inout SplitMix64) -> Duration {
    .milliseconds(expectedRoundTrip * (1 + jitter * Double.random(in: -1...1, using: &random)))
  }

  /// How much longer a handshake takes because a packet of it was lost: what is sent again waits a second (RFC 6298,
  /// section 2), and a fifth of one when round trips are known.
  func lossDelay(isFirst: Bool, using random: inout SplitMix64) -> Duration {
    guard loss > 0, Double.random(in: 0..<1, using: &random) < loss else { return .zero }
    return isFirst ? .seconds(1) : .milliseconds(200)
  }

  /// By how much its answers begin later than they would, in milliseconds, at the present load.
  func expectedDelay(at now: MonotonicInstant) -> Double {
    switch behaviour {
    case .slow(let milliseconds): return Double(milliseconds)
    case .crowded(let capacity):
      let share = min(load(at: now) / Double(capacity), 0.98)
      return service * share / (1 - share)
    default: return 0
    }
  }

  /// The requests a second.
  func load(at now: MonotonicInstant) -> Double {
    load * max(0, 1 - (now - loadAt).milliseconds / 1000)
  }

  /// A request arrives.
  ///
  /// - Returns: how long it takes until the answer begins, the way there and back left out.
  mutating func serve(at now: MonotonicInstant, using random: inout SplitMix64) -> Duration {
    load = load(at: now) + 1
    loadAt = now
    let time = service * Double.random(in: 0.8...1.2, using: &random) + expectedDelay(at: now)
    return .milliseconds(time)
  }
}
