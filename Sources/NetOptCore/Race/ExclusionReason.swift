/// Why a request does not try an endpoint of the list. Its text is its `description`.
///
/// ```swift
/// for candidate in response.route.candidates {
///   if case .certificate(let kind, _, _, _) = candidate.excluded { alert(candidate.address, kind) }
/// }
/// ```
public enum ExclusionReason: Hashable, Sendable, CustomStringConvertible {
  /// The request asked for addresses of this version of IP, and the endpoint has one of the other.
  case family(IPAddress.Family)
  /// Its circuit is open after that many failures in a row. `last` is the last one.
  case failures(inARow: Int, last: LegFailure?)
  /// Its circuit is open because too many of its attempts within 30 s failed. `last` is the last failure.
  case failureRate(failed: Int, attempts: Int, last: LegFailure?)
  /// It asked not to be used, with `Retry-After`, for so much longer. `last` is its last failure.
  case resting(for: Duration, last: LegFailure?)
  /// Its circuit is half-open, and the one attempt that shows whether it works again is under way.
  case attemptUnderWay
  /// It presented a wrong certificate for `host`. The next check is due after `nextCheck`, in whole seconds, rounded up; `nil` while a
  /// check is under way. A probe makes it, or a request where there are no probes in the background.
  case certificate(LegFailure.Kind, host: String, nextCheck: Duration?, byProbe: Bool)
  /// Another attempt of the same call has sent its request there and waits for the answer.
  case otherAttempt

  /// The most names of a certificate that are repeated.
  private static let shownNames = 4

  /// The reason, for people: "it failed 3 times in a row; the last time: connection refused".
  public var description: String {
    switch self {
    case .family(let asked): "only \(asked == .v4 ? "IPv4" : "IPv6") was asked for"
    case .failures(let count, let last): "it failed \(count) times in a row\(Self.text(of: last))"
    case .failureRate(let failed, let attempts, let last):
      "\(failed) of the last \(attempts) attempts failed\(Self.text(of: last))"
    case .resting(let time, let last):
      "it asked not to be used for \(time.components.seconds) s\(Self.text(of: last))"
    case .attemptUnderWay: "it failed before, and one attempt is under way"
    case .certificate(let kind, let host, let nextCheck, let byProbe):
      "\(Self.text(of: kind, host)); \(Self.text(ofCheck: nextCheck, byProbe: byProbe))"
    case .otherAttempt: "another attempt of this call waits for its answer"
    }
  }

  private static func text(of last: LegFailure?) -> String {
    last.map { "; the last time: \($0.message)" } ?? ""
  }

  private static func text(of kind: LegFailure.Kind, _ host: String) -> String {
    switch kind {
    case .certificateName(let presented):
      let names = presented.prefix(shownNames).map { $0.printable(253) }.joined(separator: ", ")
      let more = presented.count > shownNames ? " and \(presented.count - shownNames) more" : ""
      return "its certificate is for \(names.isEmpty ? "other names" : names + more), not for \(host)"
    case .certificateExpired: return "its certificate for \(host) has expired or is not yet valid"
    default: return "its certificate for \(host) is not signed by a trusted authority"
    }
  }

  private static func text(ofCheck wait: Duration?, byProbe: Bool) -> String {
    guard let wait else { return "it is being checked again" }
    let time = wait > .zero ? "in \(wait.components.seconds) s" : "now"
    return byProbe ? "it is probed again \(time)" : "a request tries it again \(time)"
  }
}
