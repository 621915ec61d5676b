import NetOptCrypto

/// Searches for the mistake that explains a signature: first every single mistake, then pairs. Each attempt
/// costs one MAC, and the number of attempts is bounded. The verifier reports the mistake, but never accepts
/// the request because of it.
struct NearMissSearch {
  let scheme: any SigningScheme
  let claim: Claim
  let request: SigningRequest
  let key: SigningKey
  /// The strings to sign without a mistake.
  let strings: SigningStrings
  let ring: KeyRing

  /// The most attempts of one search.
  static let limit = 1000
  /// The largest body, in bytes, that the search rewrites: 1 MiB.
  private static let largestBody = 1 << 20
  private static let bodies: [SignerMistake] = [
    .bodyLeftOut, .bodyLineEnd, .bodyCompact, .bodySorted, .bodySpaced, .bodySortedAndSpaced,
  ]

  /// Mistakes in the string to sign, and the strings of a signer that makes them.
  private struct Candidate {
    let mistakes: [SignerMistake]
    let strings: SigningStrings
  }

  /// - Returns: the mistake; `nil` when no mistake explains the signature.
  func run() -> VerificationReport.NearMiss? {
    var left = Self.limit
    let singles = candidates()
    for candidate in singles {
      left -= 1
      if isExplained(candidate.strings.toSign) { return miss(candidate) }
    }
    let keys = keyCandidates()
    for use in keys {
      left -= 1
      if (try? use.explains(strings.toSign)) == true { return miss(use, nil) }
    }
    var seen = Set(singles.map(\.strings.toSign))
    seen.insert(strings.toSign)
    for candidate in pairs() where seen.insert(candidate.strings.toSign).inserted {
      guard left > 0 else { return nil }
      left -= 1
      if isExplained(candidate.strings.toSign) { return miss(candidate) }
    }
    for candidate in singles {
      for use in keys {
        guard left > 0 else { return nil }
        left -= 1
        if (try? use.explains(candidate.strings.toSign)) == true { return miss(use, candidate) }
      }
    }
    return nil
  }

  private func isExplained(_ string: [UInt8]) -> Bool {
    (try? scheme.isValidSignature(claim, of: string, by: key)) ?? false
  }

  // MARK: Candidates

  /// Finds the mistake in the body that explains the digest in a request.
  static func body(
    _ scheme: any SigningScheme, _ claim: Claim, _ request: SigningRequest
  ) -> VerificationReport.NearMiss? {
    for (mistake, changed) in bodies(of: request) where scheme.bodyFault(claim, changed) == nil {
      return VerificationReport.NearMiss(
        mutations: [mistake], detail: mistake.meaning,
        firstDifference: .between(request.body, changed.body))
    }
    return nil
  }

  /// The request with each of the possible mistakes in its body; empty if the signature does not cover the
  /// body.
  private var changedBodies: [(SignerMistake, SigningRequest)] { signsBody ? Self.bodies(of: request) : [] }

  private static func bodies(of request: SigningRequest) -> [(SignerMistake, SigningRequest)] {
    guard request.body.count <= largestBody else { return [] }
    return bodies.compactMap { mistake in
      guard let body = Mistakes([mistake]).body(request.body), body != request.body else { return nil }
      var changed = request
      changed.body = body
      return (mistake, changed)
    }
  }

  /// Whether the string to sign depends on the body.
  private var signsBody: Bool {
    var changed = request
    changed.body.append(0)
    return (try? scheme.strings(claim, changed, []))?.toSign != strings.toSign
  }

  /// The strings with one mistake each, except strings that the mistake does not change.
  private func candidates() -> [Candidate] {
    strings(request, [], scheme.mistakes.map { [$0] })
      + changedBodies.flatMap { strings($0.1, [$0.0], [[]]) }
  }

  /// The strings with two mistakes, except strings that the mistakes do not change.
  private func pairs() -> [Candidate] {
    let all = scheme.mistakes
    let twos = all.indices.flatMap { first in
      all[(first + 1)...].map { [all[first], $0] }
    }
    return strings(request, [], twos)
      + changedBodies.flatMap { strings($0.1, [$0.0], all.map { [$0] }) }
  }

  private func strings(
    _ request: SigningRequest, _ before: [SignerMistake], _ sets: [[SignerMistake]]
  ) -> [Candidate] {
    sets.compactMap { set in
      guard let changed = try? scheme.strings(claim, request, Mistakes(set)),
        changed.toSign != strings.toSign
      else { return nil }
      return Candidate(mistakes: before + set, strings: changed)
    }
  }

  private func keyCandidates() -> [KeyCandidate] {
    var candidates: [KeyCandidate] = []
    for other in ring.otherVersions(of: claim.keyID) {
      let (scheme, claim) = (scheme, claim)
      candidates.append(
        KeyCandidate(
          mistake: .otherKeyVersion,
          detail: "the message was signed with \(other.id), but names \(claim.keyID)"
        ) { string throws(SigningFault) in
          try scheme.isValidSignature(claim, of: string, by: other)
        })
      // The key id is signed too: a signer that uses another version may also name that version in the
      // string.
      var renamed = claim
      renamed.keyID = other.id
      let whole = try? scheme.strings(renamed, request, [])
      candidates.append(
        KeyCandidate(
          mistake: .otherKeyVersion,
          detail: "the message was signed with and for \(other.id), but names \(claim.keyID)"
        ) { _ throws(SigningFault) in
          guard let whole else { return false }
          return try scheme.isValidSignature(claim, of: whole.toSign, by: other)
        })
      if let salted = try? other.secret(), other.salt != key.salt, !other.salt.isEmpty,
        let mac = try? SigningKey.derivedMAC((try? key.secret()) ?? salted, salt: other.salt)
      {
        candidates.append(
          KeyCandidate(mistake: .wrongSalt, detail: "the salt is that of \(other.id)") {
            string throws(SigningFault) in
            try crypto { () throws(CryptoError) in try mac.isCode(claim.signature, of: string.span) }
          })
      }
    }
    return candidates + scheme.keyCandidates(claim, request, key)
  }

  // MARK: Results

  private func miss(_ candidate: Candidate) -> VerificationReport.NearMiss {
    VerificationReport.NearMiss(
      mutations: candidate.mistakes,
      detail: candidate.mistakes.map(\.meaning).joined(separator: "; and "),
      firstDifference: .between(strings.requestText, candidate.strings.requestText))
  }

  private func miss(_ use: KeyCandidate, _ candidate: Candidate?) -> VerificationReport.NearMiss {
    VerificationReport.NearMiss(
      mutations: (candidate?.mistakes ?? []) + [use.mistake],
      detail: ((candidate?.mistakes ?? []).map(\.meaning) + [use.detail]).joined(separator: "; and "),
      firstDifference: candidate.flatMap { .between(strings.requestText, $0.strings.requestText) })
  }
}
