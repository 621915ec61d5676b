import Glibc
public import NetOptCore
import NetOptCrypto

/// Signs requests with one key. Safe to use from any thread.
public struct RequestSigner: Sendable {
  /// The key.
  public let key: SigningKey
  package let scheme: any SigningScheme
  private let allowWeak: Bool

  /// Makes a signer in `netopt1`.
  ///
  /// - Parameters:
  ///   - keys: the keys.
  ///   - keyID: which key of the ring.
  ///   - fields: the names of the header fields to sign; `nil` for content-type, content-encoding and idempotency-key
  ///     where a request has them. A field that is named has to be there.
  /// - Throws: `invalidKeys` when the ring has no such key or it is for other schemes; `invalidConfiguration` for a name
  ///   that is none.
  public init(keys: KeyRing, keyID: String, fields: [String]? = nil) throws(NetOptError) {
    do throws(SigningFault) {
      try self.init(keys: keys, keyID: keyID, scheme: NetOpt1(fields: fields), allowWeak: false)
    } catch {
      throw error.signingError
    }
  }

  /// Makes a signer in some scheme.
  package init(
    keys: KeyRing, keyID: String, scheme: any SigningScheme, allowWeak: Bool
  ) throws(SigningFault) {
    guard let key = keys[keyID] else {
      throw SigningFault(.unknownKey, "the key ring has no key \(keyID)")
    }
    self.key = key
    self.scheme = scheme
    self.allowWeak = allowWeak
    guard !scheme.isWeak || allowWeak else {
      throw SigningFault(
        .weakScheme,
        "\(scheme.name.rawValue) is weak; docs/signing.md says how, and --allow-weak uses it nevertheless")
    }
  }

  /// The keys that it signs with whose secrets commands print.
  package var keysWithCommands: [SigningKey] { ([key] + scheme.keys).filter(\.hasCommand) }

  /// Identifies the signer: the scheme, the key's id, the key's fingerprint, and what the scheme adds. It does not reveal the key.
  package var identity: String {
    let added = scheme.identity
    return "\(scheme.name.rawValue) \(key.id) \(key.fingerprint)" + (added.isEmpty ? "" : " " + added)
  }

  /// Signs a request, now.
  ///
  /// - Returns: the fields to set.
  /// - Throws: `signingFailed` when the key is not for this request or its secret cannot be had, or when something that is to be
  ///   signed is not there.
  public func sign(_ request: SigningRequest) throws(NetOptError) -> SignedRequest {
    do throws(SigningFault) {
      return try sign(request, at: SigningMoment(now: Int64(time(nil))))
    } catch {
      throw error.signingError
    }
  }

  /// Signs a request at a moment, for vectors with a nonce that is given.
  package func sign(
    _ request: SigningRequest, at moment: SigningMoment
  ) throws(SigningFault) -> SignedRequest {
    if let fault = key.fault(scheme.name, request, at: moment.now) { throw fault }
    try scheme.checkKind(of: request)
    return try scheme.sign(request, with: key, at: moment)
  }
}

extension SigningFault {
  /// The error for those who sign.
  package var signingError: NetOptError {
    let code: NetOptError.Code =
      switch reason {
      case .unknownKey, .keyUnavailable: .invalidKeys
      case .malformedRequest: .invalidRequest
      default: .signingFailed
      }
    return NetOptError(code, phase: .sign, "signing: \(detail)")
  }
}

extension RequestSigner {
  /// Makes a signer in any scheme.
  ///
  /// - Parameters:
  ///   - keys: the keys.
  ///   - keyID: which key of the ring.
  ///   - scheme: the scheme.
  ///   - options: its options as a JSON object (docs/signing.md).
  ///   - allowWeak: whether a weak scheme may be used.
  /// - Throws: `invalidKeys` when the ring has no such key; `invalidConfiguration` for options that make no sense;
  ///   `signingFailed` for a weak scheme that is not allowed.
  public init(
    keys: KeyRing, keyID: String, scheme: SchemeName, options: String = "{}", allowWeak: Bool = false
  ) throws(NetOptError) {
    let made = try SchemeOptions.scheme(scheme, text: options, keys: keys)
    do throws(SigningFault) {
      try self.init(keys: keys, keyID: keyID, scheme: made, allowWeak: allowWeak)
    } catch {
      throw error.signingError
    }
  }
}

extension SignatureVerifier {
  /// Verifies a request that is signed in some scheme.
  ///
  /// - Parameters:
  ///   - request: the request as it was received.
  ///   - scheme: the scheme that it has to be signed in. In `rfc9421` all has to be signed that a signer signs unless it is told
  ///     otherwise, or what the options name as `components`.
  ///   - options: its options as a JSON object (docs/signing.md).
  ///   - expectation: what is known beforehand of the key, the moment or the string to sign.
  /// - Throws: `invalidConfiguration` for options that make no sense. What is wrong with the request is in the report.
  public func verify(
    _ request: SigningRequest, scheme: SchemeName, options: String = "{}",
    _ expectation: Expectation = Expectation()
  ) throws(NetOptError) -> VerificationReport {
    let made = try SchemeOptions.scheme(scheme, text: options, keys: keys)
    return verify(request, scheme: made, expectation)
  }
}

extension SchemeOptions {
  fileprivate static func scheme(
    _ name: SchemeName, text: String, keys: KeyRing
  ) throws(NetOptError) -> any SigningScheme {
    do {
      let part = try JSONDocument.read(SecretBytes(copying: Array(text.utf8)))
      return try scheme(name, part, isLenient: false, keys: keys)
    } catch {
      let detail =
        (error as? OptionFault)?.detail ?? (error as? JSONFault).map { "\($0.place): \($0.rule)" } ?? ""
      throw NetOptError(
        .invalidConfiguration, phase: .sign, "the options of \(name.rawValue) are wrong: \(detail)")
    }
  }
}
