package import NetOptCore

/// The course of a soak, determined by a seed: which servers fail, when and how, and which requests are sent.
package struct SoakPlan: Sendable {
  /// A fault of one server.
  package struct Incident: Sendable, CustomStringConvertible {
    package let fault: Fault
    /// The index of the server.
    package let server: Int
    /// When the fault begins, counted from the start of the soak.
    package let start: Duration
    /// When the fault ends, counted from the start of the soak.
    package let end: Duration

    package var description: String {
      "\(start.nanoseconds / 1_000_000)-\(end.nanoseconds / 1_000_000) ms, server \(server): \(fault.name)"
    }
  }

  /// The kind of a request, and the HTTP version that it asks for.
  package struct Ask: Sendable, Equatable {
    package let traffic: Traffic
    package let version: HTTPVersion

    package init(traffic: Traffic, version: HTTPVersion) {
      self.traffic = traffic
      self.version = version
    }
  }

  /// The number of servers.
  package static let servers = 3
  /// The time without faults at the start of the soak, in which the client ranks the servers.
  private static let peace = Duration.seconds(2)
  /// The plan has turns at this interval. A fault begins in each turn, up to 0.5 s after the beginning of the
  /// turn, unless fewer than two servers are without a fault then.
  private static let spacing = Duration.seconds(2)
  /// The minimum and maximum duration of a fault, in milliseconds.
  private static let lengths: ClosedRange<UInt64> = 300...4000
  /// How long a server has no fault between two faults, at least.
  private static let recovery = Duration.milliseconds(500)

  package let seed: UInt64
  /// The duration of the soak. All faults end by then.
  package let length: Duration
  /// The faults in the order of their starts. At any time at least one server has none.
  package let incidents: [Incident]

  /// Draws a plan at random from a seed. The same arguments give the same plan.
  ///
  /// - Parameter faults: the faults to draw from. Faults for which `SoakPlan.suits` is false are not drawn.
  package init(seed: UInt64, length: Duration, faults: [Fault] = Fault.all) {
    self.seed = seed
    self.length = length
    let faults = faults.filter(Self.suits)
    var random = SplitMix64(seed: seed)
    // The time from which on each server may get its next fault.
    var whole = [Duration](repeating: .zero, count: Self.servers)
    var incidents: [Incident] = []
    var turn = Self.peace
    while turn < length {
      let start = turn + .milliseconds(Int64(random.below(500)))
      let span = Self.lengths.lowerBound + random.below(UInt64(Self.lengths.count))
      let fault = faults[Int(random.below(UInt64(faults.count)))]
      let free = whole.indices.filter { whole[$0] <= start }
      let server = free[Int(random.below(UInt64(max(1, free.count))))]
      turn += Self.spacing
      // One server must stay without a fault.
      guard free.count > 1, start < length else { continue }
      let end = min(start + .milliseconds(Int64(span)), length)
      incidents.append(Incident(fault: fault, server: server, start: start, end: end))
      whole[server] = end + Self.recovery
    }
    self.incidents = incidents
  }

  /// Whether a soak can use the fault: a single server can have it in both HTTP versions, without a wire,
  /// name server or proxy, and netopt is not known to break a rule with it.
  package static func suits(_ fault: Fault) -> Bool {
    guard !fault.isHTTP2Only, fault.knownViolation == nil else { return false }
    return switch fault.location {
    case .origin, .stopped, .restart: true
    case .origins, .rollingRestart, .wire, .wireToVictim, .names, .noRoute, .proxy: false
    }
  }

  /// The request with a number from 0. The plan's seed and the number determine it.
  package func ask(_ number: Int) -> Ask {
    var random = SplitMix64(seed: seed ^ UInt64(number + 1) &* 0x9e6c_63d0_876a_3f6b)
    let traffic: Traffic =
      switch random.below(100) {
      case ..<70: .get
      case ..<82: .post
      case ..<94: .keyedPost
      case ..<97: .up
      default: .down
      }
    return Ask(traffic: traffic, version: random.below(3) == 0 ? .http1_1 : .http2)
  }

  /// A digest of the incidents and of the first 100 requests, to compare the plans of two commits. Equal
  /// plans have equal digests.
  package var digest: String {
    let text = incidents.map(\.description) + (0..<100).map { "\(ask($0))" }
    return String(StableHash.fnv1a(text.joined(separator: "\n").utf8), radix: 16)
  }
}
