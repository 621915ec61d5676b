import NetOptCore
import Testing

extension RoutePlan.Leg {
  /// The leg that looks the host name up in DNS.
  static let lookUp = RoutePlan.Leg(.dns, source: .dns)

  /// A leg of the list to the address with this number. `stagger` is in milliseconds.
  static func listed(_ number: Int, stagger: Int = 100) -> Self {
    RoutePlan.Leg(.address(.number(number)), source: .list, stagger: .milliseconds(stagger))
  }

  /// A leg from DNS to the address with this number. `stagger` is in milliseconds.
  static func answer(_ number: Int, stagger: Int = 100) -> Self {
    RoutePlan.Leg(.address(.number(number)), source: .dns, stagger: .milliseconds(stagger))
  }
}

extension IPAddress {
  /// The address 192.0.2.0 plus a number from 0 to 255 (TEST-NET-1; RFC 5737).
  static func number(_ number: Int) -> Self { IPAddress(v4: 0xc000_0200 + UInt32(number)) }
}

extension Race {
  /// A race of listed legs to the addresses from number 0 on, with these staggers in milliseconds. A look-up
  /// follows if `thenDNS` is true.
  static func of(
    _ staggers: [Int], thenDNS: Bool = false, startsTwo: Bool = false, multiplexes: Bool = true,
    mayBeRepeated: Bool = false
  ) -> Race {
    let listed = staggers.enumerated().map { RoutePlan.Leg.listed($0, stagger: $1) }
    return Race(
      listed + (thenDNS ? [.lookUp] : []), startsTwo: startsTwo, multiplexes: multiplexes,
      mayBeRepeated: mayBeRepeated)
  }

  /// Starts the first leg, or the first two legs of a race that `startsTwo`. Returns their indices.
  mutating func started() -> [Int] {
    var legs: [Int] = []
    while case .start(let leg) = advance() { legs.append(leg) }
    return legs
  }

  /// Reports that a leg opened its socket at a moment. Then lets the time pass for which the race waits, and
  /// returns the next step. If the race does not wait for a time, returns its `wait` step.
  mutating func timePasses(leg: Int, from opened: MonotonicInstant = .at(0)) -> Step {
    guard case .wait(let due?) = self.opened(leg, at: opened) else { return .wait(until: nil) }
    return timeIsUp(at: due, connected: false)
  }
}

extension MonotonicInstant {
  /// The moment this many milliseconds after the clock's start.
  static func at(_ milliseconds: Int) -> Self { Self(nanoseconds: Int64(milliseconds) * 1_000_000) }
}
