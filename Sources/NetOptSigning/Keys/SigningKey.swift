import NetOptCore
package import NetOptCrypto
import NetOptLocking

/// One version of a key: its id, its secret or key pair, and its permitted uses. Safe to use from any thread.
/// The key wipes its secrets when it is released, and no text contains them.
public final class SigningKey: Sendable {
  /// The secret or key pair of a key.
  package enum Material: Sendable {
    /// A shared secret.
    case secret(SecretBytes)
    /// A public key, or a private key with its public half.
    case pair(AsymmetricKey)
  }

  /// Where the key's material comes from: from the source of a secret, which may have to fetch the secret
  /// first, or from a key pair, which is known from the start.
  enum Source: Sendable {
    case secret(SecretSource)
    case pair(AsymmetricKey)
  }

  /// The values that the key fetches or computes when they are first needed, and the last failure of its
  /// command.
  private struct Fetched {
    /// The secret or key pair; `nil` until it was fetched.
    var material: Material?
    /// The HMAC of `netopt1`. Its key is derived from secret and salt.
    var netopt1: HMAC?
    /// The HMAC with the secret itself as its key.
    var plain: HMAC?
    /// The HMAC that `scopedMAC` last made, and the scope for which it made the HMAC.
    var sigV4: (scope: String, mac: HMAC)?
    /// The value of `SigningKey.fingerprint`; `nil` before its first use.
    var fingerprint: String?
    /// When the key's command last failed, by the continuous clock; `nil` if no run has failed.
    var failed: ContinuousClock.Instant?
    /// The error of the last failure of the key's command; `nil` if no run has failed.
    var fault: SigningFault?

    /// Whether the command failed less than `SigningKey.rest` (5 s) ago and therefore must not run yet.
    var isPausedAfterFailure: Bool { failed.map { $0.duration(to: .now) < SigningKey.rest } ?? false }
  }

  /// The id with which requests name the key.
  public let id: String
  /// The salt, which is not secret. `netopt1` and `salted-md5` combine it with the secret.
  public let salt: String
  /// The schemes that may use the key.
  public let schemes: Set<SchemeName>
  /// Whether weak schemes may use the key.
  public let isLegacy: Bool
  /// The first second since 1970 at which the key is valid; `nil` for no start.
  public let notBefore: Int64?
  /// The last second since 1970 at which the key is valid; `nil` for no end.
  public let notAfter: Int64?
  /// The requests that the key may sign; empty for all requests.
  public let scopes: [KeyScope]
  /// The session token of a temporary AWS key. The token is a secret, although requests carry it.
  let sessionToken: SecretBytes?
  /// Where the key's material comes from.
  private let source: Source
  /// The schemes of `schemes`, in a form that is faster to search.
  private let allowed: AllowedSchemes
  /// The material and its derived values.
  private let fetched = Locked(Fetched())
  /// Runs the key's command on a thread of its own, once for all calls that wait.
  private let fetch = SecretFetch()

  init(
    id: String, source: Source, salt: String = "", schemes: Set<SchemeName>, isLegacy: Bool = false,
    notBefore: Int64? = nil, notAfter: Int64? = nil, scopes: [KeyScope] = [],
    sessionToken: SecretBytes? = nil
  ) {
    self.id = id
    self.source = source
    self.salt = salt
    self.schemes = schemes
    allowed = AllowedSchemes(schemes)
    self.isLegacy = isLegacy
    self.notBefore = notBefore
    self.notAfter = notAfter
    self.scopes = scopes
    self.sessionToken = sessionToken
  }

  /// Makes a key from a shared secret, for programs that do not keep their keys in a key ring file.
  ///
  /// - Parameters:
  ///   - id: the id with which requests name the key. For `netopt1`, it must have at most 64 letters, digits,
  ///     ".", "_" and "-".
  ///   - secret: the shared secret. The key copies it. The caller may have to wipe the original.
  ///   - salt: the salt, which is not secret. It belongs to this version of the key.
  ///   - schemes: the schemes that may use the key.
  ///   - legacy: whether weak schemes may use the key (`isLegacy`).
  ///   - notBefore: the first second since 1970 at which the key is valid; `nil` for no start.
  ///   - notAfter: the last second since 1970 at which the key is valid; `nil` for no end.
  ///   - scopes: the requests that the key may sign; empty for all requests.
  public convenience init(
    id: String, secret: [UInt8], salt: String = "", schemes: Set<SchemeName> = [.netopt1],
    legacy: Bool = false, notBefore: Int64? = nil, notAfter: Int64? = nil, scopes: [KeyScope] = []
  ) {
    self.init(
      id: id, source: .secret(.bytes(SecretBytes(copying: secret))), salt: salt, schemes: schemes,
      isLegacy: legacy, notBefore: notBefore, notAfter: notAfter, scopes: scopes)
  }

  /// The kind of the key, in words: a secret with its source, or a public or private key.
  package var kind: String {
    switch source {
    case .secret(.bytes): "secret"
    case .secret(.environment(let name)): "secret from the variable \(SecretSource.shown(name))"
    case .secret(.command): "secret from a command"
    case .pair(let key): (key.isPrivate ? "private key, " : "public key, ") + "\(key.kind)"
    }
  }

  /// Whether the secret comes from a command.
  package var hasCommand: Bool { if case .secret(.command) = source { true } else { false } }

  /// Whether a call of `material` would run the key's command now: the secret is not known, and the command
  /// has not just failed.
  private var needsCommand: Bool {
    hasCommand && fetched.withLock { $0.material == nil && ($0.fault == nil || !$0.isPausedAfterFailure) }
  }

  /// Runs the command of the key if `material` would run it, so that `material` need not block the caller's
  /// thread. The command runs once for all callers, on a thread of its own, and continues when no caller
  /// waits any more.
  ///
  /// - Parameter limit: the longest time to wait; `nil` for no limit.
  /// - Returns: `false` when the limit passed or the task was cancelled. After `true`, `material` returns the
  ///   secret or throws the command's error.
  package func runCommand(within limit: Duration?) async -> Bool {
    guard needsCommand else { return true }
    await fetch.wait(within: limit, while: { self.needsCommand }, { _ = try? self.material() })
    return !needsCommand
  }

  /// Returns the secret or key pair. The first call may run the key's command, which blocks the thread for at
  /// most 30 s. After a failure, the command does not run again for 5 s. In that time, calls throw the error
  /// of the failure.
  package func material() throws(SigningFault) -> Material {
    let (known, fault) = fetched.withLock { ($0.material, $0.isPausedAfterFailure ? $0.fault : nil) }
    if let known { return known }
    if let fault { throw fault }
    let material: Material
    switch source {
    case .pair(let key): material = .pair(key)
    case .secret(let source):
      do throws(SigningFault) { material = .secret(try source.fetch(for: id)) } catch {
        if hasCommand { fetched.withLock { ($0.failed, $0.fault) = (.now, error) } }
        throw error
      }
    }
    return fetched.withLock { fetched in
      let first = fetched.material ?? material
      fetched.material = first
      return first
    }
  }

  /// Returns the shared secret.
  ///
  /// - Throws: `schemeNotAllowed` for a key pair.
  package func secret() throws(SigningFault) -> SecretBytes {
    guard case .secret(let secret) = try material() else {
      throw SigningFault(.schemeNotAllowed, "the key \(id) is not a shared secret, which the scheme needs")
    }
    return secret
  }

  /// The time after a failure in which the key's command does not run again.
  private static let rest = Duration.seconds(5)

  /// A text that distinguishes keys with the same id by their secret, salt and session token, or by their
  /// public key. The cache uses it to keep the responses for different keys apart. For a secret, the
  /// fingerprint is an HMAC under the secret: to find the secret from the fingerprint, an attacker must guess
  /// the secret.
  ///
  /// If the secret is not available at the first use, the fingerprint is random for the life of this object.
  /// It then differs from the fingerprints of all other keys, so this key shares no stored response with
  /// them. It does not change when the secret becomes available, because a change to a resource must still
  /// find the responses that were stored under it.
  package var fingerprint: String {
    if let known = fetched.withLock(\.fingerprint) { return known }
    let text = (try? derivedFingerprint()).map { Hex.text(Array($0.prefix(16))) } ?? Self.randomFingerprint()
    return fetched.withLock { fetched in
      let first = fetched.fingerprint ?? text
      fetched.fingerprint = first
      return first
    }
  }

  /// The bytes of a fingerprint that is derived from the material.
  private func derivedFingerprint() throws -> [UInt8] {
    switch try material() {
    case .pair(let key): return try Digest.of(key.publicBytes, .sha256)
    case .secret(let secret):
      var text = Array(("netopt fingerprint\0" + salt).utf8)
      defer { wipe(&text) }
      if let sessionToken {
        text.reserveCapacity(text.count + 1 + sessionToken.count)
        text.append(0)
        sessionToken.withUnsafeBytes { text += $0 }
      }
      return try HMAC(.sha256, key: secret).code(of: text)
    }
  }

  /// A fingerprint for a key whose secret is not available.
  private static func randomFingerprint() -> String {
    "random " + String(UInt64.random(in: .min ... .max), radix: 16)
      + String(UInt64.random(in: .min ... .max), radix: 16)
  }

  /// The HMAC of `netopt1`. Its key is HMAC-SHA256(secret, "netopt1" LF salt).
  func netopt1MAC() throws(SigningFault) -> HMAC {
    if let known = fetched.withLock(\.netopt1) { return known }
    let mac = try Self.derivedMAC(try secret(), salt: salt)
    fetched.withLock { $0.netopt1 = mac }
    return mac
  }

  /// The HMAC of `netopt1` for a secret and a salt, which need not be those of a key.
  static func derivedMAC(_ secret: SecretBytes, salt: String) throws(SigningFault) -> HMAC {
    try crypto { () throws(CryptoError) in
      var derived = try HMAC(.sha256, key: secret).code(of: "netopt1\n" + salt)
      defer { wipe(&derived) }
      return try HMAC(.sha256, key: SecretBytes(copying: derived))
    }
  }

  /// The HMAC with the secret itself as its key.
  func plainMAC() throws(SigningFault) -> HMAC {
    if let known = fetched.withLock(\.plain) { return known }
    let secret = try secret()
    let mac = try crypto { () throws(CryptoError) in try HMAC(.sha256, key: secret) }
    fetched.withLock { $0.plain = mac }
    return mac
  }

  /// The HMAC that `make` derives from the secret for a scope. The scope is the credential scope of SigV4.
  /// The key keeps the HMAC of the last scope, so `make` runs only for a new scope.
  func scopedMAC(
    _ scope: String, _ make: (SecretBytes) throws(CryptoError) -> HMAC
  ) throws(SigningFault) -> HMAC {
    if let known = fetched.withLock(\.sigV4), known.scope == scope { return known.mac }
    let secret = try secret()
    let mac = try crypto { () throws(CryptoError) in try make(secret) }
    fetched.withLock { $0.sigV4 = (scope, mac) }
    return mac
  }

  /// Returns why the key must not be used for a request at a time; `nil` if it may be used.
  ///
  /// - Parameter now: the time in seconds since 1970.
  func fault(_ scheme: SchemeName, _ request: SigningRequest, at now: Int64) -> SigningFault? {
    if !allowed[scheme] {
      return SigningFault(
        .schemeNotAllowed, "the key \(id) is not for \(scheme.rawValue); see its schemes")
    }
    if scheme.isWeak, !isLegacy {
      return SigningFault(
        .keyNotLegacy, "\(scheme.rawValue) is weak, and the key \(id) is not marked legacy")
    }
    if let notBefore, now < notBefore {
      return SigningFault(
        .keyNotYetValid,
        "the key \(id) is not yet valid; it becomes valid in \(notBefore.subtractingClamped(now)) s")
    }
    if let notAfter, now > notAfter {
      let time = now.subtractingClamped(notAfter)
      return SigningFault(.keyExpired, "the key \(id) expired \(time) s ago")
    }
    if !scopes.isEmpty, !scopes.contains(where: { $0.allows(request) }) {
      return SigningFault(
        .outOfScope, "the key \(id) is not for \(request.method) \(request.host)\(request.path)")
    }
    return nil
  }
}

/// The schemes of a key. A flag stands for `netopt1`, because a lookup in the set would hash a text for every
/// request.
private struct AllowedSchemes {
  private var netopt1 = false
  /// All schemes of the key, `netopt1` included.
  private var others: Set<SchemeName>

  init(_ schemes: Set<SchemeName>) {
    others = schemes
    netopt1 = schemes.contains(.netopt1)
  }

  subscript(scheme: SchemeName) -> Bool { scheme == .netopt1 ? netopt1 : others.contains(scheme) }
}

extension SigningKey: CustomStringConvertible, CustomReflectable {
  /// The id of the key, without any key material.
  public var description: String { "SigningKey(\(id))" }
  /// A mirror without children: a dump must not show the secret.
  public var customMirror: Mirror { Mirror(self, children: []) }
}

/// Runs a computation of libcrypto. Its failure becomes `keyUnavailable`, because the request did not cause
/// it.
func crypto<Result>(_ work: () throws(CryptoError) -> Result) throws(SigningFault) -> Result {
  do { return try work() } catch { throw SigningFault(.keyUnavailable, error.description) }
}
