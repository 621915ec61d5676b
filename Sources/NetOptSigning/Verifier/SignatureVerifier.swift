import Glibc
import NetOptCore
import NetOptCrypto

/// Verifies the signatures of requests, and diagnoses invalid signatures. Safe to use from any thread. A call
/// blocks while the nonce store records the nonce, and while a command prints the secret of the key.
public struct SignatureVerifier: Sendable {
  /// The settings of a verifier.
  public struct Policy: Sendable {
    /// The largest permitted difference between the time of signing and the time of verification, in seconds.
    /// It limits times in the past and times in the future. Default: 300.
    public var window: Int64 = 300
    /// Whether the verifier accepts weak schemes. The key must also be marked for them
    /// (`SigningKey.isLegacy`). Default: `false`.
    public var allowWeak = false
    /// Whether the verifier searches for the mistake that explains an invalid signature. The search takes
    /// some hundred times as long as a verification, so anyone could keep the verifier busy with invalid
    /// requests. Use this setting in tests, not in service. Default: `false`.
    public var diagnose = false
    /// Whether reports contain the string to sign and the canonical request. Default: `false`.
    public var explain = false
    /// Whether reports contain the right signature (`VerificationReport.expectedSignature`). Anyone who sees
    /// this signature can send the request with it, without having the key. Use this setting only in tests on
    /// your own machine. Default: `false`.
    public var showExpected = false

    /// Makes the default settings.
    public init() {}
  }

  /// What a caller knows about one request in advance.
  public struct Expectation: Sendable {
    /// The id of the key that the signature must use; `nil` for any key. If the request names no key, the
    /// verifier takes this key.
    public var keyID: String?
    /// The time of verification, in seconds since 1970; `nil` for the time of the system's clock.
    public var now: Int64?
    /// The string to sign, or the canonical request, that the signer built. The report then shows where this
    /// string differs from the verifier's string. `nil` for no comparison.
    public var stringToSign: [UInt8]?

    /// Makes expectations; by default there are none.
    public init(keyID: String? = nil, now: Int64? = nil, stringToSign: [UInt8]? = nil) {
      self.keyID = keyID
      self.now = now
      self.stringToSign = stringToSign
    }
  }

  /// The key ring.
  public let keys: KeyRing
  /// The settings of the verifier.
  public let policy: Policy
  /// The store of used nonces; `nil` if the verifier does not detect replays.
  private let nonces: (any NonceStore)?

  /// Makes a verifier.
  ///
  /// - Parameters:
  ///   - keys: the keys.
  ///   - nonces: the store of used nonces. With `nil` the verifier does not detect replays, and the report
  ///     says so.
  ///   - policy: the settings.
  public init(keys: KeyRing, nonces: (any NonceStore)?, policy: Policy = Policy()) {
    self.keys = keys
    self.nonces = nonces
    self.policy = policy
  }

  /// Verifies a request that is signed in `netopt1`.
  public func verify(_ request: SigningRequest, _ expectation: Expectation = Expectation())
    -> VerificationReport
  {
    verify(request, scheme: NetOpt1(), expectation)
  }

  /// Verifies a request that is signed in a given scheme.
  ///
  /// If the signature cannot be read, the report has only the check `parse`. Otherwise the verifier makes all
  /// checks up to `signature` and computes one MAC, even after a failed check. So the refusal of an unknown
  /// or invalid key takes as long as the refusal of a wrong signature.
  package func verify(
    _ request: SigningRequest, scheme: any SigningScheme, _ expectation: Expectation = Expectation()
  ) -> VerificationReport {
    var findings = Findings(scheme.name)
    let now = expectation.now ?? Int64(time(nil))
    let claim: Claim
    do throws(SigningFault) {
      try request.check()
      try scheme.checkKind(of: request)
      var read = try scheme.claim(in: request)
      try Self.settle(&read, expectation)
      claim = read
      findings.report.keyID = read.keyID
      findings.pass("parse", "the signature can be read")
    } catch {
      findings.fail("parse", error)
      return findings.report
    }
    let key = key(of: claim, request, scheme, now, &findings)
    checkTime(claim, now, &findings)
    let note = scheme.coverageNote(claim, request)
    findings.check(
      "coverage", scheme.coverageFault(claim, request), note.text.isEmpty ? "complete" : note.text)
    let bodyFault = scheme.bodyFault(claim, request)
    findings.check("body", bodyFault, "no digest contradicts the body")
    if policy.diagnose, bodyFault?.reason == .bodyMismatch {
      findings.report.nearMiss = NearMissSearch.body(scheme, claim, request)
    }
    checkSignature(claim, request, scheme, key, expectation, &findings)
    if findings.report.isValid { recordNonce(claim, now, &findings) }
    if findings.report.isValid {
      findings.report.assurance = scheme.isWeak || note.isWeak ? .weak : .strong
    }
    return findings.report
  }

  /// Compares the key id of the claim with the expected key id, and throws if the two differ. If the request
  /// names no key, sets the key id of the claim to the expected one.
  private static func settle(_ claim: inout Claim, _ expectation: Expectation) throws(SigningFault) {
    guard let wanted = expectation.keyID else { return }
    if claim.keyID.isEmpty { claim.keyID = wanted }
    guard claim.keyID == wanted else {
      throw SigningFault(
        .unknownKey, "the message is signed with the key \(Self.shown(claim.keyID)), not with \(wanted)")
    }
  }

  /// A text from a request, cut to 80 characters for a report.
  private static func shown(_ text: String) -> String { String(text.prefix(80)) }

  /// The key with which the verifier checks a signature: the key of the claim, or a decoy.
  private struct FoundKey {
    let key: SigningKey
    /// Whether `key` is the key of the claim. If false, it is a decoy, and the verifier refuses the request.
    let isGenuine: Bool
  }

  /// Finds the key of a claim, and makes the check `key`. Returns a decoy if the key is unknown, if it cannot
  /// be decrypted from the request, or if its secret is not available. Returns a key with another fault, for
  /// example an expired key, as it is: the check has then failed.
  private func key(
    of claim: Claim, _ request: SigningRequest, _ scheme: any SigningScheme, _ now: Int64,
    _ findings: inout Findings
  ) -> FoundKey {
    do throws(SigningFault) {
      let found = try scheme.key(of: claim, request, in: keys)
      // The decoy for an unknown key goes through the same checks as a key, so that both take equally long.
      let key = found ?? scheme.decoy(for: claim)
      var fault =
        key.fault(scheme.name, request, at: now)
        ?? scheme.limitingKey(of: claim, in: keys)?.fault(scheme.name, request, at: now)
      if fault == nil, scheme.isWeak, !policy.allowWeak {
        fault = SigningFault(
          .weakScheme, "\(scheme.name.rawValue) is weak, and weak schemes are not allowed (--allow-weak)")
      }
      if fault == nil {
        do throws(SigningFault) { _ = try key.material() } catch { fault = error }
      }
      if found == nil { fault = SigningFault(.unknownKey, "the key ring has no key with this id") }
      findings.check("key", fault, key.kind)
      guard fault?.reason != .keyUnavailable else {
        return FoundKey(key: scheme.decoy(for: claim), isGenuine: false)
      }
      return FoundKey(key: key, isGenuine: found != nil)
    } catch {
      findings.fail("key", error)
      return FoundKey(key: scheme.decoy(for: claim), isGenuine: false)
    }
  }

  /// Makes the check `time`: compares the time of signing with the time of verification.
  private func checkTime(_ claim: Claim, _ now: Int64, _ findings: inout Findings) {
    guard let created = claim.created else {
      findings.pass("time", "the signature has no time")
      return
    }
    // The time in a request may be any number, so the subtraction is clamped.
    let skew = created.subtractingClamped(now)
    let age = now.subtractingClamped(created)
    findings.report.clockSkew = skew
    var fault: SigningFault?
    if created > now, skew > policy.window {
      fault = SigningFault(
        .fromTheFuture,
        "signed \(skew) s in the future, but the limit is \(policy.window) s; set the signer's clock")
    } else if let expires = claim.expires, expires < now {
      let time = now.subtractingClamped(expires)
      fault = SigningFault(.signatureExpired, "the signature expired \(time) s ago; sign the request again")
    } else if !claim.outlivesWindow, created < now, age > policy.window {
      fault = SigningFault(
        .tooOld,
        "signed \(age) s ago, but the limit is \(policy.window) s; sign the request again, or set a clock")
    }
    findings.check("time", fault, "within the window")
  }

  /// Makes the check `signature`. Also adds the strings, the expected signature and the near miss to the
  /// report, as far as the policy and the expectation ask for them.
  private func checkSignature(
    _ claim: Claim, _ request: SigningRequest, _ scheme: any SigningScheme, _ found: FoundKey,
    _ expectation: Expectation, _ findings: inout Findings
  ) {
    do throws(SigningFault) {
      let strings = try scheme.strings(claim, request, [])
      if policy.explain { findings.show(strings) }
      if let theirs = expectation.stringToSign {
        // The caller may give a canonical request instead. A string to sign of `sigv4`, the only scheme with
        // canonical requests, begins with "AWS4-".
        let isCanonicalRequest =
          strings.canonical != nil && theirs != strings.toSign && !theirs.starts(with: Array("AWS4-".utf8))
        findings.report.firstDifference = .between(
          isCanonicalRequest ? strings.requestText : strings.toSign, theirs)
      }
      if policy.showExpected, found.isGenuine {
        findings.report.expectedSignature = scheme.expectedSignature(of: strings.toSign, claim, by: found.key)
      }
      let isRight = try scheme.isValidSignature(claim, of: strings.toSign, by: found.key)
      guard found.isGenuine else {
        findings.fail(
          "signature", SigningFault(.signatureMismatch, "there is no key to check the signature with"))
        return
      }
      guard !isRight else {
        findings.pass("signature", "the signature matches the request")
        return
      }
      findings.fail(
        "signature",
        SigningFault(.signatureMismatch, "the signature does not match this request under this key"))
      if policy.diagnose {
        let search = NearMissSearch(
          scheme: scheme, claim: claim, request: request, key: found.key, strings: strings, ring: keys)
        findings.report.nearMiss = search.run() ?? findings.report.nearMiss
      }
    } catch {
      findings.fail("signature", error)
    }
  }

  /// Makes the check `nonce`: records the nonce of a request that passed all other checks.
  private func recordNonce(_ claim: Claim, _ now: Int64, _ findings: inout Findings) {
    guard let nonce = claim.nonce else {
      findings.pass(
        "nonce", "the signature has no nonce: netopt cannot detect a replay within the time window")
      return
    }
    guard let nonces else {
      findings.pass("nonce", "netopt does not store nonces and cannot detect a replay (--nonce-store)")
      return
    }
    let created = claim.created ?? now
    // After this second, this verifier refuses the signature as too old.
    let expiry = created.addingClamped(policy.window)
    do throws(NonceStoreError) {
      let isNew = try nonces.record(
        Self.kept(nonce), of: claim.keyID, created: created, until: expiry, now: now)
      findings.check(
        "nonce",
        isNew ? nil : SigningFault(.replayed, "the nonce was used before; every request needs a new nonce"),
        "the nonce is new")
    } catch {
      findings.fail(
        "nonce", SigningFault(.nonceStoreFailed, "netopt could not store the nonce: \(error.description)"))
    }
  }

  /// The nonce in the form in which the store keeps it: a nonce of more than 64 bytes is replaced by its
  /// SHA-256 digest. This limits the size of an entry.
  private static func kept(_ nonce: String) throws(NonceStoreError) -> String {
    guard nonce.utf8.count > 64 else { return nonce }
    do { return "sha-256:" + Hex.text(try Digest.of(nonce, .sha256)) } catch {
      throw NonceStoreError(error.description)
    }
  }
}

/// A report to which the verifier adds its checks one by one.
private struct Findings {
  var report: VerificationReport

  init(_ scheme: SchemeName) { report = VerificationReport(scheme) }

  /// Adds a passed check.
  mutating func pass(_ name: String, _ detail: String) {
    report.checks.append(.init(name: name, ok: true, detail: detail))
  }

  /// Adds a failed check. The first failure becomes the reason of the report.
  mutating func fail(_ name: String, _ fault: SigningFault) {
    report.checks.append(.init(name: name, ok: false, detail: fault.detail))
    if report.reason == .ok { report.reason = fault.reason }
  }

  /// Adds a failed check if there is a fault, and otherwise a passed check.
  ///
  /// - Parameter detail: the result in words of a passed check. Not evaluated for a failed check.
  mutating func check(_ name: String, _ fault: SigningFault?, _ detail: @autoclosure () -> String) {
    if let fault { fail(name, fault) } else { pass(name, detail()) }
  }

  /// Adds the string to sign and the canonical request.
  mutating func show(_ strings: SigningStrings) {
    report.stringToSign = String(decoding: strings.toSign, as: UTF8.self)
    report.canonicalRequest = strings.canonical.map { String(decoding: $0, as: UTF8.self) }
  }
}
