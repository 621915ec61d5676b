import NetOptCore
import Testing

extension RoutePlan.Leg {
  /// The leg that looks the name up.
  static let lookUp = RoutePlan.Leg(.dns, source: .dns)

  /// A leg to the listed address with this number.
  static func listed(_ number: Int, stagger: Int = 100) -> Self {
    RoutePlan.Leg(.address(.number(number)), source: .list, stagger: .milliseconds(stagger))
  }

  /// An answer of DNS: the address with this number.
  static func answer(_ number: Int, stagger: Int = 100) -> Self {
    RoutePlan.Leg(.address(.number(number)), source: .dns, stagger: .milliseconds(stagger))
  }
}

extension IPAddress {
  static func number(_ number: Int) -> Self { IPAddress(v4: 0xc000_0200 + UInt32(number)) }
}

extension Race {
  /// A race of listed legs with these staggers, in milliseconds, to the addresses from 0 on, and then perhaps DNS.
  static func of(
    _ staggers: [Int], thenDNS: Bool = false, startsTwo: Bool = false, multiplexes: Bool = true,
    mayBeRepeated: Bool = false
  ) -> Race {
    let listed = staggers.enumerated().map { RoutePlan.Leg.listed($0, stagger: $1) }
    return Race(
      listed + (thenDNS ? [.lookUp] : []), startsTwo: startsTwo, multiplexes: multiplexes,
      mayBeRepeated: mayBeRepeated)
  }

  /// Starts what can be started now.
  mutating func started() -> [Int] {
    var legs: [Int] = []
    while case .start(let leg) = advance() { legs.append(leg) }
    return legs
  }

  /// Lets a leg have all its time, from this moment on, and gives what comes of it.
  mutating func timePasses(leg: Int, from opened: MonotonicInstant = .at(0)) -> Step {
    guard case .wait(let due?) = self.opened(leg, at: opened) else { return .wait(until: nil) }
    return timeIsUp(at: due, connected: false)
  }
}

extension MonotonicInstant {
  /// So many milliseconds after the clock's start.
  static func at(_ milliseconds: Int) -> Self { Self(nanoseconds: Int64(milliseconds) * 1_000_000) }
}
