/// The failures that left a call without a connection, the most informative one first.
///
/// The order does not depend on the order in which the legs failed. So a certificate failure at an address of
/// the list is not hidden by a later look-up that found no name, or by an address that refused the
/// connection.
package struct RaceFailures: Sendable {
  /// The failure of one leg, or of an endpoint that the plan excludes because of its certificate.
  private struct Entry {
    let failure: LegFailure
    /// The address that failed; `nil` for a look-up or a proxy.
    let address: IPAddress?
    /// Whether a DNS look-up failed, and not a connection attempt.
    let isLookUp: Bool
  }

  /// The maximum number of kinds of failure for which `phrases` makes a phrase each. One more phrase gives
  /// the number of failures of all other kinds.
  private static let mostOthers = 3

  /// The failures in descending order of `LegFailure.Kind.weight`. Failures of equal weight are in the order
  /// of their messages.
  private let entries: [Entry]
  /// The port of the origin, for the endpoint that the error names.
  private let port: UInt16

  /// Collects the failures of a race.
  ///
  /// - Parameters:
  ///   - plan: the plan of the race. An endpoint that the plan excludes because of its certificate adds its
  ///     certificate failure, although no leg tried the endpoint.
  ///   - legs: the legs of the race.
  package init(_ plan: RoutePlan, _ legs: [RouteReport.Leg]) {
    port = plan.origin.port
    var entries = legs.compactMap { leg -> Entry? in
      guard leg.outcome == .failed, let failure = leg.failure else { return nil }
      return Entry(
        failure: failure, address: leg.address, isLookUp: leg.address == nil && plan.proxy == nil)
    }
    for candidate in plan.candidates {
      guard let kind = candidate.failure, let reason = candidate.excluded else { continue }
      let message = "\(candidate.address) of the IP list is not used: \(reason)"
      entries.append(
        Entry(failure: LegFailure(kind, message), address: candidate.address, isLookUp: false))
    }
    self.entries = entries.sorted {
      ($0.failure.kind.weight, $1.failure.message) > ($1.failure.kind.weight, $0.failure.message)
    }
  }

  /// The failure with the highest weight; `nil` if nothing failed.
  package var first: LegFailure? { entries.first?.failure }

  /// Returns the error of the call: the first failure, and a short description of the others. `nil` if
  /// nothing failed.
  ///
  /// - Parameter lookUp: the error of the DNS look-up, if it failed. The look-up's error has more detail than
  ///   the failure of the DNS leg.
  package func error(lookUp: NetOptError? = nil) -> NetOptError? {
    guard let first = entries.first else { return nil }
    let others = phrases(of: entries.dropFirst(), "other addresses")
    let words = others.isEmpty ? "" : "; besides, \(others.joined(separator: ", and "))"
    if first.isLookUp, let lookUp {
      return NetOptError(
        lookUp.code, phase: lookUp.phase, lookUp.message + words, endpoint: lookUp.endpoint,
        underlying: lookUp.underlying, isRetryable: lookUp.isRetryable)
    }
    return NetOptError(
      LegFailure(first.failure.kind, first.failure.message + words),
      at: first.address.map { IPEndpoint($0, port: port) })
  }

  /// A short description with one phrase for each kind of failure: "127.0.0.2 refused the connection, and 3
  /// addresses did not answer". `nil` if nothing failed.
  package var inShort: String? {
    entries.isEmpty ? nil : phrases(of: entries[...], "addresses").joined(separator: ", and ")
  }

  /// Returns one short phrase for each kind of failure, but for at most `mostOthers` kinds.
  ///
  /// - Parameter addresses: the noun for several addresses, such as "other addresses".
  private func phrases(of entries: ArraySlice<Entry>, _ addresses: String) -> [String] {
    var phrases: [String] = []
    var rest = entries
    while let first = rest.first, phrases.count < Self.mostOthers {
      let same = rest.prefix { $0.failure.kind.weight == first.failure.kind.weight }
      rest = rest.dropFirst(same.count)
      phrases.append("\(subject(of: same, addresses)) \(first.failure.kind.predicate)")
    }
    if !rest.isEmpty { phrases.append("\(rest.count) more failed") }
    return phrases
  }

  /// Returns the subject of a phrase: the number of failures with a noun; for a single failure the address,
  /// "DNS" or "the proxy".
  private func subject(of entries: ArraySlice<Entry>, _ addresses: String) -> String {
    guard let first = entries.first, entries.count == 1 else { return "\(entries.count) \(addresses)" }
    if first.isLookUp { return "DNS" }
    return first.address?.description ?? "the proxy"
  }
}
