extension RoutePlan {
  /// The addresses that an attempt avoids because they failed or are slow for the same call.
  package struct Avoidance: Hashable, Sendable {
    /// The addresses to avoid, from the list or from DNS.
    package let addresses: [IPAddress]
    /// Whether the attempt never tries the addresses. If false, it tries them last.
    package let isStrict: Bool

    /// Creates an avoidance.
    package init(_ addresses: [IPAddress], isStrict: Bool = false) {
      self.addresses = addresses
      self.isStrict = isStrict
    }
  }

  /// Returns this plan for an attempt that avoids some addresses. The other legs come first, in their order,
  /// including DNS.
  ///
  /// - Returns: `nil` when no leg is left, which happens only for a strict avoidance.
  package func avoiding(_ avoidance: Avoidance) -> RoutePlan? {
    let legs = avoidance.ordered(legs)
    return legs.isEmpty ? nil : with(legs, avoiding: avoidance)
  }

  /// Returns the legs from a look-up in the order in which an attempt of this plan tries them.
  package func ordered(_ answers: [Leg]) -> [Leg] { avoidance?.ordered(answers) ?? answers }

  /// Whether an attempt of this plan avoids an address.
  package func avoids(_ address: IPAddress) -> Bool { avoidance?.addresses.contains(address) ?? false }
}

extension RoutePlan.Avoidance {
  /// Returns the candidates with an exclusion reason for those that this attempt does not try.
  func marked(_ candidates: [RouteReport.Candidate]) -> [RouteReport.Candidate] {
    guard isStrict else { return candidates }
    return candidates.map { candidate in
      guard candidate.excluded == nil, addresses.contains(candidate.address) else { return candidate }
      return RouteReport.Candidate(
        candidate.address, score: candidate.score, source: candidate.source,
        excluded: .otherAttempt)
    }
  }

  fileprivate func ordered(_ legs: [RoutePlan.Leg]) -> [RoutePlan.Leg] {
    var front: [RoutePlan.Leg] = []
    var back = front
    for leg in legs {
      if let address = leg.address, addresses.contains(address) {
        back.append(leg)
      } else {
        front.append(leg)
      }
    }
    return isStrict ? front : front + back
  }
}
