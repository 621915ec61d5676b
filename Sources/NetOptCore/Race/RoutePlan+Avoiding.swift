extension RoutePlan {
  /// What an attempt keeps away from, because it failed or is slow for the same call.
  package struct Avoidance: Hashable, Sendable {
    /// The addresses, listed or not.
    package let addresses: [IPAddress]
    /// Whether they are not tried at all. Otherwise they come last.
    package let isStrict: Bool

    /// Makes an avoidance.
    package init(_ addresses: [IPAddress], isStrict: Bool = false) {
      self.addresses = addresses
      self.isStrict = isStrict
    }
  }

  /// The same plan for an attempt that keeps away from some addresses: the others come first, in their order, DNS among them.
  ///
  /// - Returns: `nil` when nothing is left, which happens when the avoidance is strict.
  package func avoiding(_ avoidance: Avoidance) -> RoutePlan? {
    let legs = avoidance.ordered(legs)
    return legs.isEmpty ? nil : with(legs, avoiding: avoidance)
  }

  /// Legs that a look-up gave, in the order in which an attempt of this plan tries them.
  package func ordered(_ answers: [Leg]) -> [Leg] { avoidance?.ordered(answers) ?? answers }

  /// Whether an attempt of this plan keeps away from an address.
  package func avoids(_ address: IPAddress) -> Bool { avoidance?.addresses.contains(address) ?? false }
}

extension RoutePlan.Avoidance {
  /// Candidates with the reason why some of them are not in the plan of this attempt.
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
