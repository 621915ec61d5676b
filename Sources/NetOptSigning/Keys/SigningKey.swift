import NetOptCore
package import NetOptCrypto
import NetOptLocking

/// One version of a key: its id, its secret or its pair, and what it may be used for. Safe to use from any thread. Secrets are
/// wiped when the key is released, and never part of a text.
public final class SigningKey: Sendable {
  /// What a key is made of.
  package enum Material: Sendable {
    /// A shared secret.
    case secret(SecretBytes)
    /// A public key or a pair.
    case pair(AsymmetricKey)
  }

  enum Source: Sendable {
    case secret(SecretSource)
    case pair(AsymmetricKey)
  }

  private struct Fetched {
    var material: Material?
    /// The HMAC of `netopt1`, whose key follows from secret and salt.
    var netopt1: HMAC?
    /// The HMAC of the secret itself.
    var plain: HMAC?
    var sigV4: (scope: String, mac: HMAC)?
    var fingerprint: String?
    /// When the material could not be had.
    var failed: ContinuousClock.Instant?
    /// Why the command failed then.
    var fault: SigningFault?

    /// Whether that is not long ago.
    var rests: Bool { failed.map { $0.duration(to: .now) < SigningKey.rest } ?? false }
  }

  /// The id.
  public let id: String
  /// The salt, which is public.
  public let salt: String
  /// The schemes that it may be used for.
  public let schemes: Set<SchemeName>
  /// Whether it may be used for weak schemes.
  public let isLegacy: Bool
  /// From when it is valid, in seconds since 1970.
  public let notBefore: Int64?
  /// Until when it is valid, in seconds since 1970.
  public let notAfter: Int64?
  /// What it may be used for; empty for everything.
  public let scopes: [KeyScope]
  /// The token of a temporary AWS key. It is a secret too, though it is sent.
  let sessionToken: SecretBytes?
  private let source: Source
  private let allowed: AllowedSchemes
  private let fetched = Locked(Fetched())
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

  /// Makes a key of a shared secret, for those who keep their keys elsewhere than in a key ring file.
  ///
  /// - Parameters:
  ///   - id: letters, digits, ".", "_" and "-", 64 at most, for `netopt1`.
  ///   - secret: is copied; the caller's own copy is the caller's to wipe.
  ///   - salt: is public, and belongs to this version of the key.
  ///   - schemes: the schemes that may use it.
  ///   - legacy: whether weak schemes may use it.
  ///   - notBefore: the second since 1970 from which it is valid; `nil` for always.
  ///   - notAfter: the last second since 1970 at which it is valid; `nil` for ever.
  ///   - scopes: the requests that it may sign; none for all.
  public convenience init(
    id: String, secret: [UInt8], salt: String = "", schemes: Set<SchemeName> = [.netopt1],
    legacy: Bool = false, notBefore: Int64? = nil, notAfter: Int64? = nil, scopes: [KeyScope] = []
  ) {
    self.init(
      id: id, source: .secret(.bytes(SecretBytes(copying: secret))), salt: salt, schemes: schemes,
      isLegacy: legacy, notBefore: notBefore, notAfter: notAfter, scopes: scopes)
  }

  /// Where the secret comes from, in words.
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

  /// Whether `material` would run a command.
  private var needsCommand: Bool {
    hasCommand && fetched.withLock { $0.material == nil && ($0.fault == nil || !$0.rests) }
  }

  /// Has the command of the key run, if `material` would run it, on a thread of its own that all callers share. It goes on when nobody waits
  /// any more.
  ///
  /// - Parameter limit: how long to wait; `nil` for as long as it takes.
  /// - Returns: false when the time has passed, or the task was cancelled. What the command came to is what `material` gives.
  package func runCommand(within limit: Duration?) async -> Bool {
    guard needsCommand else { return true }
    await fetch.wait(within: limit, while: { self.needsCommand }, { _ = try? self.material() })
    return !needsCommand
  }

  /// What the key is made of. The first time this may run a command, for 30 s at most. One that failed is not run again for 5 s.
  package func material() throws(SigningFault) -> Material {
    let (known, fault) = fetched.withLock { ($0.material, $0.rests ? $0.fault : nil) }
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

  /// The shared secret.
  ///
  /// - Throws: `schemeNotAllowed` for a key that is none.
  package func secret() throws(SigningFault) -> SecretBytes {
    guard case .secret(let secret) = try material() else {
      throw SigningFault(.schemeNotAllowed, "the key \(id) is no shared secret, which the scheme needs")
    }
    return secret
  }

  /// The time after a failure in which the key's command is not run again.
  private static let rest = Duration.seconds(5)

  /// Tells keys with one id apart, by their secret, salt and session token, or by their public key. A text of an HMAC, so that only someone who can
  /// guess the secret can find it from the fingerprint.
  ///
  /// When the secret cannot be had the first time, the fingerprint is random, and stays so as long as the key lives: nothing may be taken for
  /// another key's, and what was stored under it must still be found when it changes.
  package var fingerprint: String {
    if let known = fetched.withLock(\.fingerprint) { return known }
    let text = (try? derivedFingerprint()).map { Hex.text(Array($0.prefix(16))) } ?? Self.randomFingerprint()
    return fetched.withLock { fetched in
      let first = fetched.fingerprint ?? text
      fetched.fingerprint = first
      return first
    }
  }

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

  private static func randomFingerprint() -> String {
    "random " + String(UInt64.random(in: .min ... .max), radix: 16)
      + String(UInt64.random(in: .min ... .max), radix: 16)
  }

  /// The HMAC of `netopt1`: its key is HMAC-SHA256(secret, "netopt1" LF salt).
  func netopt1MAC() throws(SigningFault) -> HMAC {
    if let known = fetched.withLock(\.netopt1) { return known }
    let mac = try Self.derivedMAC(try secret(), salt: salt)
    fetched.withLock { $0.netopt1 = mac }
    return mac
  }

  static func derivedMAC(_ secret: SecretBytes, salt: String) throws(SigningFault) -> HMAC {
    try crypto { () throws(CryptoError) in
      var derived = try HMAC(.sha256, key: secret).code(of: "netopt1\n" + salt)
      defer { wipe(&derived) }
      return try HMAC(.sha256, key: SecretBytes(copying: derived))
    }
  }

  /// The HMAC of the secret as it is.
  func plainMAC() throws(SigningFault) -> HMAC {
    if let known = fetched.withLock(\.plain) { return known }
    let secret = try secret()
    let mac = try crypto { () throws(CryptoError) in try HMAC(.sha256, key: secret) }
    fetched.withLock { $0.plain = mac }
    return mac
  }

  /// An HMAC that follows from the secret and a scope; the one of the last scope is kept.
  func scopedMAC(
    _ scope: String, _ make: (SecretBytes) throws(CryptoError) -> HMAC
  ) throws(SigningFault) -> HMAC {
    if let known = fetched.withLock(\.sigV4), known.scope == scope { return known.mac }
    let secret = try secret()
    let mac = try crypto { () throws(CryptoError) in try make(secret) }
    fetched.withLock { $0.sigV4 = (scope, mac) }
    return mac
  }

  /// Says why the key may not be used for a request at a moment, or `nil`.
  func fault(_ scheme: SchemeName, _ request: SigningRequest, at now: Int64) -> SigningFault? {
    if !allowed[scheme] {
      return SigningFault(
        .schemeNotAllowed, "the key \(id) is not for \(scheme.rawValue); its schemes say so")
    }
    if scheme.isWeak, !isLegacy {
      return SigningFault(
        .keyNotLegacy, "\(scheme.rawValue) is weak, and the key \(id) is not marked legacy")
    }
    if let notBefore, now < notBefore {
      return SigningFault(.keyNotYetValid, "the key \(id) is valid in \(notBefore.subtractingClamped(now)) s")
    }
    if let notAfter, now > notAfter {
      let time = now.subtractingClamped(notAfter)
      return SigningFault(.keyExpired, "the key \(id) has not been valid for \(time) s")
    }
    if !scopes.isEmpty, !scopes.contains(where: { $0.allows(request) }) {
      return SigningFault(
        .outOfScope, "the key \(id) is not for \(request.method) \(request.host)\(request.path)")
    }
    return nil
  }
}

/// Schemes as a flag each: asking a set would hash a text for every request.
private struct AllowedSchemes {
  private var netopt1 = false
  private var others: Set<SchemeName>

  init(_ schemes: Set<SchemeName>) {
    others = schemes
    netopt1 = schemes.contains(.netopt1)
  }

  subscript(scheme: SchemeName) -> Bool { scheme == .netopt1 ? netopt1 : others.contains(scheme) }
}

extension SigningKey: CustomStringConvertible, CustomReflectable {
  /// The id, and nothing of the key.
  public var description: String { "SigningKey(\(id))" }
  /// Has no children: a dump must not show the secret.
  public var customMirror: Mirror { Mirror(self, children: []) }
}

/// Does something with libcrypto; what fails there has nothing to do with the request.
func crypto<Result>(_ work: () throws(CryptoError) -> Result) throws(SigningFault) -> Result {
  do { return try work() } catch { throw SigningFault(.keyUnavailable, error.description) }
}
