import Glibc
public import NetOptCore
import NetOptCrypto

/// Signs requests with one key. Safe to use from any thread.
public struct RequestSigner: Sendable {
  /// The key that signs.
  public let key: SigningKey
  /// The scheme of the signatures.
  package let scheme: any SigningScheme

  /// Makes a signer in `netopt1`.
  ///
  /// - Parameters:
  ///   - keys: the keys.
  ///   - keyID: the id of the key to sign with.
  ///   - fields: the names of the header fields to sign. A request must have each of them. `nil` for
  ///     content-type, content-encoding and idempotency-key, each only if the request has it.
  /// - Throws: `invalidKeys` when the ring has no key with this id; `invalidRequest` for an invalid field
  ///   name or more than 256 names.
  public init(keys: KeyRing, keyID: String, fields: [String]? = nil) throws(NetOptError) {
    do throws(SigningFault) {
      try self.init(keys: keys, keyID: keyID, scheme: NetOpt1(fields: fields), allowWeak: false)
    } catch {
      throw error.signingError
    }
  }

  /// Makes a signer in any scheme.
  ///
  /// - Throws: `unknownKey` when the ring has no key with this id; `weakScheme` for a weak scheme unless
  ///   `allowWeak` is true.
  package init(
    keys: KeyRing, keyID: String, scheme: any SigningScheme, allowWeak: Bool
  ) throws(SigningFault) {
    guard let key = keys[keyID] else {
      throw SigningFault(.unknownKey, "the key ring has no key \(keyID)")
    }
    self.key = key
    self.scheme = scheme
    guard !scheme.isWeak || allowWeak else {
      throw SigningFault(
        .weakScheme,
        "\(scheme.name.rawValue) is weak; docs/signing.md explains this, and --allow-weak allows it")
    }
  }

  /// Those of the signer's keys whose secret a command prints: the key that signs, and the additional keys of
  /// the scheme.
  package var keysWithCommands: [SigningKey] { ([key] + scheme.additionalKeys).filter(\.hasCommand) }

  /// A text that differs for signers whose responses the cache must keep apart: the name of the scheme, the
  /// id and the fingerprint of the key, and `SigningScheme.identity`. The text does not reveal the key.
  package var identity: String {
    let added = scheme.identity
    return "\(scheme.name.rawValue) \(key.id) \(key.fingerprint)" + (added.isEmpty ? "" : " " + added)
  }

  /// Signs a request with the current time.
  ///
  /// - Returns: the signature, and the header fields or the query to set in the request.
  /// - Throws: `invalidKeys` when the secret of the key is not available; `invalidRequest` when the request
  ///   is malformed; `signingFailed` when the key is not for this request, or when the request lacks a field
  ///   or parameter that must be signed.
  public func sign(_ request: SigningRequest) throws(NetOptError) -> SignedRequest {
    do throws(SigningFault) {
      return try sign(request, at: SigningMoment(now: Int64(time(nil))))
    } catch {
      throw error.signingError
    }
  }

  /// Signs a request with the time of `moment` and, for test vectors, its nonce.
  package func sign(
    _ request: SigningRequest, at moment: SigningMoment
  ) throws(SigningFault) -> SignedRequest {
    if let fault = key.fault(scheme.name, request, at: moment.now) { throw fault }
    try scheme.checkKind(of: request)
    return try scheme.sign(request, with: key, at: moment)
  }
}

extension SigningFault {
  /// The public error for this fault, which `RequestSigner` throws.
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
  ///   - keyID: the id of the key to sign with.
  ///   - scheme: the scheme.
  ///   - options: the scheme's options as a JSON object (docs/signing.md).
  ///   - allowWeak: whether the signer may use a weak scheme.
  /// - Throws: `invalidKeys` when the ring has no key with this id; `invalidConfiguration` for invalid
  ///   options; `signingFailed` for a weak scheme that is not allowed.
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
  /// Verifies a request that is signed in a given scheme.
  ///
  /// - Parameters:
  ///   - request: the request as the server received it.
  ///   - scheme: the scheme that the signature must use. In `rfc9421` the signature must cover the components
  ///     that the option `components` names. Without this option, it must cover everything that a signer
  ///     signs by default.
  ///   - options: the scheme's options as a JSON object (docs/signing.md).
  ///   - expectation: the expected key, time or string to sign, if the caller knows them.
  /// - Returns: the report, which also names the faults of the request. The function does not throw for them.
  /// - Throws: `invalidConfiguration` for invalid options.
  public func verify(
    _ request: SigningRequest, scheme: SchemeName, options: String = "{}",
    _ expectation: Expectation = Expectation()
  ) throws(NetOptError) -> VerificationReport {
    let made = try SchemeOptions.scheme(scheme, text: options, keys: keys)
    return verify(request, scheme: made, expectation)
  }
}

extension SchemeOptions {
  /// Makes a scheme from the text of a JSON object. A verifier in the scheme is not lenient: without the
  /// option `components` of `rfc9421`, it requires all components that a signer signs by default.
  fileprivate static func scheme(
    _ name: SchemeName, text: String, keys: KeyRing
  ) throws(NetOptError) -> any SigningScheme {
    do {
      let part = try JSONDocument.read(SecretBytes(copying: Array(text.utf8)))
      return try scheme(name, part, isLenient: false, keys: keys)
    } catch {
      let detail =
        (error as? OptionFault)?.detail ?? (error as? JSONFault).map { "\($0.location): \($0.rule)" } ?? ""
      throw NetOptError(
        .invalidConfiguration, phase: .sign, "the options of \(name.rawValue) are wrong: \(detail)")
    }
  }
}
