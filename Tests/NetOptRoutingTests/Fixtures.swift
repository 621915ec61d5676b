import FoundationEssentials
import NetOptCore

@testable import NetOptRouting

/// The present calendar date in the tests: 21 November 2026, 00:00 UTC.
let today = Date(timeIntervalSince1970: 1_795_219_200)

/// Parses an IP address. Traps when the text is none.
func ip(_ text: String) -> IPAddress {
  guard let address = IPAddress(text) else { preconditionFailure("\(text) is no address") }
  return address
}

/// The bytes of a list with these members after `schema` and `serial`.
func listBytes(_ members: String) -> [UInt8] { Array("{\"schema\": 1, \"serial\": 1, \(members)}".utf8) }

/// The bytes of a list with one host and these endpoints.
func listBytes(endpoints: String) -> [UInt8] {
  listBytes("\"hosts\": {\"a.example\": {\"endpoints\": \(endpoints)}}")
}

extension MonotonicInstant {
  /// The moment `seconds` after the start of a test. At the start, the monotonic clock of the tests is at
  /// 1,000 s.
  static func at(_ seconds: Double) -> MonotonicInstant {
    MonotonicInstant(nanoseconds: 1_000_000_000_000) + .seconds(seconds)
  }
}

extension LegFailure {
  static let refused = LegFailure(.refused, "connection refused")
  static let unreachable = LegFailure(.unreachable, "no route to host")
  /// A certificate that is valid for other hosts only.
  static let wrongName = LegFailure(.certificateName(presented: ["*.portal.lan"]), "wrong certificate")
}

extension ExclusionReason {
  /// The exclusion reason of an endpoint that failed with `LegFailure.wrongName`.
  ///
  /// - Parameters:
  ///   - nextCheck: the time until the next check of the certificate, in whole seconds; `nil` while a check
  ///     is under way.
  ///   - byProbe: whether a probe makes the next check. If false, a request makes it.
  static func wrongName(nextCheck: Duration?, byProbe: Bool = true) -> ExclusionReason {
    .certificate(.wrongName, nextCheck: nextCheck, byProbe: byProbe)
  }
}
