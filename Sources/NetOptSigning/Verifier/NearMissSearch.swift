import NetOptCrypto

/// Searches for the mistake of a signer that explains an invalid signature. The search first tries every
/// single mistake and then pairs of mistakes. An attempt computes the string to sign or the key as a signer
/// with the mistake does, and verifies the signature with it. The number of attempts is limited. The verifier
/// reports the mistake that was found, but never accepts the request because of it.
struct NearMissSearch {
  let scheme: any SigningScheme
  /// What the request states about its signature.
  let claim: Claim
  let request: SigningRequest
  /// The key that the claim names.
  let key: SigningKey
  /// The string to sign, and the canonical request, as a signer without mistakes builds them.
  let strings: SigningStrings
  /// The verifier's keys. The search tries other versions of `key`, such as `app1.v1` for `app1.v2`.
  let ring: KeyRing

  /// The maximum number of attempts. The search tries all single mistakes, including all single wrong uses of
  /// a key, even beyond this limit, because they are few.
  static let limit = 1000
  /// The size in bytes of the largest request that is searched: 1 MiB in the body and the string to sign.
  /// Each attempt may hash all of it.
  private static let largestRequest = 1 << 20
  /// The maximum number of other versions of the key that are tried.
  private static let mostVersions = 100
  /// The mistakes in the signed body that the search tries.
  private static let bodies: [SignerMistake] = [
    .bodyLeftOut, .bodyLineEnd, .bodyCompact, .bodySorted, .bodySpaced, .bodySortedAndSpaced,
  ]

  /// A guess at what the signer did wrong.
  private struct Candidate {
    /// The mistakes to try.
    let mistakes: [SignerMistake]
    /// The string to sign, and the canonical request, as a signer with all of these mistakes builds them.
    let strings: SigningStrings
  }

  /// Tries mistakes and pairs of mistakes until one explains the signature.
  ///
  /// - Returns: the mistakes; `nil` when none explains the signature, when the limit is reached, or when the
  ///   request is larger than `largestRequest`.
  func run() -> VerificationReport.NearMiss? {
    guard request.body.count + strings.toSign.count <= Self.largestRequest else { return nil }
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
    // A use that builds the string itself was tried above, and another string changes nothing.
    for candidate in singles {
      for use in keys where !use.buildsString {
        guard left > 0 else { return nil }
        left -= 1
        if (try? use.explains(candidate.strings.toSign)) == true { return miss(use, candidate) }
      }
    }
    return nil
  }

  /// Whether the claim's signature is valid for a string to sign under `key`.
  private func isExplained(_ string: [UInt8]) -> Bool {
    (try? scheme.isValidSignature(claim, of: string, by: key)) ?? false
  }

  // MARK: Candidates

  /// Searches for a mistake in the body that explains why a digest in the request does not match the body:
  /// the digest matches the body that a signer with this mistake signed.
  static func body(
    _ scheme: any SigningScheme, _ claim: Claim, _ request: SigningRequest
  ) -> VerificationReport.NearMiss? {
    for (mistake, changed) in bodies(of: request) where scheme.bodyFault(claim, changed) == nil {
      return VerificationReport.NearMiss(
        mistakes: [mistake], detail: mistake.meaning,
        firstDifference: .between(request.body, changed.body))
    }
    return nil
  }

  /// For each mistake in the body: the mistake, and `request` with the body that a signer with this mistake
  /// signed. Empty if the string to sign does not depend on the body.
  private var changedBodies: [(SignerMistake, SigningRequest)] { signsBody ? Self.bodies(of: request) : [] }

  /// For each mistake in the body: the mistake, and the request with the body that a signer with this mistake
  /// signed. Leaves out mistakes that do not change the body. Empty if the body is larger than `largestRequest`.
  private static func bodies(of request: SigningRequest) -> [(SignerMistake, SigningRequest)] {
    guard request.body.count <= largestRequest else { return [] }
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

  /// The candidates with one mistake in the string to sign or in the body.
  private func candidates() -> [Candidate] {
    strings(request, [], scheme.mistakes.map { [$0] })
      + changedBodies.flatMap { strings($0.1, [$0.0], [[]]) }
  }

  /// The candidates with two mistakes: two in the string to sign, or one in the body and one in the string.
  private func pairs() -> [Candidate] {
    let all = scheme.mistakes
    let twos = all.indices.flatMap { first in
      all[(first + 1)...].map { [all[first], $0] }
    }
    return strings(request, [], twos)
      + changedBodies.flatMap { strings($0.1, [$0.0], all.map { [$0] }) }
  }

  /// Makes a candidate for each set of mistakes. Leaves out sets that do not change the string to sign, and
  /// sets with which the string cannot be built.
  ///
  /// - Parameters:
  ///   - request: the request. Its body already has the mistakes `before`.
  ///   - before: the mistakes in the body.
  ///   - sets: the sets of mistakes in the string to sign.
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

  /// The wrong uses of a key to try: the other versions of the key, the salts of the other versions, and the
  /// wrong uses that the scheme knows.
  private func keyCandidates() -> [KeyCandidate] {
    var candidates: [KeyCandidate] = []
    for other in ring.otherVersions(of: claim.keyID).prefix(Self.mostVersions) {
      let (scheme, claim) = (scheme, claim)
      candidates.append(
        KeyCandidate(
          mistake: .otherKeyVersion,
          detail: "the message was signed with \(other.id), but names \(claim.keyID)"
        ) { string throws(SigningFault) in
          try scheme.isValidSignature(claim, of: string, by: other)
        })
      // In some schemes the string to sign contains the key id. A signer with another version of the key may
      // put the id of that version into the string.
      var renamed = claim
      renamed.keyID = other.id
      let (claimed, request) = (renamed, request)
      candidates.append(
        KeyCandidate(
          mistake: .otherKeyVersion,
          detail: "the message was signed with and for \(other.id), but names \(claim.keyID)",
          buildsString: true
        ) { _ throws(SigningFault) in
          let whole = try scheme.strings(claimed, request, [])
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

  /// Makes the result for mistakes in the string to sign or in the body.
  private func miss(_ candidate: Candidate) -> VerificationReport.NearMiss {
    VerificationReport.NearMiss(
      mistakes: candidate.mistakes,
      detail: candidate.mistakes.map(\.meaning).joined(separator: "; and "),
      firstDifference: .between(strings.requestText, candidate.strings.requestText))
  }

  /// Makes the result for a wrong use of the key. `candidate` has a further mistake in the string to sign or
  /// in the body; `nil` if the wrong use of the key is the only mistake.
  private func miss(_ use: KeyCandidate, _ candidate: Candidate?) -> VerificationReport.NearMiss {
    VerificationReport.NearMiss(
      mistakes: (candidate?.mistakes ?? []) + [use.mistake],
      detail: ((candidate?.mistakes ?? []).map(\.meaning) + [use.detail]).joined(separator: "; and "),
      firstDifference: candidate.flatMap { .between(strings.requestText, $0.strings.requestText) })
  }
}
