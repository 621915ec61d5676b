/// The reason why an endpoint of the list is not usable for a request. `description` is the reason as text.
///
/// An endpoint that its circuit breaker excludes is a last resort: the plan may have a leg to it, usually
/// after DNS. The circuit breaker is open, or it is half-open and its one attempt is under way. The plan
/// normally has no leg to an endpoint that asked for a rest (`Retry-After`) or is excluded for another
/// reason.
///
/// ```swift
/// for candidate in response.route.candidates {
///   if case .certificate(let failure, _, _) = candidate.excluded { alert(candidate.address, failure) }
/// }
/// ```
public enum ExclusionReason: Hashable, Sendable, CustomStringConvertible {
  /// The request allows only one IP version, which is the associated value, and the endpoint's address has
  /// the other version.
  case family(IPAddress.Family)
  /// The circuit breaker is open because of consecutive failures. `inARow` is their number, rounded up; a
  /// response with a status of 502, 503 or 504 counts half. `last` is the last failure.
  case failures(inARow: Int, last: LegFailure?)
  /// The circuit breaker is open because `failed` of `attempts` attempts within 30 s failed, or because the
  /// endpoint stopped answering requests that it had received; then `last` is the reason, not the numbers.
  case failureRate(failed: Int, attempts: Int, last: LegFailure?)
  /// The endpoint asked with `Retry-After` that clients do not use it for a time. `for` is the whole
  /// time, not what is left of it. `last` is the endpoint's last failure.
  case resting(for: Duration, last: LegFailure?)
  /// The circuit breaker is half-open: it allows one attempt, and this attempt is under way.
  case attemptUnderWay
  /// The endpoint presented an invalid certificate, as the associated failure says.
  /// `nextCheck` is the time until the next check of the certificate, rounded up to whole seconds; `nil`
  /// while a check is under way. `byProbe` says whether a background probe makes the check; otherwise
  /// a request does.
  case certificate(LegFailure, nextCheck: Duration?, byProbe: Bool)
  /// The attempt is a hedge, and the call's first attempt uses the endpoint: it sent the request to the
  /// endpoint, or its plan begins with the endpoint.
  case otherAttempt

  /// The reason as text: "it failed 3 times in a row; the last time: connection refused".
  public var description: String {
    switch self {
    case .family(let asked): "only \(asked == .v4 ? "IPv4" : "IPv6") was asked for"
    case .failures(let count, let last): "it failed \(count) times in a row\(Self.text(of: last))"
    case .failureRate(let failed, let attempts, let last):
      "\(failed) of the last \(attempts) attempts failed\(Self.text(of: last))"
    case .resting(let time, let last):
      "it asked clients not to use it for \(time.components.seconds) s\(Self.text(of: last))"
    case .attemptUnderWay: "it failed before, and one attempt is testing it now"
    case .certificate(let failure, let nextCheck, let byProbe):
      "\(failure.message); \(Self.text(ofCheck: nextCheck, byProbe: byProbe))"
    case .otherAttempt: "another attempt of this call uses it"
    }
  }

  /// Returns the end of a sentence about the last failure; an empty text for `nil`.
  private static func text(of last: LegFailure?) -> String {
    last.map { "; the last time: \($0.message)" } ?? ""
  }

  /// Returns the end of a sentence: when and how the certificate is checked again.
  ///
  /// - Parameter wait: the time until the check; `nil` while a check is under way.
  private static func text(ofCheck wait: Duration?, byProbe: Bool) -> String {
    guard let wait else { return "the address is being checked again" }
    let time = wait > .zero ? "in \(wait.components.seconds) s" : "now"
    return byProbe ? "the address is probed again \(time)" : "a request tries the address again \(time)"
  }
}
