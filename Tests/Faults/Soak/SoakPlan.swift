package import NetOptCore

/// What a soak does: which servers fail, when and how, and what is asked of them. All of it follows from a seed.
package struct SoakPlan: Sendable {
  /// A fault of one server.
  package struct Incident: Sendable, CustomStringConvertible {
    package let fault: Fault
    /// The server's number.
    package let server: Int
    package let start: Duration
    package let end: Duration

    package var description: String {
      "\(start.nanoseconds / 1_000_000)-\(end.nanoseconds / 1_000_000) ms, server \(server): \(fault.name)"
    }
  }

  /// A request.
  package struct Ask: Sendable, Equatable {
    package let traffic: Traffic
    package let version: HTTPVersion

    package init(traffic: Traffic, version: HTTPVersion) {
      self.traffic = traffic
      self.version = version
    }
  }

  /// How many servers there are.
  package static let servers = 3
  /// How long nothing fails at first, so that servers are ranked.
  private static let peace = Duration.seconds(2)
  /// A fault begins so often.
  private static let spacing = Duration.seconds(2)
  /// The shortest and the longest fault, in milliseconds.
  private static let lengths: ClosedRange<UInt64> = 300...4000
  /// How long a server is whole between two faults.
  private static let recovery = Duration.milliseconds(500)

  package let seed: UInt64
  package let length: Duration
  /// In the order of their beginnings. Of all servers one at least has none at any time.
  package let incidents: [Incident]

  /// Draws a plan.
  ///
  /// - Parameter faults: those that may come; `SoakPlan.suits` says which ones can.
  package init(seed: UInt64, length: Duration, faults: [Fault] = Fault.all) {
    self.seed = seed
    self.length = length
    let faults = faults.filter(Self.suits)
    var random = SplitMix64(seed: seed)
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
      // One server has to be left.
      guard free.count > 1, start < length else { continue }
      let end = min(start + .milliseconds(Int64(span)), length)
      incidents.append(Incident(fault: fault, server: server, start: start, end: end))
      whole[server] = end + Self.recovery
    }
    self.incidents = incidents
  }

  /// Whether one server alone can have a fault, whatever the version of HTTP and whatever the others do.
  package static func suits(_ fault: Fault) -> Bool {
    guard !fault.isHTTP2Only, fault.knownViolation == nil else { return false }
    return switch fault.place {
    case .origin, .stopped, .restart: true
    case .origins, .rollingRestart, .wire, .wireToVictim, .names, .noRoute, .proxy: false
    }
  }

  /// The request of a number.
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

  /// Tells plans apart: two commits that draw the same one have the same digest.
  package var digest: String {
    let text = incidents.map(\.description) + (0..<100).map { "\(ask($0))" }
    return String(StableHash.fnv1a(text.joined(separator: "\n").utf8), radix: 16)
  }
}
