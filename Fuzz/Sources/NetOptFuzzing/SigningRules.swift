import NetOptCore
import NetOptCrypto
import NetOptSigning

/// The rules for the verification of requests, signed or not. Each function returns a description of the
/// broken rule, or `nil` when all its rules hold.
enum SigningRules {
  /// When requests are signed and verified, in seconds since 1970.
  private static let now: Int64 = 1_700_000_000
  /// The keys of the signer and of the verifiers.
  private static let keys = KeyRing([
    SigningKey(
      id: "app1.v2", secret: Array("netopt-test-secret".utf8), salt: "salt-2024",
      schemes: Set(SchemeName.allCases), legacy: true),
    SigningKey(
      id: "app1.v1", secret: Array("older-secret".utf8), salt: "salt-2023", schemes: Set(SchemeName.allCases),
      legacy: true),
    SigningKey(
      id: "old", secret: Array("s3cret".utf8), salt: "pepper", schemes: [.saltedMD5], legacy: true),
    SigningKey(
      id: "AKIDEXAMPLE", secret: Array("wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY".utf8), schemes: [.sigv4]),
    SigningKey(
      id: "platform.v1", secret: Array("0123456789abcdef0123456789abcdef".utf8), salt: "platform-salt",
      schemes: Set(SchemeName.allCases), legacy: true),
  ])
  /// A signer in the scheme `netopt1`; `nil` when it cannot be made.
  static let signer = try? RequestSigner(keys: keys, keyID: "app1.v2")

  /// Makes a verifier that accepts weak schemes and reports as much as possible.
  ///
  /// - Parameter diagnoses: whether it looks for the mistake behind a wrong signature.
  private static func verifier(diagnoses: Bool) -> SignatureVerifier {
    var policy = SignatureVerifier.Policy()
    policy.allowWeak = true
    policy.explain = true
    policy.diagnose = diagnoses
    policy.showExpected = true
    return SignatureVerifier(keys: keys, nonces: MemoryNonceStore(limit: 100), policy: policy)
  }

  /// The verifier without diagnosis.
  private static let quick = verifier(diagnoses: false)
  /// The verifier with diagnosis.
  private static let thorough = verifier(diagnoses: true)

  // MARK: Raw messages

  /// Checks an input that is a raw HTTP/1.1 request.
  static func message(_ input: [UInt8]) -> String? {
    guard let request = try? SigningRequest(message: input) else { return nil }
    if let fault = written(request) { return fault }
    for scheme in SchemeName.allCases {
      if let fault = checked(request, scheme, nil, .init(now: now), input.count) { return fault }
    }
    return signed(request)
  }

  /// Checks that a request which is written as a message and parsed again is equal to the request.
  private static func written(_ request: SigningRequest) -> String? {
    var out = Array("\(request.method) \(request.path)".utf8)
    if let query = request.query { out += Array("?\(query)".utf8) }
    out += Array(" HTTP/1.1\r\nHost: \(request.authority)\r\nContent-Length: \(request.body.count)\r\n".utf8)
    for field in request.headers
    where !["host", "content-length", "transfer-encoding"].contains(field.name.lowercased()) {
      out += Array("\(field.name): \(field.value)\r\n".utf8)
    }
    out += Array("\r\n".utf8) + request.body
    guard let again = try? SigningRequest(message: out) else {
      return "a message that was written cannot be read"
    }
    return again.method == request.method && again.authority == request.authority
      && again.path == request.path
      && again.query == request.query && again.body == request.body
      ? nil : "the message is another one when it is written and read"
  }

  /// Signs a request, and checks that it is accepted once, and rejected when it is replayed or its body has
  /// one more byte.
  private static func signed(_ request: SigningRequest) -> String? {
    guard let signer, let signed = try? signer.sign(request, at: SigningMoment(now: now)) else { return nil }
    var sent = request
    for field in signed.headers { sent.headers[field.name] = field.value }
    let store = SignatureVerifier(keys: keys, nonces: MemoryNonceStore(limit: 10))
    let report = store.verify(sent, .init(now: now))
    // The input may have a wrong Content-Digest, for which the verifier rejects the request.
    let isFromBefore = report.reason == .bodyMismatch || report.reason == .malformedRequest
    if !report.isValid, !isFromBefore {
      return "what was signed is refused: \(report.reason): \(report.detail)"
    }
    if report.isValid, store.verify(sent, .init(now: now)).reason != .replayed {
      return "a replay is accepted"
    }
    sent.body.append(0)
    return quick.verify(sent, .init(now: now)).isValid ? "a body with a byte more is accepted" : nil
  }

  // MARK: JSON Lines

  /// Checks an input that is one line of JSON Lines (`SigningLine`).
  static func line(_ input: [UInt8]) -> String? {
    let line: SigningLine
    do throws(SigningLine.Fault) { line = try SigningLine(input) } catch {
      return error.fault.detail.isEmpty ? "a fault says nothing" : nil
    }
    let scheme = line.scheme ?? .detected(in: line.request)
    let expectation = SignatureVerifier.Expectation(
      keyID: line.keyID, now: line.now ?? now, stringToSign: line.stringToSign.map { Array($0.utf8) })
    if let fault = checked(line.request, scheme, line.options, expectation, input.count) { return fault }
    return accepted(line, scheme)
  }

  /// Signs the request of a line, and checks that the verifier finds the signature correct. Other checks of
  /// the verifier may fail.
  private static func accepted(_ line: SigningLine, _ scheme: SchemeName) -> String? {
    guard let made = try? SchemeOptions.scheme(scheme, line.options, isLenient: false, keys: keys),
      let signer = try? RequestSigner(keys: keys, keyID: "app1.v2", scheme: made, allowWeak: true),
      let signed = try? signer.sign(line.request, at: SigningMoment(now: now, nonce: line.nonce))
    else { return nil }
    var sent = line.request
    for field in signed.headers { sent.headers[field.name] = field.value }
    if let query = signed.query { sent.query = query }
    guard let checking = try? SchemeOptions.scheme(scheme, line.options, isLenient: true, keys: keys) else {
      return "options that sign do not verify"
    }
    let report = quick.verify(sent, scheme: checking, .init(now: now))
    return report.reason == .signatureMismatch
      ? "what was signed in \(scheme.rawValue) does not match: \(report.stringToSign ?? "") and \(signed.stringToSign)"
      : nil
  }

  /// Verifies a request, and checks that the report does not contradict itself.
  ///
  /// - Parameters:
  ///   - options: the options of the scheme as a JSON object; `nil` for the default options.
  ///   - length: the size of the input in bytes, which decides whether the verifier diagnoses.
  private static func checked(
    _ request: SigningRequest, _ scheme: SchemeName, _ options: JSONPart?,
    _ expectation: SignatureVerifier.Expectation, _ length: Int
  ) -> String? {
    guard let made = try? SchemeOptions.scheme(scheme, options, isLenient: true, keys: keys) else {
      return nil
    }
    // A diagnosis takes some hundred times as long as a verification. So the verifier diagnoses only inputs
    // whose length is divisible by 8.
    let verifier = length % 8 == 0 ? thorough : quick
    let report = verifier.verify(request, scheme: made, expectation)
    if report.isValid != report.checks.allSatisfy(\.ok) { return "the verdict is not that of the checks" }
    if report.isValid == (report.assurance == .none) { return "the assurance is \(report.assurance)" }
    if report.isValid, report.nearMiss != nil { return "a near miss is accepted" }
    if scheme.isWeak, report.assurance == .strong { return "a weak scheme is called strong" }
    let json = report.json(id: nil).bytes()
    return (try? JSONDocument.read(SecretBytes(copying: json))) == nil ? "the report is no JSON" : nil
  }
}
